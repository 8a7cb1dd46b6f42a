//! The groups of one node, by index and by their names at the parent.

use std::collections::{BTreeMap, BTreeSet};

use trib_wire::{Generation, GroupIndex};

use super::group::Group;
use super::info::Census;
use crate::surprise::cannot_happen;

/// The groups by index. Indices are used again, the lowest first, each time with a new generation.
pub(super) struct Table<B> {
    groups: Vec<Option<Group<B>>>,
    generations: Vec<u32>,
    free: BTreeSet<u32>,
    /// This node's index by the parent's index. A parent may give any index to its first group.
    by_parent: BTreeMap<u32, u32>,
    alive: Census,
}

impl<B> Table<B> {
    /// A table without groups.
    pub(super) fn new() -> Table<B> {
        let (groups, generations) = (Vec::new(), Vec::new());
        Table { groups, generations, free: BTreeSet::new(), by_parent: BTreeMap::new(), alive: Census::default() }
    }

    /// The name that the next group gets.
    pub(super) fn next_name(&self) -> (GroupIndex, Generation) {
        let index = self.free.first().copied().unwrap_or(self.groups.len() as u32);
        let generation = self.generations.get(index as usize).copied().unwrap_or(0);
        (GroupIndex(index), Generation(generation))
    }

    /// Adds a group under its own name, which `next_name` gave.
    pub(super) fn insert(&mut self, group: Group<B>) {
        let index = group.info.index.0;
        if let Some((parent, _)) = group.info.up {
            self.by_parent.insert(parent.0, index);
        }
        self.alive.add(group.info.charge(), group.info.footprint());
        if self.free.remove(&index) {
            self.groups[index as usize] = Some(group);
        } else {
            self.groups.push(Some(group));
            self.generations.push(0);
        }
    }

    pub(super) fn remove(&mut self, index: GroupIndex) -> Option<Group<B>> {
        let group = self.groups.get_mut(index.0 as usize)?.take()?;
        if let Some((parent, _)) = group.info.up
            && self.by_parent.get(&parent.0) == Some(&index.0)
        {
            self.by_parent.remove(&parent.0);
        }
        self.generations[index.0 as usize] = self.generations[index.0 as usize].wrapping_add(1);
        self.free.insert(index.0);
        self.alive.take_off(group.info.charge(), group.info.footprint());
        Some(group)
    }

    pub(super) fn get(&self, index: GroupIndex) -> Option<&Group<B>> {
        self.groups.get(index.0 as usize)?.as_ref()
    }

    /// A group that the caller knows to be there.
    #[track_caller]
    pub(super) fn live(&mut self, index: GroupIndex) -> &mut Group<B> {
        match self.get_mut(index) {
            Some(group) => group,
            None => cannot_happen("a group is gone while it is worked on"),
        }
    }

    pub(super) fn get_mut(&mut self, index: GroupIndex) -> Option<&mut Group<B>> {
        self.groups.get_mut(index.0 as usize)?.as_mut()
    }

    /// The group of a frame from below.
    pub(super) fn named_by_child(&self, index: GroupIndex, generation: Generation) -> Option<GroupIndex> {
        let group = self.groups.get(index.0 as usize)?.as_ref()?;
        (group.info.generation == generation).then_some(index)
    }

    /// The group of a frame from above.
    pub(super) fn named_by_parent(&self, index: GroupIndex, generation: Generation) -> Option<GroupIndex> {
        let own = GroupIndex(*self.by_parent.get(&index.0)?);
        let group = self.groups.get(own.0 as usize)?.as_ref()?;
        (group.info.up == Some((index, generation))).then_some(own)
    }

    pub(super) fn indices(&self) -> Vec<GroupIndex> {
        self.iter().map(|g| g.info.index).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Group<B>> {
        self.groups.iter().flatten()
    }

    pub(super) fn alive(&self) -> Census {
        self.alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::harness::Bench;

    #[test]
    fn a_large_index_of_the_parent_takes_no_more_room_than_a_small_one() {
        let name = (GroupIndex(u32::MAX), Generation(3));
        let mut info = Bench::below_a_parent().info;
        info.up = Some(name);
        let mut table: Table<Vec<u8>> = Table::new();
        table.insert(Group::new(info));
        assert_eq!(table.by_parent.len(), 1);
        assert_eq!(table.named_by_parent(name.0, name.1), Some(GroupIndex(0)));
        table.remove(GroupIndex(0));
        assert_eq!((table.named_by_parent(name.0, name.1), table.by_parent.len()), (None, 0));
    }
}
