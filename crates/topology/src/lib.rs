//! Fabric graph and tree planning: pure functions from a topology to reduction trees
