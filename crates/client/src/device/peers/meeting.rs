//! How the members of a group find out whether all of them can combine.
//!
//! ```text
//!   may all?                             --> no: never
//!   have all begun their groups?         --> no: never
//!   the fold that is needed first, memory of the device, and its handle to all
//!   have all mapped those of their host? --> no: never
//! ```
//! These are operations of the group, behind the same others on every rank.

use std::hash::Hasher;
use std::mem::ManuallyDrop;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use siphasher::sip::SipHasher24;
use trib_device::{Context, Imported, IpcHandle, Memory, Stream};
use trib_wire::directory::Numbers;
use trib_wire::{DataType, ReduceOp, Signature};

use super::super::from_device;
use super::super::plan::Plan;
use super::groups::Groups;
use super::{Fold, Peers, RANKS_MAX, whole};
use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Input;
use crate::operation;
use crate::posting::Posting;

/// What a rank needs, before it has mapped what the others have.
struct Prepared {
    groups: Groups,
    position: usize,
    stream: Stream,
    fold: Fold,
    own: ManuallyDrop<Memory>,
    handle: IpcHandle,
}

/// Finds out, for an operation that may be combined, whether the ranks of each host combine what
/// their GPUs have. All members call it behind the same operations of the group, and get the same
/// answer; it fails if the group does.
pub(in super::super) fn meet(
    shared: &Arc<Shared>,
    group: &Arc<GroupState>,
    (plan, context): (Plan, Context),
    signature: &Signature,
    may: bool,
) -> Result<Option<Peers>, Error> {
    let Some(rows) = shared.rows_of_hosts(&group.members) else { return Ok(None) };
    let row = rows.iter().find(|row| row.contains(&group.rank));
    let Some(row) = row.filter(|row| row.len() <= RANKS_MAX) else { return Ok(None) };
    let talk = Talk { shared, group };
    if !talk.all(may)? {
        return Ok(None);
    }
    let position = row.iter().position(|member| *member == group.rank).unwrap_or_default();
    // A rank that belongs to more groups than others may be refused alone.
    let groups = Groups::begin(shared, group, (&rows, row), position);
    if !talk.all(groups.is_ok())? {
        tracing::info!(cause = ?groups.err(), "GPUs of a host do not combine: there is no room for the groups of it");
        return Ok(None);
    }
    let plan = plan.widened(row.len());
    let needed = (signature, row.len());
    let prepared = groups.and_then(|groups| Prepared::new(groups, position, plan, context, needed));
    let handles = talk.handles(prepared.as_ref().ok().map(|prepared| prepared.handle))?;
    let mapped = prepared.as_ref().map_err(Error::clone).and_then(|prepared| prepared.map(context, row, &handles));
    if let Err(cause) = &mapped {
        tracing::info!(%cause, "this rank's GPU does not combine with others of its host");
    }
    let all = talk.all(mapped.is_ok())?;
    tracing::info!(all, ranks = row.len(), "whether GPUs of a host combine what they have");
    match (prepared, mapped) {
        (Ok(prepared), Ok(others)) if all => {
            let Prepared { groups, position, stream, fold, own, .. } = prepared;
            let (group, folds, is_lost) = (group.clone(), Mutex::new(vec![fold]), AtomicBool::new(false));
            Ok(Some(Peers { group, groups, position, plan, stream, own, others, folds, is_lost }))
        }
        (prepared, mapped) => {
            // Nobody frees what another one has mapped.
            drop(mapped);
            talk.all(true)?;
            // SAFETY: the field is not used again.
            prepared.into_iter().for_each(|mut prepared| unsafe { ManuallyDrop::drop(&mut prepared.own) });
            Ok(None)
        }
    }
}

