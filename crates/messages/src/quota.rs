//! The fields of a job's quota: their names, units, ranges, defaults and meanings, in one table.
//!
//! Everything else about a field is made from its row: what `TRIB_QUOTA` and the topology file
//! take, what the manager grants, what a node and a rank accept, and the table in
//! `docs/topology.md`. So a value that one of them takes is never refused by the next.

use core::fmt;

use trib_wire::Mode;
use trib_wire::datatype::ELEMENT_MAX;
use trib_wire::header::{DATAGRAM_MAX, PAYLOAD_MAX, WINDOW_MAX};

use crate::candidates::{BACKUPS_MAX, DEPUTIES_MAX};
use crate::job::{LANES_MAX, Limits};
use crate::levels::Levels;
use crate::policy::Recovery;
use crate::request::QuotaAsk;

/// A field of the quota.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the table says what each means")]
pub enum QuotaField {
    Groups,
    Window,
    Osts,
    Payload,
    Streams,
    Segment,
    Staging,
    Flight,
    ControlMemory,
    StreamThreshold,
    LeaseOperations,
    HeartbeatMs,
    DeadAfterMs,
    NodeMemory,
    Lanes,
    Trees,
    StripeThreshold,
    Backups,
    Deputies,
    DeputyMemory,
    RankMemory,
    Recovery,
    Levels,
    DataPath,
}

/// Who may say something about a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speaker {
    /// The fabric bounds it, and a job may ask for it.
    Both,
    /// The fabric's file alone.
    Fabric,
    /// A job alone.
    Job,
}

/// What is to be known about a field.
#[derive(Clone, Copy, Debug)]
pub struct QuotaRow {
    /// The field.
    pub field: QuotaField,
    /// Its name wherever people write it.
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// The smallest value that means anything.
    pub least: u64,
    /// The largest value that means anything.
    pub most: u64,
    /// Every value is a multiple of this.
    pub step: u64,
    /// What a job gets that does not ask, on a fabric that says nothing else.
    pub default: u64,
    /// The most that a job gets, on a fabric that says nothing else.
    pub maximum: u64,
    /// The values by their names, if they are no numbers to people.
    pub names: &'static [&'static str],
    /// Who may say something about it.
    pub speaker: Speaker,
    /// The buffers that one of it costs a logical node with n children; empty: none.
    pub memory: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// A value outside its field's range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfRange {
    /// The field.
    pub field: QuotaField,
    /// The value.
    pub value: u64,
}

impl QuotaField {
    /// All fields, in the order of the table.
    pub fn all() -> impl Iterator<Item = QuotaField> {
        QUOTA.iter().map(|row| row.field)
    }

    /// The field with this name.
    pub fn from_name(name: &str) -> Option<QuotaField> {
        QUOTA.iter().find(|row| row.name == name).map(|row| row.field)
    }

    /// What is to be known about it.
    pub fn row(self) -> &'static QuotaRow {
        &QUOTA[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether a job may ask for it.
    pub fn may_be_asked(self) -> bool {
        self.row().speaker != Speaker::Fabric
    }

    /// Whether a fabric's file may bound it.
    pub fn may_be_bounded(self) -> bool {
        self.row().speaker != Speaker::Job
    }

    /// Reads a value as people write it.
    pub fn read(self, text: &str) -> Option<u64> {
        match self.row().names {
            [] => text.parse().ok(),
            names => names.iter().position(|name| *name == text).map(|at| at as u64),
        }
    }

    /// Refuses a value that means nothing.
    pub fn check(self, value: u64) -> Result<(), OutOfRange> {
        let QuotaRow { least, most, step, .. } = *self.row();
        if (least..=most).contains(&value) && value.is_multiple_of(step) {
            return Ok(());
        }
        Err(OutOfRange { field: self, value })
    }
}

impl QuotaRow {
    /// A value in words, with the unit.
    pub fn amount(&self, value: u64) -> impl fmt::Display {
        Amount(*self, value)
    }

    /// A value as people write it.
    pub fn written(&self, value: u64) -> impl fmt::Display {
        Amount(QuotaRow { unit: "", ..*self }, value)
    }

