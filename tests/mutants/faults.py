"""Faults of the protocol core, of the boards of hosts and of sums that do not travel as they are, each
a mistake that a simpler design would make.

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
    """What is broken, in one line, and how. `tests` are words in the names of those tests of a
    package that notice it, where no seeds do, or where tests say it better."""

    name: str
    edits: list[Edit]
    tests: str = ""
    package: str = "trib-proto"


NODE = "node/core.rs"
DISPATCH = "node/dispatch.rs"
LOCKING = "node/lease/locking.rs"
DATAGRAM = "node/llt/mod.rs"
STREAM = "node/sat/mod.rs"
TABLE = "node/table.rs"
LEAF = "leaf/mod.rs"
FRAME = "node/frame.rs"
PASSAGE = "passage.rs"
LEAF_LLT = "leaf/llt.rs"
LEAF_SAT = "leaf/sat.rs"
RESENDS = "leaf/resends.rs"
OPERATION = "leaf/operation.rs"
CREATION = "node/membership/creation.rs"
DEPARTED = "node/membership/departed.rs"
PENDING = "node/membership/pending.rs"
HOST = "placing/host.rs"
VIEW = "placing/view.rs"
TIDINGS = "leaf/tidings.rs"
CALLER = "placing/caller.rs"
ARBITER = "lock/arbiter.rs"
LEASE = "node/lease/mod.rs"
LIVENESS = "liveness.rs"
RESULTS = "node/results.rs"
KEPT = "leaf/kept.rs"
CONCLUDED = "leaf/concluded.rs"
GROUP = "node/group/mod.rs"
NODE_MARKS = "node/marks.rs"
LEAF_GROUP = "leaf/group.rs"
ROOM = "leaf/room.rs"
ENDING = "node/membership/ending.rs"
RESUMING = "node/membership/resuming.rs"
MARKS = "../../wire/src/standing.rs"
PLACEMENT = "../../wire/src/placement.rs"
HELD = "../../keys/src/held.rs"
GRANT = "../../messages/src/job.rs"
BOARDS = "../../client/src/engine/boards/running/mod.rs"
BOARDS_WAITING = "../../client/src/engine/boards/running/waiting.rs"
BOARDS_SHORT = "../../client/src/engine/boards/running/short.rs"
BOARDS_COMPARING = "../../client/src/engine/boards/running/comparing.rs"
BOARDS_FOUNDING = "../../client/src/engine/boards/founding.rs"
BOARDS_PIECE = "../../client/src/engine/boards/piece.rs"
BOARD = "../../transport/src/memory/board/mod.rs"
FORMAT = "../../wire/src/format.rs"
SURVEY = "../../sums/src/survey.rs"
SHAPE = "../../sums/src/shape.rs"
TAIL = "../../sums/src/tail.rs"
FLOAT = "../../sums/src/float.rs"
SETTLE = "../../sums/src/settle.rs"
BLOCK = "../../reduce/src/blocks/block.rs"
BLOCKS = "../../reduce/src/blocks/mod.rs"
NOISE = "../../reduce/src/blocks/noise.rs"

FAULTS = [
    Fault(
        "a fragment that is sent for the first time was sent before",
        [Edit(LEAF_LLT, "if seq < self.fresh { FLAG_REPLAYED }", "if seq <= self.fresh { FLAG_REPLAYED }")],
    ),
    Fault(
        "a segment that is sent for the first time was sent before",
        [Edit(LEAF_SAT, "            if self.sent < self.fresh {\n", "            if self.sent <= self.fresh {\n")],
    ),
    Fault(
        "what was sent two epochs ago was not sent before",
        [Edit(LEAF_LLT, "self.fresh = self.fresh.max(self.sent);", "self.fresh = self.sent;")],
        tests="replayed::",
    ),
    Fault(
        "segments that a lease threw back were not sent before",
        [Edit(LEAF_SAT, "self.fresh = self.unsent;", "self.fresh = self.sent;")],
        tests="replayed::",
    ),
    Fault(
        "of what is folded only the first part says that it was sent before",
        [Edit(DATAGRAM, "        record.head.flags |= header.flags & FLAG_REPLAYED;\n", "")],
        tests="replayed::",
    ),
    Fault(
        "what is folded goes up as if it was sent for the first time",
        [Edit(FRAME, "if edge.kind == Kind::Contribution { FLAG_REPLAYED }", "if edge.kind == Kind::Result { FLAG_REPLAYED }")],
        tests="replayed::",
    ),
    Fault(
        "of what is folded only the first segment says that it was sent before",
        [Edit(STREAM, "        head.flags |= fronts.clone().fold(0, |flags, staged| flags | staged.head.flags) & FLAG_REPLAYED;\n", "")],
        tests="replayed::",
    ),
    Fault(
        "fruitless resends not counted",
        [Edit(PASSAGE, "        self.fruitless.again(now);\n", "")],
    ),
    Fault(
        "questions without an answer not counted",
        [Edit(PASSAGE, "        self.unanswered.again(now);\n", "")],
    ),
    Fault(
        "a join of dead members alone opens their group again",
        [
            Edit(
                "node/membership/loss.rs",
                "members().next().filter(|_| members().all(|rank| self.lost.contains(&rank)))?",
                "members().next().filter(|_| self.lost.len() > usize::from(u16::MAX))?",
            ),
        ],
        tests="seeds_that_once_failed",
        package="trib-sim",
    ),
    Fault(
        "what is of another epoch is a sign of life",
        [
            Edit(
                LEAF,
                "        if header.job != self.edge.config.job || header.epoch != self.edge.config.epoch {\n",
                "        if let Some(liveness) = &mut self.link {\n            liveness.heard(now);\n        }\n"
                "        if header.job != self.edge.config.job || header.epoch != self.edge.config.epoch {\n",
            ),
        ],
        tests="only_frames_of_its_epoch",
    ),
    Fault(
        "a patient child has no longer to hear that nothing comes",
        [Edit(PASSAGE, "ANSWERED_MIN.max(patience + Nanos(patience.0 / 2))", "ANSWERED_MIN.max(Nanos(patience.0 / 8))")],
        tests="passage::",
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
                NODE,
                "if frame.header.job != self.identity.config.job || frame.header.epoch != self.identity.config.epoch {",
                "if frame.header.job != self.identity.config.job {",
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
                "Some(Some((generation, id))) if *generation == header.generation => Some(*id),",
                "Some(Some((_, id))) => Some(*id),",
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
                "                } else if self.hop.0.len() < at.identity.config.limits.streams as usize {\n"
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
                "                let own = trib_wire::RankList::from_ranks([u32::from(at.identity.config.node.0)]);\n"
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
                "        while self.hop.0.len() < self.identity.config.limits.streams as usize {\n"
                "            let Some((next, about)) = self.hop.1.pop_front() else { return };\n"
                "            let Some(group) = self.table.get_mut(next) else { continue };\n"
                "            self.hop.0.push(next);\n"
                "            let at = &mut At { identity: &self.identity, info: &group.info, now: self.now, out: &mut *out };\n"
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
                "        (self.got, self.heard, self.sent) = (Delivered::below(start), Delivered::below(start), start);\n",
                "        (self.got, self.heard) = (Delivered::below(start), Delivered::below(start));\n",
            ),
        ],
    ),
    Fault(
        "results that are here are counted a second time",
        [
            Edit(OPERATION, "Operation { done: start.saturating_sub(self.base).min(self.pieces), ..self }", "self"),
        ],
    ),
    Fault(
        "completed contributions are not sent again",
        [Edit(KEPT, "core::mem::take(&mut self.operations);\n", "VecDeque::new();\n")],
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
        [Edit(CREATION, "if may_be_over && !pending.asked {", "if may_be_over && pending.asked {")],
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
        "a process answers every caller that is behind",
        [Edit(HOST, "            _ if is_behind => Answer::Moved,\n", "")],
    ),
    Fault(
        "the root's other candidates are not told of a move",
        [Edit(HOST, "let tells = parent.is_none() && view.has_moved();", "let tells = parent.is_none() && !view.has_moved();")],
    ),
    Fault(
        "a placement is taken over instead of joined",
        [Edit(VIEW, "self.placement = self.placement.with(placement);", "self.placement = placement.clone();")],
        tests="placing::",
    ),
    Fault(
        "a rank goes to another epoch without a word",
        [Edit(LEAF, "        out.transmit(Path::Stream, &self.edge.header(Kind::Move), Payload::Body(&body));\n", "        let _ = (body, out);\n")],
    ),
    Fault(
        "a node goes to another epoch without a word",
        [Edit(NODE, "        if targets != 0 {\n            let header = self.identity.down(Kind::Move, ChildIndex::ALL);", "        if targets == u64::MAX {\n            let header = self.identity.down(Kind::Move, ChildIndex::ALL);")],
    ),
    Fault(
        "a rank that died between two epochs is waited for without end",
        [Edit("node/absent.rs", "if is_over { core::mem::take(&mut self.children) } else { 0 }", "if is_over { 0 } else { 0 }")],
    ),
    Fault(
        "a lost node fails the groups of a job that could go on",
        [Edit(NODE, "(Some(node), _) if self.identity.config.recovers && !self.has_deserted(link) => out.suspect(node),", "(Some(node), Link::Parent) if self.identity.config.recovers => out.suspect(node),")],
    ),
    Fault(
        "no mark while a group rests",
        [Edit(TIDINGS, "if self.recovers && mark > self.said.max(self.stable) {", "if self.recovers && mark == u64::MAX {")],
    ),
    Fault(
        "a mark of one child taken for that of all",
        [Edit("node/marks.rs", "self.held.iter().copied().min()", "self.held.iter().copied().max()")],
    ),
    Fault(
        "a mark not passed down",
        [Edit("node/marks.rs", "Target::Children(at.info.all)", "Target::Children(at.info.all & 1)")],
    ),
    Fault(
        "a rank that died in a group just before its node is waited for",
        [Edit(NODE, "(Some(node), _) if self.identity.config.recovers && !self.has_deserted(link) => out.suspect(node),", "(Some(node), _) if self.identity.config.recovers => {\n                if !self.has_deserted(link) {\n                    out.suspect(node);\n                }\n            }")],
        tests="a_node_that_dies_just_after_all_ranks_below_it",
        package="trib-sim",
    ),
    Fault(
        "a group that fails while it is replayed keeps its timer",
        [Edit(LEAF_LLT, "        (self.deadline, self.probe) = (Nanos::NEVER, None);\n    }\n\n    /// The operation to which", "    }\n\n    /// The operation to which")],
        tests="replay::",
    ),
    Fault(
        "a rank that fails while it replays does not leave",
        [Edit(LEAF, "        if !group.said_left {\n            out.transmit", "        if group.said_left {\n            out.transmit")],
        tests="replay::",
    ),
    Fault(
        "a rank forgets a group that it has not left because the node says so",
        [Edit(LEAF, "        if !group.said_left {\n            return out.note", "        if false {\n            return out.note")],
        tests="replay::",
    ),
    Fault(
        "all hold what this rank lacks because the node says so",
        [Edit(LEAF_LLT, "mark.min(self.low()), &mut self.kept", "mark, &mut self.kept")],
        tests="replay::",
    ),
    Fault(
        "all hold segments that this rank lacks because the node says so",
        [Edit(LEAF_SAT, "mark.min(self.low()), &mut self.kept", "mark, &mut self.kept")],
        tests="replay::",
    ),
    Fault(
        "a group is made that was not asked for",
        [Edit(LEAF, "is_none_or(|group| group.joined)", "is_none_or(|_| true)")],
        tests="replay::",
    ),
    Fault(
        "a group whose numbers are used up takes another vector",
        [Edit(LEAF, "if cut.pieces() > NUMBER_MAX.saturating_sub(posted) {", "if false {")],
        tests="numbers::",
    ),
    Fault(
        "what was given up is asked after in the next epoch",
        [Edit(LEAF_LLT, "        self.next = self.operations.back().map_or(start, Operation::end);\n", "")],
        tests="replay::",
    ),
    Fault(
        "a rank asks about what it has given up before it asks about what it waits for",
        [Edit(LEAF_LLT, "begun.find_map(missing).unwrap_or(self.heard().low())", "begun.find_map(missing).map_or(self.heard().low(), |seq| seq.min(self.heard().low()))")],
        tests="replay::",
    ),
    Fault(
        "what was over before an epoch is not asked after",
        [Edit(CREATION, "let may_be_over = join.standing.resumed || self.identity.config.moves > 0;", "let may_be_over = join.standing.resumed;")],
    ),
    Fault(
        "a rank that was found dead and comes back is waited for by nobody",
        [Edit(CREATION, "if waits && let Some(fault)", "if !waits && let Some(fault)")],
    ),
    Fault(
        "signs of life after a long silence count for all of it",
        [Edit(PASSAGE, "if before.span.0 <= 2 * heartbeat.0 {", "if before.span.0 <= 2000 * heartbeat.0 {")],
        tests="passage",
    ),
    # Names of groups.
    Fault(
        "generation not incremented",
        [
            Edit(
                TABLE,
                "        self.generations[index.0 as usize] = self.generations[index.0 as usize].wrapping_add(1);\n",
                "",
            ),
        ],
    ),
    # Leases and their ends.
    Fault(
        "roll-back keeps credit",
        [Edit(STREAM, "        self.parent_credit = self.parent_credit.min(limit);\n", "")],
        tests="node::sat",
    ),
    Fault(
        "a rank keeps credit over a lease's end",
        [Edit(LEAF_SAT, "        self.credit = self.credit.min(end + self.staging);\n", "")],
    ),
    Fault(
        "StopAt overtakes segments",
        [
            Edit(LEAF_SAT, "seq: self.next, flags: FLAG_STREAM | FLAG_IN_TURN,", "seq: self.next, flags: FLAG_STREAM,"),
            Edit(LEASE, "seq: self.stop_at, flags: FLAG_STREAM | FLAG_IN_TURN,", "seq: self.stop_at, flags: FLAG_STREAM,"),
        ],
        tests="stays_behind",
    ),
    Fault(
        "a node sends on after its StopAt",
        [Edit(STREAM, "        self.silent = true;\n", "")],
        tests="node::sat",
    ),
    Fault(
        "a rank sends on after its StopAt",
        [Edit(LEAF_SAT, "while self.phase != Phase::Stopping && self.sent", "while self.sent")],
    ),
    Fault(
        "a lease ends at the most progress of its ranks",
        [
            Edit(LEASE, "self.stop_at = self.stop_at.min(end);", "self.stop_at = self.stop_at.max(end);"),
            Edit(LEASE, "(self.stops, self.stop_at, self.released) = (0, u64::MAX, 0);", "(self.stops, self.stop_at, self.released) = (0, 0, 0);"),
        ],
    ),
    Fault(
        "the end of a lease is off by one operation",
        [Edit(LEAF_SAT, "self.active.back().is_some_and(|o| o.base >= end)", "self.active.back().is_some_and(|o| o.base > end)")],
    ),
    Fault(
        "Revoke unanswered while idle",
        [Edit(LEAF_SAT, "        if lease == self.lease {\n", "        if lease == self.lease && !self.active.is_empty() {\n")],
    ),
    Fault(
        "a context is given back before the nodes below have",
        [Edit(LEASE, "let all_released = (self.released | left) & info.inner == info.inner;", "let all_released = true;")],
    ),
    Fault(
        "a lease waits for a child that has left",
        [Edit(LEASE, "let all_here = self.stops | left == info.all && self.stops & !left != 0;", "let all_here = self.stops == info.all && self.stops & !left != 0;")],
    ),
    # The lock's line.
    Fault(
        "the line is LIFO",
        [Edit(ARBITER, "self.line.push_back(Waiting { group, nodes, since: now });", "self.line.push_front(Waiting { group, nodes, since: now });")],
    ),
    Fault(
        "a group that waits in line claims no room",
        [Edit(ARBITER, "if !self.held.contains_key(&waiting.group) && self.room(&waiting.nodes, &claimed) {", "if !self.held.contains_key(&waiting.group) && self.room(&waiting.nodes, &BTreeMap::new()) {")],
        tests="lock::arbiter",
    ),
    Fault(
        "no holder is asked to stop for a second in line",
        [Edit(ARBITER, "                if staying + *claimed <= self.capacity {", "                if staying + 1 <= self.capacity {")],
        tests="lock::arbiter",
    ),
    # Windows.
    Fault(
        "a fragment is sent before the one a window below has its result",
        [Edit(LEAF_LLT, "seq.checked_sub(self.window).is_none_or(|before| self.got.contains(before))", "seq.checked_sub(self.window + 1).is_none_or(|before| self.got.contains(before))")],
    ),
    Fault(
        "what a child has is told of its neighbour",
        [Edit(DATAGRAM, "have: self.have(child, seq), have_base: seq", "have: self.have(ChildIndex(child.0 ^ 1), seq), have_base: seq")],
    ),
    Fault(
        "a node asks upward for every question",
        [Edit(DATAGRAM, "at.now.since(record.asked) >= ASK_UP_INTERVAL;", "at.now.since(record.asked) >= Nanos(0);")],
    ),
    Fault(
        "a result that one child lacks is sent to all",
        [Edit(DATAGRAM, "self.spread(at, slot, 1 << child.0);", "self.spread(at, slot, at.info.all | 1 << child.0);")],
    ),
    Fault(
        "a rank has more segments in flight than its flight",
        [Edit(LEAF_SAT, ".min(self.got + flight) {", ".min(self.got + flight + self.flight) {")],
    ),
    Fault(
        "a node sends segments beyond the parent's credit",
        [Edit(STREAM, "self.next_up < self.next_fold.min(self.parent_credit) {", "self.next_up < self.next_fold {")],
    ),
    Fault(
        "payload for segment",
        [Edit(STREAM, "let given = at.info.given(position, header, at.identity.config.limits.segment);", "let given = at.info.given(position, header, at.identity.config.limits.payload);")],
    ),
    Fault(
        "a result is no credit",
        [Edit(STREAM, "            *told = (*told).max(limit);\n", "            let _ = (&told, limit);\n")],
    ),
    # What a rank keeps.
    Fault(
        "only the last operation is kept",
        [Edit(KEPT, "        if self.recovers {\n            self.insert(operation);\n", "        if self.recovers {\n            self.insert(operation);\n            while self.operations.len() > 1 {\n                let first = self.operations.pop_front();\n                first.into_iter().for_each(|first| out.forget(first.id));\n            }\n")],
    ),
    Fault(
        "what is kept is not said",
        [Edit(KEPT, "let needed = if self.recovers { operation.given_from(stable) } else { 0..0 };", "let needed = 0..0;")],
    ),
    Fault(
        "what all hold is kept",
        [Edit(TIDINGS, "            kept.release(mark, out);\n", "")],
    ),
    Fault("a rank keeps more for others than it may", [Edit(ROOM, "        self.kept < self.most\n", "        true\n")]),
    Fault(
        "what has waited for room is not sent when there is room again",
        [Edit(LEAF, "        if self.room.take_reopened() {", "        if self.room.take_reopened() && false {")],
    ),
    Fault(
        "a rank without room replays nothing",
        [
            Edit(LEAF_LLT, "{ self.next.min(self.fresh) }", "{ 0 }"),
            Edit(LEAF_SAT, "is_open || first.base < self.unsent", "is_open"),
        ],
    ),
    Fault(
        "a rank that has freed a group hears no marks of it",
        [Edit(LEAF, "            (Kind::Mark, Path::Stream, _) if header.is_stream()", "            _ if group.said_left => {}\n            (Kind::Mark, Path::Stream, _) if header.is_stream()")],
    ),
    Fault(
        "a group that the program has freed is lost with its index",
        [Edit(LEAF, "_ => self.left_behind.get(&(header.group, header.generation)).copied(),", "_ => None,")],
        tests="seeds_that_once_failed",
        package="trib-sim",
    ),
    Fault(
        "what those lack that have left a group is kept for them",
        [Edit("node/marks.rs", "        self.hold(position, u64::MAX);\n", "")],
        tests="seeds_that_once_failed",
        package="trib-sim",
    ),
    Fault(
        "those that have left a group that fails keep its pieces",
        [Edit("node/group/mod.rs", "let targets = self.left & !self.silent;", "let targets = 0;")],
        tests="those_that_have_left_hear",
    ),
    Fault(
        "a rank without room sends nothing under a lease",
        [
            Edit(
                LEAF_SAT,
                "self.sent < self.next.min(self.credit)",
                "self.sent < self.next.min(if is_open { u64::MAX } else { self.unsent }).min(self.credit)",
            ),
        ],
        tests="flight",
    ),
    Fault(
        "a node does not hear in the first epoch that others wait",
        [Edit(NODE, "            self.ask_nodes_once(out);\n", "")],
        tests="seeds_that_once_failed",
        package="trib-sim",
    ),
    Fault(
        "nobody is missed in the first epoch",
        [Edit(NODE, "self.identity.config.moves > 0 || !self.pending.is_empty()", "self.identity.config.moves > 0")],
        tests="seeds_that_once_failed",
        package="trib-sim",
    ),
    Fault(
        "a node passes no marks on to those that have left",
        [Edit(DISPATCH, "let is_mark = link == Link::Parent && header.kind == Kind::Mark;", "let is_mark = false;")],
    ),
    Fault(
        "a rank says its mark only when nothing of the group is under way",
        [
            Edit(LEAF_LLT, "        self.tidings.hold(", "        self.operations.is_empty().then_some(()).map(|()| self.tidings.hold("),
            Edit(LEAF_LLT, "at.now, self.got.low());\n", "at.now, self.got.low()));\n"),
            Edit(LEAF_SAT, "        self.tidings.hold(", "        self.is_idle().then_some(()).map(|()| self.tidings.hold("),
            Edit(LEAF_SAT, "at.now, self.got);\n", "at.now, self.got));\n"),
        ],
    ),
    Fault(
        "a rank leaves before it has sent again what others need",
        [Edit(LEAF_GROUP, "if self.datagrams.is_idle() && self.streams.is_idle() {", "if true {")],
    ),
    # Agreement.
    Fault(
        "strict completes before all hold the result",
        [Edit(KEPT, "if self.strict && !operation.over {", "if self.strict && self.operations.len() == usize::MAX {")],
    ),
    Fault(
        "strict takes a window for the word of the root",
        [Edit(LEAF_LLT, "        if self.strict {\n            return self.tidings.stable();\n        }\n", "        if self.strict {\n            return self.got.low();\n        }\n")],
    ),
    Fault(
        "a rank forgets the stable mark of a refusal",
        [Edit(LEAF, "self.on_refused(&key, (fault, Marks::of(header)), out);", "self.on_refused(&key, (fault, Marks::default()), out);")],
        tests="strict::",
        package="trib-sim",
    ),
    Fault(
        "a refusal without what some rank has heard",
        [Edit(CREATION, "let mark = pending.heard;", "let mark = Marks::default();")],
        tests="strict::",
        package="trib-sim",
    ),
    Fault(
        "a fault overtakes the stable mark",
        [Edit(ENDING, "let (mark, from) = (group.last_word(&self.identity), ", "let (mark, from) = (Marks::default(), ")],
        tests="strict::",
        package="trib-sim",
    ),
    Fault(
        "a node fails a group without its root",
        [Edit(ENDING, "(false, _) | (true, Duty::Relay) => self.conclude", "(false, _) | (true, Duty::Relay | Duty::Inner) => self.conclude")],
        tests="strict::",
        package="trib-sim",
    ),
    Fault(
        "a child that reports a fault gets no answer",
        [Edit(ENDING, "from.filter(|link| *link == Link::Parent));", "from);")],
    ),
    Fault(
        "a rank that frees a group fails what others may have completed",
        [Edit(LEAF_GROUP, "let below = if edge.config.strict { held } else { Marks::default() };", "let below = Marks::default();")],
        tests="strict::",
        package="trib-sim",
    ),
    Fault(
        "the last word is forgotten with the group",
        [Edit(CONCLUDED, "self.endings.insert(key, Ending { fault, mark, name, awaited: is_awaited && name.is_some() });", "let _ = (key, Ending { fault, mark, name, awaited: is_awaited && name.is_some() });")],
        tests="replay::",
    ),
    Fault(
        "a rank that is refused takes it that all others hear of that, too",
        [Edit(LEAF, "self.concluded.is_awaited() || !self.untold.is_empty()", "self.concluded.is_awaited()")],
        tests="replay::",
    ),
    Fault(
        "a rank takes the refusal of an earlier epoch for what all know",
        [Edit(LEAF, "        self.untold.values_mut().for_each(|said| *said = false);\n", "")],
        tests="replay::",
    ),
    Fault(
        "why a group has failed is forgotten with it",
        [Edit(LEAF, "        if self.edge.config.recovers {\n            self.concluded.add(", "        if self.edge.config.strict {\n            self.concluded.add(")],
        tests="replay::",
    ),
    Fault(
        "a rank remembers every creation that was refused",
        [Edit(CONCLUDED, "if self.refused.len() > REFUSED_MOST", "if self.refused.len() > 2 * REFUSED_MOST")],
        tests="concluded::",
    ),
    Fault(
        "of what a member streams only the newest is known",
        [Edit(GROUP, "let last = if header.kind == Kind::Intent { asked } else { streamed };", "let _ = asked;\n        let last = streamed;")],
        tests="node::group::",
    ),
    Fault(
        "a rank that waits asks as often as at first",
        [Edit(LEAF_LLT, "Nanos(2 * self.pause.0.max(at.round_trip.timeout().0)).min(longest)", "at.round_trip.timeout().min(longest)")],
    ),
    Fault(
        "the groups of a rank ask in step",
        [Edit("leaf/rtt.rs", " ^ group.0 << 52)", " ^ (group.0 & 0))")],
        tests="rtt::",
    ),
    Fault(
        "groups that go count against the quota",
        [Edit(CREATION, "self.over_quota(charge, bytes, &self.going())", "self.over_quota(charge, bytes, &Census::default())")],
    ),
    Fault(
        "a creation takes room in the quota before that is free",
        [Edit(CREATION, "        standing.waits |= is_full;\n", "")],
        tests="membership::",
    ),
    Fault(
        "every node waits for room in the quota",
        [Edit(CREATION, "        if self.identity.config.parent.is_some() {\n            return self.table", "        if standing.waits && self.identity.config.parent.is_some() {\n            return self.table.iter().any(Group::is_going) || self.table")],
        tests="membership::",
    ),
    Fault(
        "a creation waits for the room of a group that is in use",
        [Edit(GROUP, "self.left | self.freed == self.info.all", "self.left | self.freed != 0")],
        tests="membership::",
    ),
    Fault(
        "nobody looks after creations that wait for room",
        [Edit(CREATION, "            self.creations_wait = true;\n            return;\n", "            return;\n")],
    ),
    Fault(
        "a node asks for a group before it has left what those below have freed",
        [Edit(GROUP, "self.is_going() && self.freed != self.info.all", "false")],
        tests="membership::",
    ),
    Fault(
        "a rank asks for a group before it has left what it has freed",
        [Edit(LEAF, "        if self.owes_a_leave() {\n            self.joins_wait = true;\n        } else if", "        if")],
        tests="replay::",
    ),
    Fault(
        "what a given-up contribution was to say is not said",
        [Edit(LEAF_GROUP, "            self.datagrams.tidings.hold(now, held.fragments);\n            self.streams.tidings.hold(now, held.segments);\n", "            let _ = held;\n")],
        tests="replay::",
    ),
    Fault(
        "a rank that frees a group asks no more for what is undecided",
        [Edit(LEAF_LLT, "        if self.is_idle() {\n            self.deadline = Nanos::NEVER;\n        }\n        names\n", "        if self.operations.is_empty() {\n            self.deadline = Nanos::NEVER;\n        }\n        names\n")],
        tests="replay::",
    ),
    Fault(
        "a rank that gives up a datagram waits for others on the stream",
        [Edit(LEAF_GROUP, "(self.datagrams.holds_others_up() || self.streams.holds_others_up())", "self.streams.holds_others_up()")],
        tests="replay::",
    ),
    Fault(
        "a rank that gives up a segment waits for others by datagram",
        [Edit(LEAF_GROUP, "(self.datagrams.holds_others_up() || self.streams.holds_others_up())", "self.datagrams.holds_others_up()")],
        tests="replay::",
    ),
    Fault(
        "a rank fails a group for what it has never sent",
        [Edit(LEAF_SAT, "self.gave_up_sent |= operation.base < self.unsent;", "self.gave_up_sent = true;")],
        tests="replay::",
    ),
    Fault(
        "what was given up is asked after though its result has come",
        [Edit(LEAF_LLT, "            self.hear(at, header.seq);\n", "            if false {\n                self.hear(at, header.seq);\n            }\n")],
        tests="replay::",
    ),
    Fault(
        "what was given up counts as lost on the way",
        [Edit(LEAF_LLT, "let is_there = is_given_up || behind", "let is_there = false && is_given_up || behind")],
        tests="replay::",
    ),
    Fault(
        "a rank that leaves without a result is not missed",
        [Edit(ENDING, "            .or_else(|| waiting_for_the_mark(identity, group, position));\n", ";\n        let _ = waiting_for_the_mark(identity, group, position);\n")],
    ),
    Fault(
        "marks of contributions wait for the last one",
        [Edit(NODE_MARKS, "        if self.prompt {\n            self.go_on(at, self.told);\n        }\n", "        let _ = at;\n")],
    ),
    Fault(
        "a node that was taken for dead waits for a verdict about ranks that have done",
        [Edit(CREATION, "!join.standing.all_left || self.identity.is_node(child) ||", "!join.standing.all_left ||")],
        tests="node::membership::",
    ),
    Fault(
        "who has given up results begins the next epoch with them",
        [Edit(LEAF_LLT, "if !self.strict && !names.is_empty() {", "if self.next == u64::MAX {")],
        tests="recovery::who_has_given_up",
        package="trib-sim",
    ),
    Fault(
        "a mark that comes before the first contribution is lost",
        [Edit(DISPATCH, "                if at.info.duty == Duty::Relay {\n                    return;\n                }\n                let marks = if is_stream {", "                if group.datagrams.is_none() && group.streams.is_none() {\n                    return;\n                }\n                let marks = if is_stream {")],
        tests="node::dispatch::",
    ),
    Fault(
        "a mark that a lost contribution has told is not told again when somebody asks",
        [Edit(NODE_MARKS, "        if self.prompt {\n            self.go_on(at, self.sure);\n        }\n", "        if self.prompt {\n            self.go_on(at, self.told);\n        }\n")],
        tests="node::marks::",
    ),
    Fault(
        "a mark that a lost contribution has told is not told again by frames of their own",
        [Edit(NODE_MARKS, "        self.hold(position, mark);\n        self.go_on(at, self.sure);\n", "        self.hold(position, mark);\n        self.go_on(at, self.told);\n")],
        tests="node::marks::",
    ),
    # Epochs.
    Fault(
        "no fence: frames of an epoch that is over are taken",
        [
            Edit(
                NODE,
                "if frame.header.job != self.identity.config.job || frame.header.epoch != self.identity.config.epoch {",
                "if frame.header.job != self.identity.config.job {",
            ),
            Edit(LEAF, "let ours = header.job == config.job && header.epoch == config.epoch;", "let ours = header.job == config.job;"),
            Edit(LEAF, "if header.job != self.edge.config.job || header.epoch != self.edge.config.epoch {", "if header.job != self.edge.config.job {"),
        ],
    ),
    Fault(
        "an epoch's start is decided without one child's marks",
        [Edit(PENDING, "self.standing = Some(self.standing.map_or(join.standing, |standing| standing.with(join.standing)));", "self.standing = Some(join.standing);")],
    ),
    Fault(
        "the marks of ranks that have left count",
        [Edit(MARKS, "            (true, _) => (other.companion, other.marks),\n            (_, true) => (self.companion, self.marks),\n", "")],
        tests="who_has_left",
        package="trib-wire",
    ),
    Fault(
        "a suspicion of an epoch that is over counts",
        [Edit(VIEW, "epoch == self.epoch() && self.told(&self.placement.without(node))", "epoch <= self.epoch() && self.told(&self.placement.without(node))")],
        tests="placing::view",
    ),
    # Placing.
    Fault(
        "a process hosts a node that the placement gives to another",
        [Edit(HOST, "if view.placement().candidate(node, candidates) != me || seat.hosted.is_some() {", "if view.placement().candidate(node, candidates) > candidates || seat.hosted.is_some() {")],
        tests="placing::host",
    ),
    Fault(
        "all candidates of a child have the same keys",
        [Edit(HELD, "&[&child.0.to_le_bytes(), &candidate.to_le_bytes()]", "&[&child.0.to_le_bytes(), &[0; 2], &candidate.to_le_bytes()[..0]]")],
        tests="has_its_own_key",
        package="trib-keys",
    ),
    Fault(
        "the key of a node's datagrams outlives a move",
        [Edit(HELD, '"tributary v1 results", &[&placement_to_bytes(placement)]', '"tributary v1 results", &[&placement_to_bytes(placement)[..0]]')],
        tests="has_its_own_key",
        package="trib-keys",
    ),
    Fault(
        "a child that has moved is expected with its first keys",
        [Edit(GRANT, "ChildKind::Node(node) => placement.candidate(*node, usize::from(*candidates)) as u16,", "ChildKind::Node(_) => candidates * 0,")],
        tests="the_keys_of_a_child",
        package="trib-messages",
    ),
    Fault(
        "a child that has confirmed and forgotten is accepted again",
        [Edit(HOST, "Some(hosted) if !hosted.confirmed.contains(&child.0) => Answer::Accept,", "Some(_) => Answer::Accept,")],
        tests="placing::host",
    ),
    Fault(
        "the root's other candidates are told once",
        [Edit(HOST, "*due = now + TELL_AGAIN;", "*due = Nanos::NEVER;")],
    ),
    Fault(
        "a candidate of the root that has heard of a move is not told again",
        [Edit(HOST, "            *due = now + TELL_AFRESH;\n", "            *due = Nanos::NEVER;\n            let _ = now;\n")],
        tests="placing::host",
    ),
    Fault(
        "a call waits for its answer without end",
        [Edit(CALLER, "self.state = State::Calling(now + Nanos(span));", "self.state = State::Calling(Nanos(Nanos::NEVER.0 - span));")],
    ),
    Fault(
        "a call that failed counts no move",
        [Edit(CALLER, "        view.suspect(self.node, view.epoch())\n", "        let _ = view;\n        false\n")],
    ),
    Fault(
        "calls follow each other without a pause",
        [Edit(CALLER, "        self.state = State::Due(now + pause);\n", "        self.state = State::Due(now + Nanos(pause.0 * 0));\n")],
        tests="placing::caller",
    ),
    Fault(
        "a connection without fruit forgives the calls before it",
        [Edit(CALLER, "    pub fn on_accepted(&mut self) {\n", "    pub fn on_accepted(&mut self) {\n        self.fruitless = 0;\n")],
        tests="placing::caller",
    ),
    # Signs of life.
    Fault(
        "a stopped process judges others",
        [Edit(LIVENESS, "if is_strict && is_late { Nanos(0) } else { self.due.since(since) }", "if is_strict && is_late { self.now.since(since) } else { self.now.since(since) }")],
        tests="liveness",
    ),
    Fault(
        "one silent second is death",
        [Edit(LIVENESS, "const QUESTIONS_MIN: u64 = 3;", "const QUESTIONS_MIN: u64 = 0;"), Edit(LIVENESS, "self.silence >= self.peer.patience(limits)", "self.silence >= self.peer.patience(limits).min(limits.heartbeat)")],
    ),
    Fault(
        "patience does not grow with epochs that bear no fruit",
        [Edit(LIVENESS, "NODE_PATIENCE.0 << fruitless.min(DOUBLINGS_MAX)", "NODE_PATIENCE.0 << fruitless.min(0)")],
        tests="liveness",
    ),
    Fault(
        "all is sent again though most of it is lost again",
        [Edit(RESENDS, "self.most = (count / 2).max(1);", "self.most = count;")],
        tests="resends",
    ),
    # The quota.
    Fault(
        "quota asked at the first join",
        [Edit(CREATION, "            self.open_pending(pending);\n        }\n        let Some", "            self.open_pending(pending);\n            let early = self.pending.get(key).and_then(|pending| self.over_quota(pending.charge(), 0, &Census::default())).filter(|_| !join.standing.exists);\n            let early = early.map(|reason| self.identity.about(reason, key.members.nth(0).unwrap_or(Rank(0))));\n            if let Some(pending) = self.pending.get_mut(key) {\n                pending.fault = pending.fault.or(early);\n            }\n        }\n        let Some")],
    ),
    Fault(
        "a verdict gives no room in the quota back",
        [Edit(CREATION, "            self.reserved.take_off(pending.charge(), pending.footprint());\n", "")],
    ),
    Fault(
        "groups have all the memory that they like",
        [Edit(CREATION, "            return Some(Reason::GroupMemory);\n", "")],
        tests="membership::",
    ),
    Fault(
        "a group that is gone keeps its memory",
        [Edit("node/info.rs", "        *self.of(charge) -= 1;\n        self.bytes -= bytes;\n", "        *self.of(charge) -= 1;\n        let _ = bytes;\n")],
        tests="membership::",
    ),
    Fault(
        "creations have all the memory that they like",
        [Edit(CREATION, " || (!may_be_over && made > limits.creations())", "")],
        tests="membership::",
    ),
    Fault(
        "creations that wait for the verdict take more than the parent gathers",
        [Edit(CREATION, "let made = self.creations + self.reserved.bytes() + more;", "let made = self.creations + more;")],
        tests="membership::",
    ),
    Fault(
        "a creation that is over keeps its memory",
        [Edit(CREATION, "        self.creations -= pending.footprint();\n", "")],
        tests="membership::",
    ),
    Fault(
        "the quota is not asked",
        [Edit(CREATION, "        pending.fault = pending.fault.or(quota);\n", "        let _ = quota;\n")],
        tests="quota",
    ),
    Fault(
        "a rank that is known to be gone is waited for",
        [Edit(NODE, "        if self.absent.is_missing(child) {\n            self.absent.called(child);", "        if self.absent.is_missing(child) && child.0 == u16::MAX {\n            self.absent.called(child);")],
    ),
    Fault(
        "a rank that has called is taken for gone on hearsay",
        [Edit(NODE, "        if self.absent.is_missing(child) {\n            self.absent.called(child);", "        if self.absent.is_missing(child) || child.0 < 64 {\n            self.absent.called(child);")],
        tests="who_is_known_to_be_gone",
    ),
    Fault(
        "a node that the first rank deserts ends",
        [Edit(NODE, "(0..self.identity.config.children.len()).all(|child| self.was_lost", "(0..self.identity.config.children.len()).any(|child| self.was_lost")],
        tests="a_node_is_deserted",
    ),
    Fault(
        "a node that all ranks desert goes on elsewhere",
        [Edit(NODE, "(0..self.identity.config.children.len()).all(|child| self.was_lost", "(0..=self.identity.config.children.len()).all(|child| self.was_lost")],
        tests="ranks_that_leave_together",
        package="trib-sim",
    ),
    Fault(
        "a group and its companion are two in the quota of groups",
        [Edit(CREATION, "        if groups > limits.groups as usize {", "        let other = Charge { companion: !charge.companion, ..charge };\n        if groups + self.charged(other) > limits.groups as usize {")],
        tests="companion",
    ),
    Fault(
        "companions take no slots",
        [Edit(CREATION, "let folding = groups + self.charged(other) - less.count(other);", "let folding = groups + 0 * less.count(other);")],
        tests="companion",
    ),
    Fault(
        "heartbeats of ranks do not say what went over boards",
        [Edit(LEAF, "Header { op_seq: self.at_boards, ..self.edge.header(Kind::Heartbeat) }", "Header { op_seq: 0, ..self.edge.header(Kind::Heartbeat) }")],
        tests="over_boards",
    ),
    Fault(
        "who gives at a board and has a processor of its own wakes nobody",
        [Edit(BOARDS, "            self.wake_for(self.given, cut, bell);\n", "            let _ = bell;\n")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "who gives at a board and shares its processor wakes nobody",
        [Edit(BOARDS, "        self.wake_for_given(before, bell);\n", "")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "who does a short operation at a board wakes nobody",
        [Edit(BOARDS_SHORT, "            self.wake_takers(number, cut, bell);\n            self.wake(Wish::Room, bell);\n", "")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "who takes from a board and has a processor of its own wakes nobody that waits for room",
        [Edit(BOARDS, "            if self.board.take(self.taken) && self.is_roomy {\n                self.wake(Wish::Room, bell);\n            }\n", "            self.board.take(self.taken);\n")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "who takes from a board and shares its processor wakes nobody that waits for room",
        [Edit(BOARDS, "        if !self.is_roomy && self.taken > before && self.board.has_sleepers() {\n            self.wake(Wish::Room, bell);\n        }\n", "")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "who folds the last portion at a board wakes nobody",
        [Edit(BOARDS, "        self.has_made_whole |= self.board.fold_done(", "        self.board.fold_done(")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "a head wakes nobody for its answer",
        [Edit(BOARDS, "            if self.board.has_sleepers() {\n                self.wake(Wish::Answer, bell);\n            }\n", "")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "who leaves a board wakes nobody",
        [Edit(BOARDS, "            [Wish::Pieces, Wish::Room, Wish::Answer].into_iter().for_each(|wish| self.wake(wish, bell));\n", "")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "who falls asleep at a board does not look once more",
        [Edit(BOARDS_WAITING, "        lookout.has_come() || self.heads().is_some_and(Heads::has_come) ||", "        lookout.known == u64::MAX ||")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "a member gives to a board where another has not taken",
        [Edit(BOARD, "        let needed = (piece + 1).saturating_sub(WINDOW);\n        if *known < needed {", "        let needed = piece.saturating_sub(WINDOW);\n        if *known < needed {")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "what a member had taken when it gave is told too high",
        [Edit(BOARD, "        self.cell(piece, self.me).show(piece, signature, taken);\n", "        self.cell(piece, self.me).show(piece, signature, taken + WINDOW);\n")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "a sum is taken from a board before all of it is folded",
        [Edit(BOARDS, "                _ => self.board.is_folded(self.taken, portions),\n", "                _ => is_given(&self.board, self.taken, Need::All),\n")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "a head sends up what not all have given",
        [Edit(BOARDS, "            if !is_given(&self.board, number, Need::All) || portions", "            if portions")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "nobody compares at a board what was called",
        [Edit(BOARDS_COMPARING, "        let Some(other) = other else { return Ok(()) };\n", "        let Some(other) = other.filter(|_| piece == u64::MAX) else { return Ok(()) };\n")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "short operations at a board are not compared",
        [Edit(BOARD, "(cell.signature() == signature).then(", "(cell.signature() != [u64::MAX; 2] || signature == [0; 2]).then(")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "room that one holds up who has left a board is waited for",
        [Edit(BOARDS, "                    self.look_for_gone()?;\n", "")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "who waits for all at a board does not hear of a bcast",
        [Edit(BOARDS, "                self.look_for_odd(&cut, need)?;\n", "")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "who falls asleep at a board does not see who has just left",
        [Edit(BOARDS_WAITING, " || self.is_left_alone(lookout.give.is_some())\n", "\n")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "who has left a board is waited for",
        [Edit(BOARDS_COMPARING, "has_left(*member) && !self.board.has_given(self.taken, *member)", "has_left(*member) && self.posted == 0")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "what is on its way to a board when its group fails is lost",
        [Edit(BOARDS, "        while self.land(bell, trunk).unwrap_or(false) | self.take(bell).unwrap_or(false) {}\n", "        let _ = (bell, trunk);\n")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "a host lays the blocks of its ranks one after the other",
        [Edit(BOARDS_PIECE, "            copy(given, &mut into[*rank as usize * block..][..block]);\n", "            let _ = rank;\n            copy(given, &mut into[member * block..][..block]);\n")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "a rank waits for the bytes of its own block of an allgather",
        [Edit(OPERATION, "            return self.cut.before(number) - self.cut.before_inside(number, &self.given);\n", "            return self.cut.before(number);\n")],
        tests="operation",
    ),
    Fault(
        "where blocks take turns a rank keeps too little for others",
        [Edit(OPERATION, "self.given.start + self.cut.before_inside(number, &self.given)..", "self.given.start + self.cut.before_inside(number + self.cut.blocks, &self.given)..")],
        tests="operation",
    ),
    Fault(
        "where blocks take turns a rank's own one is left out",
        [Edit(BOARDS_PIECE, "            cut.given(index).for_each(|elements| memory.keep(&elements));\n", "            let _ = &memory;\n")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "a rank has nothing of its own block of an allgather",
        [Edit("../../client/src/memory.rs", "        if from != to.cast_const() && !elements.is_empty() {\n", "        if from != to.cast_const() && elements.is_empty() {\n")],
        tests="memory",
        package="trib-client",
    ),
    Fault(
        "where blocks take turns hosts do not alternate",
        [Edit("../../client/src/engine/boards/span.rs", "(0..most).flat_map(|at| all.iter().filter_map(move |members| members.get(at).copied())).collect()", "(0..members.len()).collect()")],
        tests="span",
        package="trib-client",
    ),
    Fault(
        "a rank whose turn it is has the number of its neighbour on the board",
        [Edit(BOARDS, "cut.in_turn(rank, span.find(rank)", "cut.in_turn(rank, span.find(rank + 1)")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "a member that has no board agrees to boards",
        [Edit(BOARDS_FOUNDING, "self.agree(now, tree, board.is_some() && is_made)?", "self.agree(now, tree, is_made)?")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "a head without a group of heads agrees to boards",
        [Edit(BOARDS_FOUNDING, "self.agree(now, tree, board.is_some() && is_made)?", "self.agree(now, tree, board.is_some())?")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "a board that is lost on its way is waited for",
        [Edit(BOARDS_FOUNDING, "            Step::Meeting(meeting) => meeting.until,\n", "            Step::Meeting(_) => Nanos::NEVER,\n")],
        tests="boards::tests",
        package="trib-client",
    ),
    Fault(
        "pieces are as long as what the program has",
        [Edit(FORMAT, "let size = self.arithmetic(dtype, ReduceOp::Sum).element_size() as u64;", "let size = dtype.size() as u64;")],
        tests="format",
        package="trib-wire",
    ),
    Fault(
        "a block of int8 is cut in the middle",
        [Edit(FORMAT, "            Arithmetic::Int8Blocks => INT8_BLOCK_BYTES,\n", "            Arithmetic::Int8Blocks => 4,\n")],
        tests="format",
        package="trib-wire",
    ),
    Fault(
        "a survey says nothing of minus zeros",
        [Edit(SURVEY, "let tail = if has_other { 2 } else { i16::from(has_minus) };", "let tail = if has_other { 2 } else { 0 };")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "a survey says nothing of what is no number",
        [Edit(SURVEY, "let tail = if has_other { 2 } else { i16::from(has_minus) };", "let tail = i16::from(has_minus);")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "a survey leaves the finest bits out",
        [Edit(SURVEY, "let exponent = own.unit + own.magnitude.trailing_zeros() as i32;", "let exponent = own.unit + own.magnitude.trailing_zeros() as i32 + 1;")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "a survey heeds the first element alone",
        [Edit(SURVEY, "largest = largest.max(if is_other { 0 } else { magnitude });", "largest = if largest > 0 || is_other { largest } else { magnitude };")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "a limb has no room for the members",
        [Edit(SHAPE, "(8 * self.bytes() as u32 - 1).saturating_sub(counter)", "(8 * self.bytes() as u32 - 1).saturating_sub(counter / 2)")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "counters have no room for all members",
        [Edit(SHAPE, "let counter = u32::BITS - members.leading_zeros();", "let counter = (u32::BITS - members.leading_zeros()).max(2) - 1;")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "the unit of a fixed sum is too coarse",
        [Edit(SHAPE, "let unit = top.max(F::FINEST + 1) - bits as i32;", "let unit = top.max(F::FINEST + 1) - bits as i32 + 12;")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "a sum of negative numbers is minus zero",
        [Edit(TAIL, "0 => bits != F::SIGN,", "0 => bits & F::SIGN == 0,")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "infinities of both signs are infinite",
        [Edit(TAIL, "if no_number || (infinite && minus_infinite) {", "if no_number {")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "ties are rounded up",
        [Edit(FLOAT, "rest > half || (rest == half && whole & 1 == 1)", "rest >= half")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "what is lost below the last bits is forgotten",
        [Edit(FLOAT, "(magnitude >> lost) as u64 | u64::from(sticky)", "(magnitude >> lost) as u64")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "a sum is rounded before all limbs are there",
        [Edit(SETTLE, "for number in 0..shape.limbs {", "for number in 0..shape.limbs - 1 {")],
        tests="sum",
        package="trib-sums",
    ),
    Fault(
        "all blocks are rounded alike",
        [Edit(BLOCK, "let offsets = noise::offsets(seed);", "let offsets = noise::offsets(0);")],
        tests="average",
        package="trib-reduce",
    ),
    Fault(
        "codes are cut off instead of rounded",
        [Edit(BLOCK, "(value * inverse + offset + ALIGN)", "(value * inverse + ALIGN)")],
        tests="average",
        package="trib-reduce",
    ),
    Fault(
        "the scale of a block is too small",
        [Edit(BLOCK, "const LARGEST_BIAS: u32 = 7;", "const LARGEST_BIAS: u32 = 8;")],
        tests="fold",
        package="trib-reduce",
    ),
    Fault(
        "a block with what is no number has numbers",
        [Edit(BLOCK, "if scale > SCALE_MAX { f32::NAN } else", "if scale > SCALE_MAX { 1.0 } else")],
        tests="no_number",
        package="trib-reduce",
    ),
    Fault(
        "a sum of blocks has the first one's seed",
        [Edit(BLOCKS, "                seeds.add(block::head(own));\n", "")],
        tests="bytes_of_a_block",
        package="trib-reduce",
    ),
    Fault(
        "the order of blocks changes no seed",
        [Edit(NOISE, "self.0 = self.0.wrapping_mul(STEP).rotate_left(13) ^ head;", "self.0 ^= head;")],
        tests="seeds",
        package="trib-reduce",
    ),
]
