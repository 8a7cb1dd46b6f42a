//! The arbiter of stream contexts: one per tree, at its root.
