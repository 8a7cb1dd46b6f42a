//! `trib lab status`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use trib_lab::fault::Fault;
use trib_lab::topology::Plan;
use trib_lab::{Direction, Lab, LinkCounters, Topology};

use super::{Which, failure};
use crate::bar;
use crate::failure::Failure;
use crate::stdout;
use crate::table::Table;
use crate::view::{self, Canvas, Line, Tone};

/// Show a laboratory: its shape, links with their load, daemons and faults
///
/// Load is what a link carried during half a second, as a share of its rate; up is towards the
/// spine. A terminal shows it as a bar, too.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let lab = self.which.attach()?;
        let text = if self.json { json_of(&lab)? } else { text_of(&lab)? };
        stdout::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn json_of(lab: &Lab) -> Result<String, Failure> {
    let faults = lab.faults().map_err(failure)?;
    let plan = lab.topology().plan();
    let links = plan.iter().flat_map(|plan| &plan.links).map(|link| {
        json!({ "link": link.lower, "above": link.upper, "rate": link.rate, "state": state(&link.lower, &faults) })
    });
    let pids = lab.daemons();
    let daemons = lab.daemon_states().map_err(failure)?;
    let daemons = daemons.iter().map(|(name, state)| {
        let pid = pids.iter().find_map(|(daemon, pid)| (daemon == name).then_some(pid));
        json!({ "name": name, "state": state, "pid": pid, "log": lab.log(name) })
    });
    let report = json!({
        "name": lab.name().as_str(),
        "folder": lab.folder(),
        "manager": lab.manager(),
        "topology": lab.topology(),
        "places": plan.as_ref().map(places),
        "links": links.collect::<Vec<_>>(),
        "daemons": daemons.collect::<Vec<_>>(),
        "faults": faults,
    });
    Ok(format!("{report:#}\n"))
}

fn text_of(lab: &Lab) -> Result<String, Failure> {
    let faults = lab.faults().map_err(failure)?;
    let canvas = Canvas::of_stdout();
    let head = Line::new(Tone::Plain, format!("Laboratory {}: {}", lab.name().as_str(), lab.topology()));
    let mut text = view::text(&canvas.sentence(head), canvas);
    writeln!(text, "manager {}", lab.manager()).expect("writing to memory cannot fail");
    if let Topology::FatTree(tree) = lab.topology() {
        let loads = Loads::over(lab, LOOK, canvas)?;
        let mut table = Table::new(["LINK", "ABOVE", "RATE", "STATE", "LOAD UP", "LOAD DOWN"]);
        for link in tree.plan().links {
            let [up, down] = [Direction::Up, Direction::Down].map(|way| loads.words(&link.name, way));
            let (rate, state) = (link.rate.to_string(), state(&link.lower, &faults).to_owned());
            table.row([link.name, link.upper, rate, state, up, down]);
        }
        write!(text, "\n{table}").expect("writing to memory cannot fail");
    }
    let pids = lab.daemons();
    let mut table = Table::new(["DAEMON", "PID", "STATE"]);
    for (name, state) in lab.daemon_states().map_err(failure)? {
        let pid =
            pids.iter().find(|(daemon, _)| *daemon == name).map_or_else(|| "-".to_owned(), |(_, pid)| pid.to_string());
        table.row([name, pid, format!("{state:?}").to_lowercase()]);
    }
    write!(text, "\n{table}").expect("writing to memory cannot fail");
    for fault in &faults {
        writeln!(text, "fault: {fault}").expect("writing to memory cannot fail");
    }
    Ok(text)
}

/// What links carried between two readings, as shares of their rates.
struct Loads {
    shares: Vec<(LinkCounters, f64)>,
    canvas: Canvas,
}

impl Loads {
    fn over(lab: &Lab, span: Duration, canvas: Canvas) -> Result<Loads, Failure> {
        let look = || lab.counters().map(|links| (links, Instant::now())).map_err(failure);
        let (before, start) = look()?;
        std::thread::sleep(span);
        let (after, end) = look()?;
        Ok(Loads { shares: between(before, after, end - start), canvas })
    }

    fn words(&self, link: &str, way: Direction) -> String {
        let load = self.shares.iter().find(|(known, _)| known.link == link && known.direction == way);
        let Some((_, share)) = load else { return "-".to_owned() };
        let percent = format!("{:>3.0} %", 100.0 * share);
        match self.canvas {
            Canvas::Pipe => percent,
            Canvas::Terminal { .. } => format!("{percent} {}{}", bar::bar(*share, CELLS), bar::END),
        }
    }
}

fn between(before: Vec<LinkCounters>, after: Vec<LinkCounters>, span: Duration) -> Vec<(LinkCounters, f64)> {
    let share = |(before, after): (LinkCounters, LinkCounters)| {
        let bytes = after.wire_bytes.saturating_sub(before.wire_bytes);
        let share = 8.0 * bytes as f64 / span.as_secs_f64() / after.rate.bits() as f64;
        (after, share)
    };
    before.into_iter().zip(after).map(share).collect()
}

/// How long the links are watched: so long that a bucket of an idle link is a small part of what
/// they carry.
const LOOK: Duration = Duration::from_millis(500);
const CELLS: usize = 10;

fn places(plan: &Plan) -> serde_json::Value {
    let places = plan.places.iter();
    places.map(|place| json!({ "name": place.name, "address": place.address.to_string() })).collect()
}

fn state(link: &str, faults: &[Fault]) -> &'static str {
    let is_cut = |fault: &Fault| matches!(fault, Fault::Cut { link: cut } if cut == link);
    if faults.iter().any(is_cut) { "cut" } else { "up" }
}

const EXAMPLES: &str = "\
Examples:
  trib lab status
  trib lab status --json | jq '.daemons[] | select(.state != \"running\")'";

#[cfg(test)]
mod tests {
    use trib_lab::BitRate;

    use super::*;

    #[test]
    fn load_is_what_came_in_between_as_a_share_of_the_rate() {
        let counters = |wire_bytes| LinkCounters {
            link: "h0".into(),
            direction: Direction::Up,
            rate: BitRate::mbit(8),
            wire_bytes,
            packets: 0,
            drops: 0,
        };
        let shares = between(vec![counters(1000)], vec![counters(251_000)], Duration::from_millis(500));
        assert_eq!(shares[0].1, 0.5);
        let loads = Loads { shares, canvas: Canvas::Terminal { columns: 80 } };
        assert_eq!(loads.words("h0", Direction::Up), " 50 % \u{2588}\u{2588}\u{2588}\u{2588}\u{2588}     \u{2595}");
        let loads = Loads { canvas: Canvas::Pipe, ..loads };
        assert_eq!(loads.words("h0", Direction::Up), " 50 %");
        assert_eq!(loads.words("h0", Direction::Down), "-");
    }
}
