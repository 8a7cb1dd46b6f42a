//! Compares `docs/protocol.md` with the code: every number in its tables is the number that the
//! code uses, and every section that the code or the text cites exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use trib_wire::combination::Class;
use trib_wire::header::HEADER_LEN;
use trib_wire::hello::Status;
use trib_wire::{
    ChildIndex, Collective, DataType, Epoch, Generation, GroupIndex, Header, JobId, Kind, NodeId, ParseError, Reason,
    ReduceOp, Signature, WireFormat,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn specification() -> String {
    fs::read_to_string(root().join("docs/protocol.md")).unwrap()
}

/// The cells of the table that follows `<!-- table: name -->`, row by row, without the heading.
fn table(name: &str) -> Vec<Vec<String>> {
    let text = specification();
    let mark = format!("<!-- table: {name} -->");
    let (_, after) = text.split_once(&mark).unwrap_or_else(|| panic!("no table `{name}`"));
    let rows = after.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split('|').map(|c| c.trim().replace('`', "")).collect();
    let rows: Vec<Vec<String>> = rows.skip(2).map(cells).collect();
    assert!(!rows.is_empty(), "table `{name}` is empty");
    rows
}

/// First two columns of a table of codes.
fn codes(name: &str) -> Vec<(u64, String)> {
    table(name).into_iter().map(|row| (row[0].parse().unwrap(), row[1].clone())).collect()
}

#[test]
fn constants_have_the_values_of_the_code() {
    for row in table("constants") {
        let [name, value, file] = &row[..3] else { panic!("{row:?}") };
        let code = fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let found = code.lines().find(|line| line.contains(&format!("const {name}:")));
        let line = found.unwrap_or_else(|| panic!("{file} has no constant {name}"));
        let (_, expression) = line.split_once(" = ").unwrap();
        assert_eq!(expression.trim_end_matches(';'), value, "{name} in {file}");
    }
}

#[test]
fn every_code_of_the_wire_stands_in_its_table() {
    let kinds: Vec<_> = Kind::ALL.iter().map(|k| (*k as u64, format!("{k:?}"))).collect();
    assert_eq!(codes("kinds"), kinds);
    let reasons: Vec<_> = Reason::ALL.iter().map(|r| (*r as u64, format!("{r:?}"))).collect();
    assert_eq!(codes("reasons"), reasons);
    let statuses: Vec<_> = Status::ALL.iter().map(|s| (*s as u64, format!("{s:?}"))).collect();
    assert_eq!(codes("statuses"), statuses);
    let formats: Vec<_> = WireFormat::ALL.iter().map(|f| (u64::from(f.code()), f.name().to_string())).collect();
    assert_eq!(codes("formats"), formats);
    let collectives: Vec<_> = Collective::ALL.iter().map(|c| (u64::from(c.code()), c.name().to_string())).collect();
    assert_eq!(codes("collectives"), collectives);
    let operators: Vec<_> = ReduceOp::ALL.iter().map(|o| (u64::from(o.code()), o.name().to_string())).collect();
    assert_eq!(codes("operators"), operators);
    let types: Vec<_> =
        DataType::NUMBERS.iter().map(|d| (u64::from(d.code()), d.to_string(), d.size().to_string())).collect();
    let told: Vec<_> =
        table("types").into_iter().map(|r| (r[0].parse().unwrap(), r[1].clone(), r[2].clone())).collect();
    assert_eq!(told, types);
}

#[test]
fn every_combination_is_what_the_specification_says() {
    let mut seen = Vec::new();
    for row in table("combinations") {
        for op in
            row[0].split(' ').map(|name| ReduceOp::from_name(name).unwrap_or_else(|| panic!("no operator {name}")))
        {
            seen.push(op);
            let told: Vec<_> = row[1..].iter().map(|cell| (cell != "yes").then_some(cell.as_str())).collect();
            let known: Vec<_> = Class::ALL.iter().map(|class| op.refusal(*class)).collect();
            assert_eq!(told, known, "{op}");
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, ReduceOp::ALL);
    let head: String = Class::ALL.iter().map(|class| format!(" {} |", class.name())).collect();
    assert!(
        specification().contains(&format!("| operators |{head}\n")),
        "the table has a column for every class of types"
    );
}

/// A header in which only the named field is not zero; all bits are set that its values can have.
fn only(field: &str) -> (Header, u64) {
    let mut header = Header {
        signature: Signature {
            collective: Collective::Barrier,
            dtype: DataType::U32,
            op: ReduceOp::Max,
            format: WireFormat::Plain,
            root: 0,
            count: 0,
        },
        ..Header::new(Kind::Contribution, JobId(0), Epoch(0), NodeId(0), ChildIndex(0))
    };
    let mut tag = 0;
    match field {
        "kind" => header.kind = Kind::Result,
        "job" => header.job = JobId(u32::MAX),
        "epoch" => header.epoch = Epoch(u32::MAX),
        "node" => header.node = NodeId(u16::MAX),
        "child" => header.child = ChildIndex(u16::MAX),
        "group" => header.group = GroupIndex(u32::MAX),
        "generation" => header.generation = Generation(u32::MAX),
        "flags" => header.flags = u16::MAX,
        "lane" => header.lane = u16::MAX,
        "collective" => header.signature.collective = Collective::Allreduce,
        "datatype" => header.signature.dtype = DataType::I32,
        "operator" => header.signature.op = ReduceOp::Min,
        "root" => header.signature.root = u32::MAX,
        "witness" => header.witness = u32::MAX,
        "count" => header.signature.count = u64::MAX,
        "op_seq" => header.op_seq = u64::MAX,
        "seq" => header.seq = u64::MAX,
        "first" => header.first = u64::MAX,
        "elements" => header.elements = u32::MAX,
        "skip" => header.skip = u32::MAX,
        "payload length" => header.payload_len = u32::MAX,
        "payload crc" => header.payload_crc = u32::MAX,
        "mark" => header.mark = u64::MAX,
        "tag" => tag = u64::MAX,
        other => panic!("the specification names a field `{other}` that no header has"),
    }
    (header, tag)
}

fn bytes_of((header, tag): (Header, u64)) -> [u8; HEADER_LEN] {
    let mut bytes = [0; HEADER_LEN];
    header.emit(tag, &mut bytes);
    bytes
}

#[test]
fn fields_stand_where_the_specification_says() {
    let mut at = 0;
    let zero = bytes_of((Header { mark: 0, ..only("mark").0 }, 0));
    for row in table("fields") {
        let (offset, len): (usize, usize) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        assert_eq!(offset, at, "`{}` follows the field before it", row[2]);
        at += len;
        if row[2] == "magic" || row[2] == "version" {
            continue;
        }
        if row[2] == "wire format" {
            // A code that no format has cannot be written.
            let mut unknown = zero;
            unknown[offset] = WireFormat::ALL.len() as u8;
            assert_eq!(Header::parse(&unknown), Err(ParseError::BadField("wire format")));
            continue;
        }
        let bytes = bytes_of(only(&row[2]));
        let changed: Vec<usize> = (0..HEADER_LEN).filter(|i| bytes[*i] != zero[*i]).collect();
        let inside = changed.first().is_some_and(|i| *i == offset) && changed.last().is_some_and(|i| *i < offset + len);
        assert!(inside, "`{}` changes bytes {changed:?}", row[2]);
    }
    assert_eq!(at, HEADER_LEN);
}

/// Numbers of the headings.
fn sections() -> BTreeSet<String> {
    let text = specification();
    let headings = text.lines().filter(|line| line.starts_with("## ") || line.starts_with("### "));
    headings.filter_map(|line| line.split_whitespace().nth(1)).map(str::to_string).collect()
}

#[test]
fn sections_are_numbered_in_order_without_gaps() {
    let mut last = (0, 0);
    for line in specification().lines().filter(|l| l.starts_with("## ") || l.starts_with("### ")) {
        let number = line.split_whitespace().nth(1).unwrap();
        let mut parts = number.split('.').map(|n| n.parse::<u32>());
        let (major, minor) = (parts.next().unwrap().unwrap(), parts.next().map_or(0, |n| n.unwrap()));
        let follows = (major, minor) == (last.0, last.1 + 1) || (major, minor) == (last.0 + 1, 0);
        assert!(follows, "section {number} after {}.{}", last.0, last.1);
        last = (major, minor);
    }
}

#[test]
fn what_the_code_cites_exists() {
    let known = sections();
    let mut files = vec![root().join("crates"), root().join("capi"), root().join("docs")];
    let mut seen = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        if !["rs", "md", "h", "c"].iter().any(|e| path.extension().is_some_and(|x| x == *e)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        for cited in text.split("protocol.md#").skip(1) {
            let end = cited.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(cited.len());
            let number = cited[..end].trim_end_matches('.');
            if !number.is_empty() {
                seen += 1;
                assert!(known.contains(number), "{} cites section {number}, which is not there", path.display());
            }
        }
    }
    assert!(seen > 0, "nothing cites the specification");
}
