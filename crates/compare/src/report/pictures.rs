//! The two pictures at the top of the README, drawn from the rows that `results.csv` keeps: a tree
//! at work, and what it gains.
//!
//! They are SVG of our own instead of a plotting library's: the first is no plot, and both have to
//! be legible on a light and on a dark page.

use std::fmt::Write as _;

use crate::cell::human;

/// File names and pictures, as far as the rows of `results.csv` allow.
pub(super) fn pictures(results: &str) -> Vec<(&'static str, String)> {
    let rows = read(results);
    let tree = rows
        .iter()
        .filter(|row| row.system == "tributary")
        .max_by(|a, b| a.share.total_cmp(&b.share))
        .map(|row| ("tree.svg", tree(row)));
    let gains = gains(&rows);
    let gain = (!gains.is_empty()).then(|| ("gain.svg", gain(&gains)));
    tree.into_iter().chain(gain).collect()
}

/// A row of sustained allreduces among the hosts of the first scenario.
#[derive(Clone, PartialEq, Debug)]
struct Row {
    system: String,
    bytes: u64,
    rate: f64,
    microseconds: f64,
    share: f64,
}

/// What is not there or no number leaves its row out.
fn read(results: &str) -> Vec<Row> {
    let mut lines = results.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let read = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name: &str| fields.get(names.iter().position(|known| *known == name)?).copied();
        let number = |name: &str| field(name)?.parse::<f64>().ok();
        let is_meant = field("scenario") == Some("allreduce") && field("mode") == Some("sustained");
        let row = Row {
            system: field("system")?.to_owned(),
            bytes: field("bytes")?.parse().ok()?,
            rate: number("rate_mbit")?,
            microseconds: number("latency_us")?,
            share: number("share_of_link")?,
        };
        is_meant.then_some(row)
    };
    lines.filter_map(read).collect()
}

/// A size, our time, and the best peer with its time.
type Gain<'a> = (u64, f64, &'a str, f64);

fn gains(rows: &[Row]) -> Vec<Gain<'_>> {
    let ours = rows.iter().filter(|row| row.system == "tributary");
    let gain = |row: &Row| {
        let peers = rows.iter().filter(|other| {
            other.bytes == row.bytes && !other.system.starts_with("tributary") && other.system != "pingpong"
        });
        let best = peers.min_by(|a, b| a.microseconds.total_cmp(&b.microseconds))?;
        Some((row.bytes, row.microseconds, best.system.as_str(), best.microseconds))
    };
    ours.filter_map(gain).collect()
}

fn gain(gains: &[Gain<'_>]) -> String {
    let height = TOP + ROW * gains.len() as i32 + 24;
    let mut text = head(height, "Time of an allreduce among eight hosts, beside the best peer's");
    for (at, (bytes, ours, peer, theirs)) in gains.iter().enumerate() {
        let (top, longest) = (TOP + ROW * at as i32, ours.max(*theirs));
        let bar = |time: f64| (BAR * time / longest).round();
        let parts = [
            word(LEFT - 12, top + 22, "size", "end", &human(*bytes)),
            format!("<rect class=\"ours\" x=\"{LEFT}\" y=\"{top}\" width=\"{}\" height=\"15\"/>\n", bar(*ours)),
            word(LEFT + bar(*ours) as i32 + 6, top + 12, "small", "start", &format!("Tributary {}", time(*ours))),
            format!(
                "<rect class=\"peer\" x=\"{LEFT}\" y=\"{}\" width=\"{}\" height=\"15\"/>\n",
                top + 17,
                bar(*theirs)
            ),
            word(LEFT + bar(*theirs) as i32 + 6, top + 29, "small", "start", &format!("{peer} {}", time(*theirs))),
            word(WIDTH - 16, top + 24, "times", "end", &format!("{:.1} x", theirs / ours)),
        ];
        parts.iter().for_each(|part| text.push_str(part));
    }
    text + "</svg>\n"
}

fn tree(row: &Row) -> String {
    let mut text = head(286, "Summed while it travels: each host sends once and receives once");
    let spine = (WIDTH / 2, 78);
    let leaves = [(WIDTH / 4, 158), (3 * WIDTH / 4, 158)];
    let hosts: Vec<(i32, i32)> = (0..8).map(|host| (WIDTH * (2 * host + 1) / 16, 236)).collect();
    let links: Vec<((i32, i32), (i32, i32))> = hosts
        .iter()
        .enumerate()
        .map(|(host, at)| (*at, leaves[host / 4]))
        .chain(leaves.iter().map(|leaf| (*leaf, spine)))
        .collect();
    for (from, to) in &links {
        let line =
            format!("<line class=\"link\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", from.0, from.1, to.0, to.1);
        text.push_str(&line);
    }
    // Up on the first half of each round, hosts before leaves, and down again on the second.
    for (number, (from, to)) in links.iter().enumerate() {
        let is_trunk = number >= hosts.len();
        let (up, down) = if is_trunk { (0.25, 0.5) } else { (0.0, 0.75) };
        for (class, from, to, start) in [("part", from, to, up), ("sum", to, from, down)] {
            text.push_str(&dot(class, *from, *to, start));
        }
    }
    for (at, name) in leaves.iter().zip(["leaf0", "leaf1"]).chain([(&spine, "spine")]) {
        let (x, y) = (at.0 - 46, at.1 - 15);
        writeln!(text, "<rect class=\"node\" x=\"{x}\" y=\"{y}\" width=\"92\" height=\"30\" rx=\"6\"/>").expect(MEMORY);
        text.push_str(&word(at.0, at.1 + 5, "name", "middle", &format!("{name}: sum")));
    }
    for (host, at) in hosts.iter().enumerate() {
        let (x, y) = (at.0 - 17, at.1 - 13);
        writeln!(text, "<rect class=\"host\" x=\"{x}\" y=\"{y}\" width=\"34\" height=\"26\" rx=\"4\"/>").expect(MEMORY);
        text.push_str(&word(at.0, at.1 + 5, "name", "middle", &format!("h{host}")));
    }
    let words = format!(
        "measured: an allreduce of {} moves at {:.0} % of the hosts' {} Mbit/s links, each way at once",
        human(row.bytes),
        100.0 * row.share,
        row.rate
    );
    text += &word(WIDTH / 2, 276, "small", "middle", &words);
    text + "</svg>\n"
}

/// A dot that goes along a link in a quarter of the round, and is not there for the rest.
fn dot(class: &str, from: (i32, i32), to: (i32, i32), start: f64) -> String {
    let end = start + 0.25;
    // Times of an animation begin with 0 and end with 1, each once.
    let inner: Vec<String> =
        [start, end].iter().filter(|time| (0.01..0.99).contains(*time)).map(f64::to_string).collect();
    let times = format!("0;{};1", inner.join(";"));
    let points = |first: i32, last: i32| {
        let before = if start > 0.0 { format!("{first};") } else { String::new() };
        let after = if end < 1.0 { format!(";{last}") } else { String::new() };
        format!("{before}{first};{last}{after}")
    };
    let shown = match (start > 0.0, end < 1.0) {
        (true, true) => "0;1;0;0",
        (false, _) => "1;0;0",
        (true, false) => "0;1;1",
    };
    let animate = |name: &str, values: &str, how: &str| {
        format!(
            "<animate attributeName=\"{name}\" values=\"{values}\" keyTimes=\"{times}\" dur=\"4s\" \
             repeatCount=\"indefinite\"{how}/>"
        )
    };
    format!(
        "<circle class=\"{class}\" r=\"5\" cx=\"{}\" cy=\"{}\" opacity=\"0\">{}{}{}</circle>\n",
        from.0,
        from.1,
        animate("cx", &points(from.0, to.0), ""),
        animate("cy", &points(from.1, to.1), ""),
        animate("opacity", shown, " calcMode=\"discrete\"")
    )
}

fn head(height: i32, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" \
         rx=\"8\"/>\n{}",
        word(WIDTH / 2, 30, "title", "middle", title)
    )
}

