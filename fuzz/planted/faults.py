"""Faults for the fuzzers to find, one for each target: mistakes of the kind that they are there for.

A fault is an exact replacement; the text to replace must be in its file exactly once. Faults of one round
are planted together, so those of one round are in code that only their own targets run.
"""

from typing import NamedTuple


class Planted(NamedTuple):
    """What is broken, and which target has to notice it."""

    target: str
    what: str
    file: str
    old: str
    new: str
    round: int = 1


FAULTS = [
    Planted("admission", "two processes may be the same rank", "crates/manager/src/programs/rendezvous.rs",
            "} else if self.present.contains_key(number) {", "} else if self.size == 0 {"),
    Planted("header", "the number of an operation may be any", "crates/wire/src/header.rs",
            "if self.seq.max(self.op_seq) > NUMBER_MAX {", "if self.seq > NUMBER_MAX {"),
    Planted("body", "of late ranks the runs are counted instead of the ranks", "crates/wire/src/body.rs",
            "if late.ranks.len() > LATE_MAX {", "if late.ranks.runs().len() > LATE_MAX as usize {"),
    Planted("hello", "bytes behind a Hello are overlooked", "crates/wire/src/hello.rs",
            "Placement::parse_entries(&mut tail, entries)?;\n        tail.end()?;\n        let hello",
            "Placement::parse_entries(&mut tail, entries)?;\n        let hello"),
    Planted("messages", "the group of a question is not written", "crates/messages/src/request.rs",
            """        /// The tag of those of its groups that this is about; without a tag, it is about all of the
        /// job.
        #[serde(default)]
""", """        /// The tag of those of its groups that this is about; without a tag, it is about all of the
        /// job.
        #[serde(default, skip_serializing)]
"""),
    Planted("channel", "a message is taken before its last bytes are there", "crates/control/src/frame.rs",
            "if bytes.len() < LENGTH_BYTES + length {", "if bytes.len() < length {"),
    Planted("http", "the query stays with the path", "crates/service/src/metrics/request.rs",
            "target.split('?').next().unwrap_or_default().to_owned()", "target.to_owned()"),
    Planted("topology", "an identifier becomes a name as it is", "crates/topology/src/graph/ibnetdiscover.rs",
            "if name.is_empty() || is_shared { plain(device.id) }", "if name.is_empty() || is_shared { device.id.to_owned() }"),
    Planted("hostlist", "leading zeros are forgotten where names are brought together", "crates/topology/src/hostlist.rs",
            "let width = if last.starts_with('0') || next.starts_with('0') { last.len() } else { 0 };", "let width = 0;"),
    Planted("node", "a parent's grants take one stream context more than there are", "crates/proto/src/node/lease/locking.rs",
            "if folds && self.streams_held() >= ", "if folds && self.streams_held() > "),
    Planted("leaf", "an answer about later fragments is taken for one about earlier ones", "crates/proto/src/leaf/llt.rs",
            "low.checked_sub(held.have_base).filter(", "Some(low - held.have_base).filter(", round=2),
    Planted("worker", "a job's frames are taken however much work they make", "crates/node/src/worker/links.rs",
            "let allowance = if is_shared { self.shares.work.left(number) } else { u64::MAX };", "let allowance = u64::MAX;"),
]
