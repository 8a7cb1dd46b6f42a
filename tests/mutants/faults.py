"""Faults of the protocol core, each a mistake that a simpler design would make.

A fault is a list of exact replacements. Each text to replace must be in its file exactly once. When
the core has changed and it no longer is, the run stops and says so, instead of testing nothing.
"""

from typing import NamedTuple


class Edit(NamedTuple):
    """One replacement in one file below crates/proto/src."""

    file: str
    old: str
    new: str


class Fault(NamedTuple):
    """What is broken, in one line, and how."""

    name: str
    edits: list[Edit]


NODE = "node/core.rs"
DISPATCH = "node/dispatch.rs"
LOCKING = "node/lease/locking.rs"
DATAGRAM = "node/llt/mod.rs"
STREAM = "node/sat/mod.rs"
TABLE = "node/table.rs"
LEAF = "leaf/mod.rs"
PASSAGE = "passage.rs"
LEAF_LLT = "leaf/llt.rs"
LEAF_SAT = "leaf/sat.rs"
OPERATION = "leaf/operation.rs"
CREATION = "node/membership/creation.rs"
DEPARTED = "node/membership/departed.rs"
PENDING = "node/membership/pending.rs"
HOST = "placing/host.rs"
VIEW = "placing/view.rs"
TIDINGS = "leaf/tidings.rs"
MARKS = "../../wire/src/standing.rs"