    /// Its range in words, with the unit.
    pub fn range(&self) -> impl fmt::Display {
        Range(*self)
    }
}

/// See [`QuotaRow::amount`].
struct Amount(QuotaRow, u64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Amount(QuotaRow { names, unit, .. }, value) = *self;
        match usize::try_from(value).ok().and_then(|at| names.get(at)) {
            Some(name) => f.write_str(name),
            None if unit.is_empty() => write!(f, "{value}"),
            None => write!(f, "{value} {unit}"),
        }
    }
}

/// See [`QuotaRow::range`].
struct Range(QuotaRow);

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuotaRow { least, most, step, unit, names, .. } = self.0;
        if let [others @ .., last] = names {
            for (at, name) in others.iter().enumerate() {
                write!(f, "{}{name}", if at > 0 { ", " } else { "" })?;
            }
            return write!(f, " or {last}");
        }
        match most {
            u64::MAX => write!(f, "{least} or more {unit}")?,
            _ => write!(f, "{least} to {most} {unit}")?,
        }
        if step > 1 {
            write!(f, ", a multiple of {step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.field.row();
        write!(f, "{} = {} is out of range: it is {}", row.name, self.value, row.range())
    }
}

impl core::error::Error for OutOfRange {}

impl QuotaAsk {
    /// What the job asks for of a field.
    pub fn get(&self, field: QuotaField) -> Option<u64> {
        match field {
            QuotaField::StreamThreshold => self.stream_threshold,
            QuotaField::StripeThreshold => self.stripe_threshold,
            QuotaField::RankMemory => self.rank_memory,
            QuotaField::Recovery => self.recovery.map(Recovery::number),
            QuotaField::Levels => self.levels.map(Levels::number),
            QuotaField::DataPath => self.data_path.map(|mode| mode.code().into()),
            field => self.number(field).map(u64::from),
        }
    }

    /// Asks for a value in its range. Fields that no job may ask for stay as they are.
    pub fn ask(&mut self, field: QuotaField, value: u64) -> Result<(), OutOfRange> {
        field.check(value)?;
        match field {
            QuotaField::StreamThreshold => self.stream_threshold = Some(value),
            QuotaField::StripeThreshold => self.stripe_threshold = Some(value),
            QuotaField::RankMemory => self.rank_memory = Some(value),
            QuotaField::Recovery => self.recovery = Recovery::from_number(value),
            QuotaField::Levels => self.levels = Levels::from_number(value),
            QuotaField::DataPath => self.data_path = u8::try_from(value).ok().and_then(Mode::from_code),
            field => {
                if let Some(number) = self.number_mut(field) {
                    *number = u32::try_from(value).ok();
                }
            }
        }
        Ok(())
    }

    /// Refuses values that mean nothing.
    pub fn check(&self) -> Result<(), OutOfRange> {
        QuotaField::all().try_for_each(|field| self.get(field).map_or(Ok(()), |value| field.check(value)))
    }
}

/// The fields of [`QuotaAsk`] that hold a `u32`, to read and to write.
macro_rules! numbers {
    ($($field:ident: $name:ident),*) => {
        impl QuotaAsk {
            fn number(&self, field: QuotaField) -> Option<u32> {
                match field {
                    $(QuotaField::$field => self.$name,)*
                    QuotaField::StreamThreshold
                    | QuotaField::StripeThreshold
                    | QuotaField::NodeMemory
                    | QuotaField::DeputyMemory
                    | QuotaField::RankMemory
                    | QuotaField::Recovery
                    | QuotaField::Levels
                    | QuotaField::DataPath => None,
                }
            }

            fn number_mut(&mut self, field: QuotaField) -> Option<&mut Option<u32>> {
                match field {
                    $(QuotaField::$field => Some(&mut self.$name),)*
                    QuotaField::StreamThreshold
                    | QuotaField::StripeThreshold
                    | QuotaField::NodeMemory
                    | QuotaField::DeputyMemory
                    | QuotaField::RankMemory
                    | QuotaField::Recovery
                    | QuotaField::Levels
                    | QuotaField::DataPath => None,
                }
            }
        }
    };
}

numbers!(
    Groups: groups, Window: window, Osts: osts, Payload: payload, Streams: streams, Segment: segment, Staging: staging, Flight: flight,
    ControlMemory: control_memory,
    LeaseOperations: lease_operations, HeartbeatMs: heartbeat_ms, DeadAfterMs: dead_after_ms, Lanes: lanes, Trees: trees, Backups: backups, Deputies: deputies
);

