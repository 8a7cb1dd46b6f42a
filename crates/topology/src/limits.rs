//! The limits that a fabric gives to a job that asks for nothing, and the highest that it gives to
//! one that asks.

use std::ops::{Index, IndexMut, Range};

use trib_messages::quota::{QUOTA, QuotaField};

use crate::error::Fault;
use crate::file;

/// One limit's default and maximum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The limit of a job that does not ask.
    pub default: u64,
    /// The highest limit of a job that asks.
    pub maximum: u64,
}

/// Every limit of a fabric. [`trib_messages::quota`] says what each means, and `node_memory`
/// bounds the memory that they take together.
///
/// The network's own limits (payload by MTU, window by receive buffers) apply besides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitTable([Bound; QUOTA.len()]);

impl Default for LimitTable {
    fn default() -> Self {
        LimitTable(QUOTA.map(|row| Bound { default: row.default, maximum: row.maximum }))
    }
}

impl Index<QuotaField> for LimitTable {
    type Output = Bound;

    fn index(&self, field: QuotaField) -> &Bound {
        &self.0[field as usize]
    }
}

impl IndexMut<QuotaField> for LimitTable {
    fn index_mut(&mut self, field: QuotaField) -> &mut Bound {
        &mut self.0[field as usize]
    }
}

impl LimitTable {
    /// The built-in table with the changes of a file.
    pub(crate) fn from_file(limits: &file::Limits) -> Result<Self, (Option<Range<usize>>, Fault)> {
        let mut table = LimitTable::default();
        for (field, given) in &limits.0 {
            let wrong = |fault| (Some(given.span()), fault);
            let bound = &mut table[*field];
            let file::Bound { default, maximum } = *given.get_ref();
            for value in [default, maximum].into_iter().flatten() {
                field.check(value).map_err(|cause| wrong(Fault::Limit(cause)))?;
            }
            // A maximum below the built-in default lowers the default too.
            let maximum = maximum.unwrap_or(bound.maximum.max(default.unwrap_or(0)));
            let default = default.unwrap_or(bound.default.min(maximum));
            if default > maximum {
                return Err(wrong(Fault::DefaultAboveMaximum { name: field.name(), default, maximum }));
            }
            *bound = Bound { default, maximum };
        }
        let (heartbeat_ms, dead_after_ms) =
            (table[QuotaField::HeartbeatMs].default, table[QuotaField::DeadAfterMs].default);
        if dead_after_ms < 3 * heartbeat_ms {
            return Err((None, Fault::Heartbeat { heartbeat_ms, dead_after_ms }));
        }
        Ok(table)
    }
}