FAULTS = [
    Fault(
        "fruitless resends not counted",
        [Edit(PASSAGE, "        self.fruitless.again(now);\n", "")],
    ),
    Fault(
        "questions without an answer not counted",
        [Edit(PASSAGE, "        self.unanswered.again(now);\n", "")],
    ),
    Fault(
        "results sent in vain not counted",
        [Edit(PASSAGE, "        self.given.again(now);\n", "")],
    ),
    Fault(
        "one bank instead of two",
        [
            Edit(DATAGRAM, "records: (0..2 * window)", "records: (0..window)"),
            Edit(DATAGRAM, "(seq % (2 * self.window)) as usize", "(seq % self.window) as usize"),
            Edit(
                DATAGRAM,
                "seq.wrapping_sub(self.start) % (2 * self.window),",
                "seq.wrapping_sub(self.start) % self.window,",
            ),
            Edit(
                DATAGRAM,
                "State::Done => record.head.seq + 2 * self.window,",
                "State::Done => record.head.seq + self.window,",
            ),
        ],
    ),
    Fault(
        "duplicate counted for another child",
        [
            Edit(
                DATAGRAM,
                "if !opens && self.records[slot].contributed & bit != 0 {",
                "if !opens && self.records[slot].state != State::Filling {",
            ),
            Edit(
                DATAGRAM,
                "        record.contributed |= bit;\n",
                "        let missing = info.all & !record.contributed;\n"
                "        let next = missing & missing.wrapping_neg();\n"
                "        record.contributed |= if record.contributed & bit == 0 { bit } else { next };\n",
            ),
        ],
    ),
    Fault(
        "epoch and generation not compared",
        [
            Edit(
                DISPATCH,
                "if header.job != self.place.config.job || header.epoch != self.place.config.epoch {",
                "if header.job != self.place.config.job {",
            ),
            Edit(TABLE, "(group.info.generation == generation).then_some(index)", "Some((index, generation).0)"),
            Edit(
                TABLE,
                "(group.info.up == Some((index, generation))).then_some(own)",
                "(group.info.up.map(|up| up.0) == Some((index, generation).0)).then_some(own)",
            ),
            Edit(
                LEAF,
                "let ours = header.job == config.job && header.epoch == config.epoch;",
                "let ours = header.job == config.job;",
            ),
            Edit(
                LEAF,
                "if header.job != self.edge.config.job || header.epoch != self.edge.config.epoch {",
                "if header.job != self.edge.config.job {",
            ),
            Edit(
                LEAF,
                "(name == (header.group, header.generation)).then_some(id)",
                "(name.0 == header.group).then_some(id)",
            ),
        ],
    ),
    Fault(
        "fold in arrival order",
        [
            Edit(
                DATAGRAM,
                "let part_at = self.part_at(header.seq, position);",
                "let part_at = self.part_at(header.seq, self.records[slot].contributed.count_ones() as usize);",
            ),
        ],
    ),
    Fault(
        "accumulator released before every child has its result",
        [
            Edit(
                STREAM,
                "accumulator.unwritten &= !(1 << child.0);\n        if accumulator.unwritten == 0 {",
                "accumulator.unwritten &= !(1 << child.0);\n        if accumulator.unwritten != at.info.all {",
            ),
        ],
    ),
    Fault(
        "lock taken hop by hop with a queue",
        [
            # Every lease ends by itself, so that what hangs is hold-and-wait and nothing else.
            Edit("leaf/sat.rs", "lease_operations: limits.lease_operations,", "lease_operations: 1,"),
            Edit(
                NODE,
                "    pub(super) arbiter: Option<Arbiter>,\n",
                "    pub(super) arbiter: Option<Arbiter>,\n"
                "    /// Groups that hold a context of this node, and those that wait for one.\n"
                "    pub(super) hop: (Vec<trib_wire::GroupIndex>, std::collections::VecDeque<(trib_wire::GroupIndex, Header)>),\n",
            ),
            Edit(NODE, "            arbiter,\n", "            arbiter,\n            hop: Default::default(),\n"),
            Edit(
                LOCKING,
                "            (Step::Ask, None) => lease.ask_up(&mut at, about),\n",
                "            (Step::Ask, None) => {\n"
                "                if info.duty == Duty::Relay {\n"
                "                    lease.ask_up(&mut at, about);\n"
                "                } else if self.hop.0.len() < at.place.config.limits.streams as usize {\n"
                "                    self.hop.0.push(index);\n"
                "                    lease.ask_up(&mut at, about);\n"
                "                } else {\n"
                "                    self.hop.1.push_back((index, *about));\n"
                "                }\n"
                "            }\n",
            ),
            Edit(
                LOCKING,
                "(Step::Ask, Some(arbiter)) => arbiter.request(index, info.nodes.clone(), now, &mut decisions),",
                "(Step::Ask, Some(arbiter)) => {\n"
                "                let own = trib_wire::RankList::from_ranks([u32::from(at.place.config.node.0)]);\n"
                "                arbiter.request(index, own, now, &mut decisions);\n            }",
            ),
            Edit(
                LOCKING,
                "            (Step::Released, None) => lease.send_released_up(&mut at),\n",
                "            (Step::Released, None) => {\n"
                "                lease.send_released_up(&mut at);\n"
                "                self.leave_hop(index, out);\n"
                "            }\n",
            ),
            Edit(
                LOCKING,
                "    pub(in crate::node) fn forget_lock(&mut self, index: GroupIndex, out: &mut impl NodeOutput) {\n",
                "    fn leave_hop(&mut self, index: GroupIndex, out: &mut impl NodeOutput) {\n"
                "        self.hop.0.retain(|held| *held != index);\n"
                "        self.hop.1.retain(|(waiting, _)| *waiting != index);\n"
                "        while self.hop.0.len() < self.place.config.limits.streams as usize {\n"
                "            let Some((next, about)) = self.hop.1.pop_front() else { return };\n"
                "            let Some(group) = self.table.get_mut(next) else { continue };\n"
                "            self.hop.0.push(next);\n"
                "            let at = &mut At { place: &self.place, info: &group.info, now: self.now, out: &mut *out };\n"
                "            group.lease.ask_up(at, &about);\n"
                "        }\n"
                "    }\n\n"
                "    pub(in crate::node) fn forget_lock(&mut self, index: GroupIndex, out: &mut impl NodeOutput) {\n"
                "        self.leave_hop(index, out);\n",
            ),
        ],
    ),
    Fault(
        "replay starts at the highest mark instead of the lowest",
        [
            Edit(
                MARKS,
                "fragments: self.fragments.min(other.fragments), segments: self.segments.min(other.segments)",
                "fragments: self.fragments.max(other.fragments), segments: self.segments.max(other.segments)",
            ),
        ],
    ),
    Fault(
        "replay starts one fragment late",
        [Edit("leaf/group.rs", "fragments: self.datagrams.low(),", "fragments: self.datagrams.low() + 1,")],
    ),
    Fault(
        "a fragment's result that is here is delivered again",
        [
            Edit(
                LEAF_LLT,
                "operation.result_slice(header).filter(|_| !self.had.contains(header.seq)) {",
                "operation.result_slice(header) {",
            ),
        ],
    ),
    Fault(
        "a segment's result that is here is delivered again",
        [
            Edit(
                LEAF_SAT,
                "operation.result_slice(header).filter(|_| header.seq >= self.had) {",
                "operation.result_slice(header) {",
            ),
        ],
    ),
    Fault(
        "contributions released one fragment early",
        [Edit(LEAF_LLT, "self.got.low().saturating_sub(self.window)", "self.got.low().saturating_sub(self.window - 1)")],
    ),
    Fault(
        "contributions released one segment early",
        [Edit(LEAF_SAT, "self.got.saturating_sub(self.flight)", "self.got.saturating_sub(self.flight - 1)")],
    ),
    Fault(
        "a lease outlives its epoch at the rank",
        [Edit(LEAF_SAT, "        (self.phase, self.lease, self.used) = (Phase::Idle, 0, 0);\n", "")],
    ),
    Fault(
        "credit outlives its epoch at the rank",
        [Edit(LEAF_SAT, "        self.credit = start + self.staging;\n", "")],
    ),
    Fault(
        "the window outlives its epoch at the rank",
        [
            Edit(
                LEAF_LLT,
                "        (self.got, self.sent, self.stable) = (Delivered::below(start), start, start);\n",
                "        (self.got, self.stable) = (Delivered::below(start), start);\n",
            ),
        ],
    ),
    Fault(
        "results that are here are counted a second time",
        [
            Edit(
                OPERATION,
                "done: start.saturating_sub(operation.base).min(operation.pieces), ..operation",
                "done: operation.done, ..operation",
            ),
        ],
    ),
    Fault(
        "completed contributions are not sent again",
        [Edit(LEAF_LLT, "let mut operations = self.kept.take();\n", "let mut operations = VecDeque::new();\n")],
    ),
    Fault(
        "Freed is sent before all members have left",
        [
            Edit(
                DEPARTED,
                "                self.departed.groups.insert(above, (name, targets));\n",
                "                self.departed.groups.insert(above, (name, targets));\n"
                "                self.say_freed(name, targets, out);\n",
            ),
        ],
    ),
    Fault(
        "nobody waits for Freed",
        [Edit(LEAF, "if !self.edge.config.recovers {\n            return self.remove(id);", "if true {\n            return self.remove(id);")],
    ),
    Fault(
        "a rank leaves Ask without an answer",
        [Edit(LEAF, "        if is_over {\n", "        if is_over && key.creation == u32::MAX {\n")],
    ),
    Fault(
        "a node does not ask for members that have left",
        [Edit(CREATION, "if join.standing.resumed && !pending.asked {", "if join.standing.resumed && pending.asked {")],
    ),
    Fault(
        "members that have left are not counted",
        [Edit(PENDING, "(self.dead | self.left, self.dead | (self.left & !self.inner))", "(self.dead, self.dead | (self.left & !self.inner))")],
    ),
    Fault(
        "a node begins each epoch at piece 0",
        [Edit(CREATION, "        let info = GroupInfo {\n            start,\n", "        let info = GroupInfo {\n            start: Marks::default(),\n")],
    ),
    Fault(
        "a process keeps its nodes over an epoch",
        [Edit(HOST, "            seat.hosted = None;\n", "            let _ = seat;\n")],
    ),
    Fault(
        "a process answers whoever is behind",
        [Edit(HOST, "            _ if is_behind => Answer::Moved,\n", "")],
    ),
    Fault(
        "the root's other candidates are not told of a move",
        [Edit(HOST, "let tells = parent.is_none() && view.has_moved();", "let tells = parent.is_none() && !view.has_moved();")],
    ),
    Fault(
        "a placement is taken over instead of joined",
        [Edit(VIEW, "self.placement = self.placement.with(placement);", "self.placement = placement.clone();")],
    ),
    Fault(
        "a rank goes to another epoch without a word",
        [Edit(LEAF, "        out.transmit(Path::Stream, &self.edge.header(Kind::Move), Payload::Body(&body));\n", "        let _ = (body, out);\n")],
    ),
    Fault(
        "a node goes to another epoch without a word",
        [Edit(NODE, "        if targets != 0 {\n            let header = self.place.down(Kind::Move, ChildIndex::ALL);", "        if targets == u64::MAX {\n            let header = self.place.down(Kind::Move, ChildIndex::ALL);")],
    ),
    Fault(
        "who died between two epochs is waited for without end",
        [Edit("node/absent.rs", "if is_over { core::mem::take(&mut self.children) } else { 0 }", "if is_over { 0 } else { 0 }")],
    ),
    Fault(
        "a lost node fails the groups of a job that could go on",
        [Edit(NODE, "(Some(node), _) if self.place.config.recovers && !self.is_deserted(link) => out.suspect(node),", "(Some(node), Link::Parent) if self.place.config.recovers => out.suspect(node),")],
    ),
    Fault(
        "no mark while a group rests",
        [Edit(TIDINGS, "if self.recovers && mark > self.said {", "if self.recovers && mark == u64::MAX {")],
    ),
    Fault(
        "a mark of one child taken for that of all",
        [
            Edit(
                DATAGRAM,
                "        let least = self.marks.iter().copied().min().unwrap_or(0);\n        if least >",
                "        let least = self.marks.iter().copied().max().unwrap_or(0);\n        if least >",
            )
        ],
    ),
    Fault(
        "a mark not passed down",
        [Edit("node/marks.rs", "Target::Children(at.info.all)", "Target::Children(at.info.all & 1)")],
    ),
]
