//! From what a job asks for to the trees, lanes and limits that it gets, if they are granted.
//! Nothing here waits for a node or for another job.
//!
//! ```text
//!   wish       how many lanes and trees the job asks for
//!   trees      what the trees of admitted jobs take of a graph's links, for the next plan
//!   lanes      which trees a job's lanes take
//!   ways       over which links its ranks reach its nodes
//!   quota      what the job asked for against what the fabric has
//!     memory   the same for the buffers of all its limits together
//! ```

pub(crate) mod lanes;
pub(crate) mod quota;
pub(crate) mod trees;
pub(crate) mod ways;
pub(crate) mod wish;