/// Finds out whether all members have called the same operation, which barriers do not show.
pub(in super::super) fn agree(shared: &Arc<Shared>, group: &GroupState, signature: &Signature) -> Result<(), Error> {
    let mut hasher = SipHasher24::new();
    let Signature { collective, dtype, op, root, count, .. } = *signature;
    hasher.write(&[collective.code(), dtype.code(), op.code()]);
    hasher.write_u32(root.to_le());
    hasher.write_u64(count.to_le());
    let mark = hasher.finish();
    // The least of all and the largest of all are the same.
    let input: Vec<u8> = [mark, !mark].into_iter().flat_map(u64::to_le_bytes).collect();
    let least = Talk { shared, group }.run(operation::allreduce(2, DataType::U64, ReduceOp::Min), &input, 16)?;
    if least == input {
        return Ok(());
    }
    Err(Error::Mismatch(format!(
        "the ranks of {} do not agree on an operation over memory of GPUs: this one called {}, another one did not",
        group.words(),
        signature.told(&Numbers)
    )))
}

impl Prepared {
    fn new(
        groups: Groups,
        position: usize,
        plan: Plan,
        context: Context,
        (signature, ranks): (&Signature, usize),
    ) -> Result<Prepared, Error> {
        groups.wait()?;
        let current = context.enter().map_err(from_device)?;
        let stream = Stream::new(&current).map_err(from_device)?;
        // A driver that cannot compile it would be found out when the others wait for its result.
        let fold = Fold::new(&current, signature.dtype, signature.op, ranks)?;
        let own = Memory::new(&current, whole(&plan)).map_err(from_device)?;
        let handle = own.ipc_handle(&current).map_err(from_device)?;
        Ok(Prepared { groups, position, stream, fold, own: ManuallyDrop::new(own), handle })
    }

    /// Maps the memory of the others of this host.
    fn map(
        &self,
        context: Context,
        row: &[u32],
        handles: &[Option<IpcHandle>],
    ) -> Result<Vec<Option<Imported>>, Error> {
        let current = context.enter().map_err(from_device)?;
        let map = |(position, member): (usize, &u32)| {
            if position == self.position {
                return Ok(None);
            }
            let handle = handles.get(*member as usize).copied().flatten();
            let handle = handle.ok_or_else(|| Error::Unsupported("another rank of this host has no memory".into()))?;
            Imported::new(&current, handle).map(Some).map_err(from_device)
        };
        row.iter().enumerate().map(map).collect()
    }
}

/// Operations of the group that nobody sees.
struct Talk<'a> {
    shared: &'a Arc<Shared>,
    group: &'a GroupState,
}

impl Talk<'_> {
    /// Whether all members say so.
    fn all(&self, mine: bool) -> Result<bool, Error> {
        let signature = operation::allreduce(1, DataType::U8, ReduceOp::Min);
        Ok(self.run(signature, &[u8::from(mine)], 1)? == [1])
    }

    /// The handles of all members.
    fn handles(&self, mine: Option<IpcHandle>) -> Result<Vec<Option<IpcHandle>>, Error> {
        let mut record = [0; 1 + IpcHandle::LEN];
        if let Some(IpcHandle(bytes)) = mine {
            record[0] = 1;
            record[1..].copy_from_slice(&bytes);
        }
        let signature = operation::allgather(record.len() as u64);
        let all = self.run(signature, &record, record.len() * self.group.size as usize)?;
        let handle = |record: &[u8]| {
            let bytes = record.get(1..)?.try_into().ok()?;
            (record[0] == 1).then_some(IpcHandle(bytes))
        };
        Ok(all.chunks_exact(record.len()).map(handle).collect())
    }

    fn run(&self, signature: Signature, input: &[u8], output: usize) -> Result<Vec<u8>, Error> {
        let (input, mut output) = (input.to_vec(), vec![0; output]);
        let (lanes, shape) = (self.shared.lanes(), (self.group.size, self.group.rank));
        // SAFETY: both are as long as the operation says, and stay until it is over.
        let posting =
            unsafe { Posting::lay_out(lanes, shape, &signature, Input::At(input.as_ptr()), output.as_mut_ptr()) }?;
        let completion = self.shared.post(self.group, posting)?;
        let outcome = self.shared.wait_as_own(&completion);
        if !completion.is_done() {
            // The engine has failed for good, and the memory may still be in its hands.
            std::mem::forget((input, std::mem::take(&mut output)));
        }
        outcome.map(|()| output)
    }
}
