//! What a correct peer above would say to a frame that came up, if it were the only one above.

use trib_proto::{Path, window};
use trib_wire::header::FLAG_STREAM;
use trib_wire::{Body, Generation, GroupIndex, GroupKey, Header, Kind, Marks, RankList, Signature, Way};

use crate::frames::Frame;

/// The peer above: how many groups it has made, whose keys it knows by their numbers.
#[derive(Default)]
pub struct Above {
    groups: Vec<GroupKey>,
}

impl Above {
    /// Its answer to a frame, which goes down the same edge; `below` are the ranks at the edge's
    /// lower end.
    pub fn answer(&mut self, frame: &Frame, below: &RankList) -> Option<Frame> {
        let header = frame.header;
        let down = |kind: Kind| Header { kind, payload_len: 0, skip: 0, ..header };
        let (header, body) = match (header.kind, &frame.body) {
            (Kind::Join, Body::Join { key, standing, .. }) => {
                let known = self.groups.iter().position(|known| known == key);
                let index = known.unwrap_or(self.groups.len());
                if known.is_none() {
                    self.groups.push(key.clone());
                }
                let group = Header { group: GroupIndex(index as u32), generation: Generation(0), ..down(Kind::Ready) };
                let start = if standing.resumed { standing.marks } else { Marks::default() };
                (group, Body::Ready(key.clone(), start))
            }
            (Kind::Contribution, _) => (self.result(&header, below)?, Body::None),
            (Kind::Probe, _) => (down(Kind::Held), held(&header)),
            (Kind::Leave, _) => (down(Kind::Freed), Body::None),
            (Kind::Mark, _) => (down(Kind::Mark), Body::None),
            (Kind::Heartbeat, _) => (down(Kind::Heartbeat), Body::None),
            (Kind::Intent, _) => {
                let signature = Signature { count: 0, ..header.signature };
                (Header { signature, ..down(Kind::Grant) }, Body::None)
            }
            (Kind::StopAt, _) => (down(Kind::LeaseEnd), Body::None),
            (Kind::GroupError, Body::GroupError(fault)) => (down(Kind::GroupError), Body::GroupError(*fault)),
            _ => return None,
        };
        let payload_len = if header.kind.carries_data() { header.payload_len } else { body.to_bytes().len() as u32 };
        let path = if header.kind == Kind::Result || header.kind == Kind::Held { frame.path } else { Path::Stream };
        Some(Frame { path, header: Header { payload_len, ..header }, body })
    }

    /// The result of a piece, with as much of it as the ranks below get.
    fn result(&self, header: &Header, below: &RankList) -> Option<Header> {
        let key = self.groups.get(header.group.0 as usize)?;
        let numbers = below.iter().filter_map(|rank| key.members.position(rank));
        let elements = window::gotten_by(&header.signature, &RankList::from_ranks(numbers), &header.piece());
        let bytes = header.signature.layout().bytes(&elements, Way::Down) as u32;
        let flags = header.flags & FLAG_STREAM;
        Some(Header { kind: Kind::Result, flags, ..*header }.carrying(&elements, bytes))
    }
}

/// Nothing of it is here, so that it is sent again.
fn held(header: &Header) -> Body {
    Body::Held(trib_wire::body::Held { node: header.node, missing: 1, have: 0, have_base: header.seq })
}
