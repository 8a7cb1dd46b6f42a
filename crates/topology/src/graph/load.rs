//! Which format a file has, and the reader for it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::{Complaint, whole};
use super::settings::Settings;
use super::{Graph, GraphFault, LinkRate, ibnetdiscover, slurm, toml_file, tree_file};
use crate::error::{Fault, TopologyError};
use crate::topology::Topology;

/// The longest file that is read, in bytes. A fabric of 100,000 hosts takes about 30 MB as a dump
/// of ibnetdiscover.
const LENGTH_MAX: u64 = 256 << 20;

/// The formats that a fabric's file may have; the content tells which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Slurm's `topology.conf` for the plugin topology/tree.
    Slurm,
    /// The output of infiniband-diags' `ibnetdiscover`.
    Ibnetdiscover,
    /// TOML with `[[switch]]`.
    Graph,
    /// TOML with `[[node]]` and their parents: the tree itself.
    Tree,
}

impl Format {
    /// The format of a text.
    pub fn of(text: &str) -> Self {
        let starts =
            |line: &str, word: &str| line.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        for line in text.lines().map(str::trim_start) {
            if ["SwitchName=", "BlockName=", "BlockSizes="].iter().any(|word| starts(line, word)) {
                return Self::Slurm;
            }
            if ["switchguid=", "caguid=", "rtguid="].iter().any(|word| starts(line, word)) {
                return Self::Ibnetdiscover;
            }
            if starts(line, "[[switch]]") {
                return Self::Graph;
            }
        }
        Self::Tree
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slurm => "Slurm topology.conf",
            Self::Ibnetdiscover => "ibnetdiscover",
            Self::Graph => "TOML graph",
            Self::Tree => "TOML tree",
        })
    }
}

/// A fabric's file, whose format is known.
pub struct FabricFile {
    path: PathBuf,
    text: String,
    format: Format,
}

impl FabricFile {
    /// Reads a file and finds out its format.
    pub fn read(path: &Path) -> Result<Self, TopologyError> {
        let text = read(path).map_err(|fault| TopologyError { file: path.into(), line: None, fault })?;
        Ok(Self { path: path.into(), format: Format::of(&text), text })
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The fabric. Links get `rate` if the file does not tell theirs.
    pub fn graph(&self, rate: LinkRate) -> Result<Graph, TopologyError> {
        Graph::parse(&self.text, &self.path, rate)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Graph {
    /// Reads a text of any format. `path` stands in errors, and is the fabric's name if the text
    /// has none.
    pub fn parse(text: &str, path: &Path, rate: LinkRate) -> Result<Self, TopologyError> {
        let wrong = |(line, fault): Complaint| TopologyError { file: path.into(), line, fault };
        match read_graph(text, path, rate).map_err(wrong)? {
            Some((graph, _)) => Ok(graph),
            None => tree_file::read(&Topology::parse(text, path)?, rate).map_err(|fault| wrong(whole(fault))),
        }
    }
}

/// The graph, and what else the text says. `None` if the text gives a tree by hand.
pub(crate) fn read_graph(text: &str, path: &Path, rate: LinkRate) -> Result<Option<(Graph, Settings)>, Complaint> {
    let name = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| !stem.is_empty()).unwrap_or("fabric");
    let plain = |graph| (graph, Settings::default());
    match Format::of(text) {
        Format::Slurm => slurm::read(text, name, rate).map(plain),
        Format::Ibnetdiscover => ibnetdiscover::read(text, name).map(plain),
        Format::Graph => toml_file::read(text, name, rate),
        Format::Tree => return Ok(None),
    }
    .map(Some)
}

fn read(path: &Path) -> Result<String, Fault> {
    let file = File::open(path).map_err(Fault::Unreadable)?;
    let mut bytes = Vec::new();
    file.take(LENGTH_MAX + 1).read_to_end(&mut bytes).map_err(Fault::Unreadable)?;
    if bytes.len() as u64 > LENGTH_MAX {
        return Err(GraphFault::TooLong(LENGTH_MAX).into());
    }
    String::from_utf8(bytes).map_err(|_| Fault::Unreadable(io::Error::other("it is not UTF-8 text")))
}
