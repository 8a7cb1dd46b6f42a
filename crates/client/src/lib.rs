//! What an application links: context, group, request