impl Limits {
    /// The value of a field, if every node and rank of a job is told it.
    pub fn get(&self, field: QuotaField) -> Option<u64> {
        Some(match field {
            QuotaField::Groups => self.groups.into(),
            QuotaField::Window => self.window.into(),
            QuotaField::Osts => self.osts.into(),
            QuotaField::Payload => self.payload.into(),
            QuotaField::Streams => self.streams.into(),
            QuotaField::Segment => self.segment.into(),
            QuotaField::Staging => self.staging.into(),
            QuotaField::Flight => self.flight.into(),
            QuotaField::ControlMemory => self.control_memory.into(),
            QuotaField::StreamThreshold => self.stream_threshold,
            QuotaField::LeaseOperations => self.lease_operations.into(),
            QuotaField::HeartbeatMs => self.heartbeat_ms.into(),
            QuotaField::DeadAfterMs => self.dead_after_ms.into(),
            QuotaField::Recovery => self.recovery.number(),
            QuotaField::DataPath => self.mode.code().into(),
            QuotaField::NodeMemory
            | QuotaField::Lanes
            | QuotaField::Trees
            | QuotaField::StripeThreshold
            | QuotaField::Backups
            | QuotaField::Deputies
            | QuotaField::DeputyMemory
            | QuotaField::RankMemory
            | QuotaField::Levels => return None,
        })
    }

    /// Refuses values that mean nothing.
    pub fn check(&self) -> Result<(), OutOfRange> {
        QuotaField::all().try_for_each(|field| self.get(field).map_or(Ok(()), |value| field.check(value)))
    }
}

const MANY: u64 = u32::MAX as u64;

const fn row(field: QuotaField, name: &'static str, unit: &'static str, range: [u64; 3], fabric: [u64; 2]) -> QuotaRow {
    let [least, most, step] = range;
    let [default, maximum] = fabric;
    let speaker = Speaker::Both;
    QuotaRow { field, name, unit, least, most, step, default, maximum, names: &[], speaker, memory: "", meaning: "" }
}

impl QuotaRow {
    const fn costs(self, memory: &'static str) -> QuotaRow {
        QuotaRow { memory, ..self }
    }

    const fn means(self, meaning: &'static str) -> QuotaRow {
        QuotaRow { meaning, ..self }
    }

    const fn called(self, names: &'static [&'static str]) -> QuotaRow {
        QuotaRow { names, ..self }
    }

    const fn said_by(self, speaker: Speaker) -> QuotaRow {
        QuotaRow { speaker, ..self }
    }
}

