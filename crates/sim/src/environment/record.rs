//! What the trace says of frames and words.

use trib_proto::Path;
use trib_wire::Header;

use super::Environment;
use super::event::{Edge, Word};

impl Environment {
    /// Adds an event to the trace.
    pub fn record(&mut self, edge: Edge, path: Path, header: &Header, verb: &str) {
        let way = u64::from(edge.up) | u64::from(path == Path::Stream) << 1;
        let numbers = [
            (edge.link as u64) << 32 | way << 16 | u64::from(header.kind as u8),
            header.seq,
            header.op_seq << 32 | u64::from(header.payload_len),
        ];
        let now = self.now();
        if self.trace.is_printing() {
            let (from, to) = self.ends(edge);
            let name = match path {
                Path::Datagram => "dgram",
                Path::Stream => "stream",
            };
            self.trace.event(now, numbers, format_args!("{from:>4} -> {to:<4} {verb:<6} {name:<6} {header}"));
        } else {
            self.trace.event(now, numbers, format_args!(""));
        }
    }

    /// Adds a word to the trace.
    pub fn record_word(&mut self, edge: Edge, word: &Word) {
        let now = self.now();
        let numbers = [edge.link as u64, u64::from(edge.up), 0];
        if self.trace.is_printing() {
            let (from, to) = self.ends(edge);
            self.trace.event(now, numbers, format_args!("{from:>4} -> {to:<4} brings word   {word:?}"));
        } else {
            self.trace.event(now, numbers, format_args!(""));
        }
    }

    fn ends(&self, edge: Edge) -> (String, String) {
        let link = &self.links[edge.link];
        let (lower, upper) = (self.name(link.lower), self.name(link.upper));
        if edge.up { (lower, upper) } else { (upper, lower) }
    }
}
