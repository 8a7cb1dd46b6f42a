//! The jobs that left last, with the names of their nodes and ranks: a node may still say why one
//! of them failed.

use std::collections::{BTreeSet, VecDeque};

use trib_messages::directory::JobDirectory;
use trib_wire::ids::JobId;

/// These jobs, the newest first.
#[derive(Default)]
pub(crate) struct Departed {
    jobs: VecDeque<Job>,
}

struct Job {
    id: JobId,
    directory: JobDirectory,
    /// Those of its nodes that have not said that nothing of it is there any more.
    maybe_at: BTreeSet<String>,
}

impl Departed {
    /// A job that was at these nodes has left.
    pub(crate) fn enter(&mut self, id: JobId, directory: JobDirectory, nodes: Vec<String>) {
        self.jobs.truncate(JOBS_MAX - 1);
        self.jobs.push_front(Job { id, directory, maybe_at: nodes.into_iter().collect() });
    }

    /// The names of a job of which the node may still know something.
    pub(crate) fn at(&self, id: JobId, node: &str) -> Option<&JobDirectory> {
        let job = self.jobs.iter().find(|job| job.id == id)?;
        job.maybe_at.contains(node).then_some(&job.directory)
    }

    /// The jobs for which `is_gone` is true are not at this node any more.
    pub(crate) fn left(&mut self, node: &str, is_gone: impl Fn(JobId) -> bool) {
        self.jobs.retain_mut(|job| {
            if is_gone(job.id) {
                job.maybe_at.remove(node);
            }
            !job.maybe_at.is_empty()
        });
    }
}

/// The number of jobs that are kept. A node says within seconds that a job is gone from there,
/// unless it is killed first.
const JOBS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_known_until_all_its_nodes_have_let_go_of_it_or_too_many_came_after_it() {
        let mut departed = Departed::default();
        let nodes = || vec!["a".to_owned(), "b".to_owned()];
        let enter = |departed: &mut Departed, id| departed.enter(JobId(id), JobDirectory::default(), nodes());
        enter(&mut departed, 1);
        departed.left("a", |id| id == JobId(1));
        let known = |departed: &Departed, id| ["a", "b", "c"].map(|node| departed.at(JobId(id), node).is_some());
        assert_eq!(known(&departed, 1), [false, true, false]);
        departed.left("b", |id| id == JobId(2));
        assert_eq!(known(&departed, 1), [false, true, false]);
        departed.left("b", |id| id == JobId(1));
        assert!(departed.jobs.is_empty());
        (0..=JOBS_MAX as u32).for_each(|id| enter(&mut departed, id));
        assert_eq!(departed.jobs.len(), JOBS_MAX);
        assert_eq!((known(&departed, 0), known(&departed, 1)), ([false; 3], [true, true, false]));
    }
}
