//! Groups that all children have left, until the root of the tree says that all members have. The
//! ranks keep till then what other ranks may still need.

use std::collections::BTreeMap;

use trib_wire::{ChildIndex, Generation, GroupIndex, Header, Kind};

use crate::Path;
use crate::node::info::GroupInfo;
use crate::node::{NodeCore, NodeOutput, Note, Payload, Target};

type Name = (GroupIndex, Generation);

/// The groups that have been left, by their names at the parent: their own names, and a bit for
/// each child that waits for the word.
#[derive(Default)]
pub(in crate::node) struct Departed {
    groups: BTreeMap<Name, (Name, u64)>,
}

impl<B> NodeCore<B> {
    /// All children have left the group. Those that are not dead hear of it when all members have.
    pub(in crate::node) fn depart(&mut self, info: &GroupInfo, dead: u64, out: &mut impl NodeOutput) {
        let (name, targets) = ((info.index, info.generation), info.all & !dead);
        match info.up {
            Some(above) => {
                self.departed.groups.insert(above, (name, targets));
            }
            None => self.say_freed(name, targets, out),
        }
    }

    pub(in crate::node) fn on_freed(&mut self, header: &Header, out: &mut impl NodeOutput) {
        if let Some((name, targets)) = self.departed.groups.remove(&(header.group, header.generation)) {
            self.say_freed(name, targets, out);
        }
    }

    /// All children have left the group, and other members have not. What its ranks keep for those
    /// takes room, which others may wait for, so they hear that it is not needed any more.
    pub(in crate::node) fn on_late_mark(&self, header: &Header, out: &mut impl NodeOutput) {
        let Some(((group, generation), targets)) = self.departed.groups.get(&(header.group, header.generation)) else {
            return out.note(Note::UnknownGroup);
        };
        if *targets != 0 {
            let (group, generation) = (*group, *generation);
            let down = self.identity.down(Kind::Mark, ChildIndex::ALL);
            let header = Header { group, generation, mark: header.mark, flags: header.flags, ..down };
            out.transmit(Target::Children(*targets), Path::Stream, &header, Payload::None);
        }
    }

    fn say_freed(&self, (group, generation): Name, targets: u64, out: &mut impl NodeOutput) {
        if targets != 0 {
            let header = Header { group, generation, ..self.identity.down(Kind::Freed, ChildIndex::ALL) };
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::None);
        }
    }
}
