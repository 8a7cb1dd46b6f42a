//! A look at a manager that runs, from outside its threads.

use std::sync::Weak;

use super::Shared;
use crate::answers::report::ManagerReport;

/// A handle with which any thread looks at a manager that runs. It asks no node and waits for
/// nothing. It does not keep the manager alive: the file of jobs is closed when the manager ends,
/// whether handles are left or not.
#[derive(Clone)]
pub struct Observer(pub(super) Weak<Shared>);

impl Observer {
    /// The figures now; `None` when the manager has ended.
    pub fn report(&self) -> Option<ManagerReport> {
        let shared = self.0.upgrade()?;
        Some(ManagerReport::of(&shared.fabric, shared.doors()))
    }
}