fn word(x: i32, y: i32, class: &str, anchor: &str, text: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>\n")
}

fn time(microseconds: f64) -> String {
    if microseconds < 1000.0 { format!("{microseconds:.0} us") } else { format!("{:.1} ms", microseconds / 1000.0) }
}

const WIDTH: i32 = 820;
const LEFT: i32 = 92;
const TOP: i32 = 52;
const ROW: i32 = 46;
const BAR: f64 = 480.0;
const MEMORY: &str = "writing to memory cannot fail";
const STYLE: &str = "text{font-family:system-ui,sans-serif;fill:#1f2933}.page{fill:#ffffff;stroke:#d5dbe1}.title{font-size:16px;\
                     font-weight:600}.size,.name{font-size:13px}.small{font-size:12px;fill:#52606d}.times{font-size:15px;font-weight:600}\
                     .ours{fill:#0b7285}.peer{fill:#ced4da}.link{stroke:#adb5bd;stroke-width:3}.node{fill:#e3fafc;stroke:#0b7285}\
                     .host{fill:#f8f9fa;stroke:#868e96}.part{fill:#e8590c}.sum{fill:#0b7285}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pictures_of_the_readme_are_what_this_makes_of_the_stored_rows() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let drawn = pictures(&read("results.csv"));
        assert_eq!(drawn.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["tree.svg", "gain.svg"]);
        let readme = std::fs::read_to_string(folder.join("../../README.md")).unwrap();
        for (name, picture) in drawn {
            if std::env::var_os("TRIB_DRAW").is_some() {
                std::fs::write(folder.join(name), &picture).unwrap();
            }
            assert!(read(name) == picture, "docs/performance/{name} is not of these rows: TRIB_DRAW=1 draws it anew");
            assert!(readme.contains(&format!("docs/performance/{name})")), "the README shows {name}");
        }
    }

    #[test]
    fn rows_without_figures_are_left_out() {
        let head = "scenario,system,bytes,mode,rate_mbit,latency_us,share_of_link\n";
        assert!(pictures(head).is_empty() && pictures("").is_empty());
        let rows = format!(
            "{head}allreduce,tributary,8,sustained,500,10,0.5\nallreduce,mpich,8,sustained,500,20,0.1\n\
                            allreduce,gloo,8,sustained,500,,\nsmall,mpich,8,sustained,500,1,0.1\n"
        );
        let drawn = pictures(&rows);
        assert_eq!(drawn.len(), 2);
        assert!(drawn[1].1.contains("2.0 x") && drawn[1].1.contains("mpich 20 us"), "{}", drawn[1].1);
    }
}