/// The table. Each row has a name and a unit; least, most and step; default and maximum of a
/// fabric.
///
/// The default of `staging` is at least that of `flight`: with less, the credit would hold up a job
/// with a single group, which has all of `flight` in use, but not a job with several groups, each
/// of which has only a part of it. The default of `flight` is what a link of some Gbit/s carries in
/// the millisecond or two that the way through a tree takes. A rank writes all of them at once when
/// an operation begins, and other processes on its core wait for that: so it is not more. The least
/// `heartbeat_ms` is so long that questions and answers of idle ranks cost a node next to nothing:
/// at 1 ms, 60 of them took 8 % of a core, and other jobs paid for it.
pub const QUOTA: [QuotaRow; 24] = [
    row(QuotaField::Groups, "groups", "groups", [1, MANY, 1], [16_384, 65_536])
        .means("groups for which one node folds at once"),
    row(QuotaField::Window, "window", "fragments", [1, WINDOW_MAX as u64, 1], [16, 64])
        .means("datagram fragments of one group in flight"),
    row(QuotaField::Osts, "osts", "fragments", [1, MANY, 1], [262_144, 1 << 20])
        .costs("(n + 2) x payload, and 768 + 64 n bytes of records")
        .means("datagram fragments of all groups in flight at one node; no fewer than `window`"),
    row(
        QuotaField::Payload,
        "payload",
        "bytes",
        [ELEMENT_MAX as u64, DATAGRAM_MAX as u64, 8],
        [8 << 10, DATAGRAM_MAX as u64],
    )
    .costs("(n + 2) x osts")
    .means("most bytes of vector in one datagram; never more than the MTU carries"),
    row(QuotaField::Streams, "streams", "groups", [1, 1 << 16, 1], [4, 64])
        .costs("(n x staging + 2 x flight) x segment")
        .means("groups that may stream at once at one node"),
    row(
        QuotaField::Segment,
        "segment",
        "bytes",
        [ELEMENT_MAX as u64, PAYLOAD_MAX as u64, 8],
        [48 << 10, PAYLOAD_MAX as u64],
    )
    .costs("streams x (n x staging + 2 x flight) + n")
    .means("most bytes of vector in one stream segment; shorter vectors are cut finer"),
    row(QuotaField::Staging, "staging", "segments", [1, 1024, 1], [12, 64])
        .costs("streams x n x segment")
        .means("segments that a child may be ahead of the fold"),
    row(QuotaField::Flight, "flight", "segments", [1, 1024, 1], [12, 256])
        .costs("streams x 2 x segment")
        .means("segments between fold and delivered result, per group"),
    row(QuotaField::ControlMemory, "control_memory", "bytes", [64 << 10, MANY, 1], [16 << 20, 1 << 30])
        .costs("3")
        .means("bytes that a node keeps of groups, of creations that are not complete, and of control frames that wait to be sent; a group takes about 1 KiB, and 12 bytes for each run of ranks in its list of members"),
    row(QuotaField::StreamThreshold, "stream_threshold", "bytes", [0, u64::MAX, 1], [16 << 10, u64::MAX])
        .means("operations with more bytes than this are streamed"),
    row(QuotaField::LeaseOperations, "lease_operations", "operations", [0, MANY, 1], [0, MANY])
        .means("operations that a streaming group may run before it gives its context back; 0: until others wait"),
    row(QuotaField::HeartbeatMs, "heartbeat_ms", "ms", [100, MANY, 1], [1_000, 60_000])
        .means("a silent side sends a sign of life this often"),
    row(QuotaField::DeadAfterMs, "dead_after_ms", "ms", [1, MANY, 1], [60_000, 3_600_000])
        .means("a rank, or a node whose place nothing else may take, is dead if it leaves questions without an answer for this long; a node with a backup or a deputy after 5 s, and after twice as long in each epoch behind one without results; at least three heartbeats"),
    row(QuotaField::NodeMemory, "node_memory", "bytes", [1, u64::MAX, 1], [1 << 30, 16 << 30])
        .said_by(Speaker::Fabric)
        .means("bytes of one job's buffers at one aggregation node, over all its lanes"),
    row(QuotaField::Lanes, "lanes", "lanes", [1, LANES_MAX as u64, 1], [1, LANES_MAX as u64])
        .costs("everything again")
        .means("[lanes](#lanes) of a job"),
    row(QuotaField::Trees, "trees", "trees", [1, LANES_MAX as u64, 1], [1, LANES_MAX as u64])
        .said_by(Speaker::Job)
        .means("different trees that the lanes must have, no more than `lanes`; without it as many as there are"),
    row(QuotaField::StripeThreshold, "stripe_threshold", "bytes", [0, u64::MAX, 1], [128 << 10, u64::MAX])
        .means("with several lanes, operations with at least so many bytes are cut over them"),
    row(QuotaField::Backups, "backups", "nodes", [0, BACKUPS_MAX as u64, 1], [0, BACKUPS_MAX as u64])
        .costs("the first: everything again, at another node")
        .means("[further nodes](#backups-and-deputies) that may host each node of the job's trees, if there are as many"),
    row(QuotaField::Deputies, "deputies", "ranks", [0, DEPUTIES_MAX as u64, 1], [2, DEPUTIES_MAX as u64])
        .means("[ranks of the job](#backups-and-deputies) that may host each node of its trees when no node does; without any, and without `backups`, the job does not go on when a node dies"),
    row(QuotaField::DeputyMemory, "deputy_memory", "bytes", [1, u64::MAX, 1], [16 << 30, 16 << 30])
        .said_by(Speaker::Fabric)
        .means("bytes of buffers for which one rank may be a deputy, of which the maximum counts; they are touched when it hosts a node"),
    row(QuotaField::RankMemory, "rank_memory", "bytes", [1, u64::MAX, 1], [64 << 20, u64::MAX])
        .means("bytes that a rank keeps, over all its groups, of what it has given to operations that are over and whose results other ranks may lack; beyond them it begins nothing new until they have theirs"),
    row(QuotaField::Recovery, "recovery", "", [0, 2, 1], [Recovery::Retry as u64, Recovery::Strict as u64])
        .called(&Recovery::NAMES)
        .means("what a job does when a node of its trees dies: [what each policy promises](reliability.md#policies)"),
    row(QuotaField::Levels, "levels", "", [0, 2, 1], [Levels::Numa as u64, Levels::Numa as u64])
        .called(&Levels::NAMES)
        .means("[nodes in the ranks' own processes](#ranks-that-share-a-host), for hosts that have several ranks of the job, and below them for NUMA domains that have several"),
    row(QuotaField::DataPath, "data_path", "", [0, 2, 1], [Mode::Checked as u64, Mode::Encrypted as u64])
        .called(&Mode::NAMES)
        .costs("encrypted: streams x (n + 1) x flight x segment")
        .means("[what protects payloads](security.md#modes-of-the-data-path) on the way between hosts; the fabric's default is also the least that a job gets"),
];

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_field_stands_at_its_index_and_its_own_values_are_in_its_range() {
        for (at, row) in QUOTA.iter().enumerate() {
            assert_eq!(row.field as usize, at, "{}", row.name);
            assert_eq!(QuotaField::from_name(row.name), Some(row.field));
            assert!(row.field.check(row.default).is_ok() && row.default <= row.maximum, "{}", row.name);
            assert!(row.field.check(row.maximum).is_ok() && row.field.check(row.least).is_ok(), "{}", row.name);
            assert!(!row.meaning.is_empty() && row.unit.is_empty() != row.names.is_empty(), "{}", row.name);
            assert!(row.names.is_empty() || row.names.len() as u64 == row.most - row.least + 1, "{}", row.name);
        }
        assert!(QuotaField::Staging.row().default >= QuotaField::Flight.row().default);
    }

    #[test]
    fn a_policy_is_asked_for_by_its_name() {
        let field = QuotaField::Recovery;
        assert_eq!((field.read("strict"), field.read("2"), field.read("Strict")), (Some(2), None, None));
        assert_eq!((QuotaField::Flight.read("2"), QuotaField::Flight.read("strict")), (Some(2), None));
        assert_eq!(field.row().range().to_string(), "notify, retry or strict");
        assert_eq!(field.row().amount(1).to_string(), "retry");
        assert_eq!(QuotaField::Flight.row().amount(12).to_string(), "12 segments");
        let mut ask = QuotaAsk::default();
        ask.ask(field, 2).unwrap();
        assert_eq!(ask.recovery, Some(Recovery::Strict));
    }

    #[test]
    fn what_is_asked_is_what_is_read_and_nothing_else_changes() {
        for field in QuotaField::all() {
            let mut ask = QuotaAsk::default();
            ask.ask(field, field.row().maximum).unwrap();
            for other in QuotaField::all() {
                let expected = (other == field && field.may_be_asked()).then_some(field.row().maximum);
                assert_eq!(ask.get(other), expected, "{}", other.name());
            }
        }
    }

    #[test]
    fn a_value_out_of_range_is_named_with_range_and_unit() {
        let told = |field: QuotaField, value| field.check(value).unwrap_err().to_string();
        assert_eq!(told(QuotaField::Flight, 2000), "flight = 2000 is out of range: it is 1 to 1024 segments");
        assert_eq!(
            told(QuotaField::Payload, 20),
            "payload = 20 is out of range: it is 16 to 65400 bytes, a multiple of 8"
        );
        assert_eq!(told(QuotaField::NodeMemory, 0), "node_memory = 0 is out of range: it is 1 or more bytes");
        let mut ask = QuotaAsk::default();
        assert_eq!(ask.ask(QuotaField::Staging, 1025).unwrap_err().value, 1025);
        assert_eq!(ask, QuotaAsk::default());
        ask.lanes = Some(9);
        assert_eq!(ask.check().unwrap_err(), OutOfRange { field: QuotaField::Lanes, value: 9 });
    }
}
