//! One plot: a few series over an axis of sizes or counts, as SVG and as CSV.

use std::error::Error;
use std::fmt::Write as _;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// What to draw.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Plot {
    /// Name of its files.
    pub(crate) name: &'static str,
    /// The title above the plot.
    pub(crate) title: String,
    /// What the horizontal axis counts. That axis is always logarithmic.
    pub(crate) x_label: &'static str,
    /// What the vertical axis counts.
    pub(crate) y_label: &'static str,
    /// Whether the vertical axis is logarithmic.
    pub(crate) y_log: bool,
    /// Whether x counts bytes.
    pub(crate) x_bytes: bool,
    /// Name and points of each.
    pub(crate) series: Vec<(String, Vec<(f64, f64)>)>,
}

impl Plot {
    /// The points, one column per series.
    pub(crate) fn csv(&self) -> String {
        let mut xs: Vec<f64> = self.series.iter().flat_map(|(_, points)| points.iter().map(|(x, _)| *x)).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let names: Vec<&str> = self.series.iter().map(|(name, _)| name.as_str()).collect();
        let mut text = format!("{},{}\n", self.x_label, names.join(","));
        for x in xs {
            let _ = write!(text, "{x}");
            for (_, points) in &self.series {
                let y = points.iter().find(|(at, _)| *at == x).map_or_else(String::new, |(_, y)| format!("{y:.4}"));
                let _ = write!(text, ",{y}");
            }
            text.push('\n');
        }
        text
    }

    /// The picture.
    pub(crate) fn svg(&self) -> Result<String, Box<dyn Error + Send + Sync>> {
        let mut text = String::new();
        self.draw(&mut text).map_err(|cause| cause.to_string())?;
        Ok(text)
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn Error>> {
        let root = SVGBackend::with_string(text, (WIDTH, HEIGHT)).into_drawing_area();
        root.fill(&WHITE)?;
        let (plot_area, legend) = root.split_horizontally(WIDTH - LEGEND_WIDTH);
        let (x, y) = self.ranges();
        let mut builder = ChartBuilder::on(&plot_area);
        builder
            .caption(&self.title, (FONT, 18).into_font().color(&INK))
            .margin(10)
            .x_label_area_size(46)
            .y_label_area_size(70);
        let x_format = |value: &f64| if self.x_bytes { short_bytes(*value) } else { format!("{value:.0}") };
        let y_format = |value: &f64| short(*value);
        let x_ticks = ticks(&self.xs());
        let x_axis = (x.0..x.1).log_scale().with_key_points(x_ticks);
        // Each kind of vertical axis has a type of its own, hence a macro instead of a function.
        macro_rules! draw_on {
            ($y_axis:expr) => {{
                let mut chart = builder.build_cartesian_2d(x_axis, $y_axis)?;
                chart
                    .configure_mesh()
                    .x_desc(self.x_label)
                    .y_desc(self.y_label)
                    .x_label_formatter(&x_format)
                    .y_label_formatter(&y_format)
                    .axis_desc_style((FONT, 15).into_font().color(&INK))
                    .label_style((FONT, 13).into_font().color(&INK))
                    .light_line_style(WHITE.mix(0.0))
                    .bold_line_style(RGBColor(225, 225, 225))
                    .draw()?;
                for (at, (name, points)) in self.series.iter().enumerate() {
                    let (color, width) = style(name, at);
                    chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(width)))?;
                    chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, color.filled())))?;
                }
            }};
        }
        if self.y_log {
            let points = decades(y.0, y.1);
            draw_on!((y.0..y.1).log_scale().with_key_points(points));
        } else {
            draw_on!(y.0..y.1);
        }
        for (at, (name, _)) in self.series.iter().enumerate() {
            let (color, width) = style(name, at);
            let line = 50 + 22 * at as i32;
            legend.draw(&PathElement::new([(6, line), (30, line)], color.stroke_width(width)))?;
            legend.draw(&Circle::new((18, line), 3, color.filled()))?;
            let font = (FONT, 13).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
            legend.draw(&Text::new(name.as_str(), (38, line), font))?;
        }
        root.present()?;
        drop(legend);
        Ok(())
    }

    fn xs(&self) -> Vec<f64> {
        let mut xs: Vec<f64> = self.series.iter().flat_map(|(_, points)| points.iter().map(|(x, _)| *x)).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// Ends of the axes, a little beyond the points.
    fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let points = || self.series.iter().flat_map(|(_, points)| points.iter().copied());
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NEG_INFINITY, f64::max);
        let x = (least(&mut points().map(|p| p.0)) / 1.3, most(&mut points().map(|p| p.0)) * 1.3);
        let (low, high) = (least(&mut points().map(|p| p.1)), most(&mut points().map(|p| p.1)));
        let y = if self.y_log { (low / 1.5, high * 1.5) } else { (0.0, (high * 1.08).max(1e-9)) };
        (x, y)
    }
}

/// Nine of the values at most, evenly spread.
fn ticks(values: &[f64]) -> Vec<f64> {
    let step = values.len().div_ceil(9).max(1);
    values.iter().copied().step_by(step).collect()
}

/// Powers of ten between the two, with their halves and fifths where there are few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let powers = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let factors: &[f64] = if powers.clone().count() <= 4 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    powers
        .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
        .filter(|value| (low..=high).contains(value))
        .collect()
}

fn short_bytes(value: f64) -> String {
    match value {
        v if v >= 1_048_576.0 => format!("{}M", v / 1_048_576.0),
        v if v >= 1024.0 => format!("{}K", v / 1024.0),
        v => format!("{v}"),
    }
}

/// The value with about three significant digits.
fn short(value: f64) -> String {
    let text = match value.abs() {
        v if v >= 100.0 || v == 0.0 => return format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A system looks the same in every plot, and ours stands out; other series take colours in their
/// order.
fn style(name: &str, at: usize) -> (RGBColor, u32) {
    let color = SYSTEMS.iter().position(|known| *known == name).unwrap_or(at);
    (COLORS[color % COLORS.len()], if color == 0 { 3 } else { 2 })
}

/// Systems in the order of their colours.
const SYSTEMS: [&str; 13] = [
    "tributary",
    "openmpi-tuned",
    "tributary-mpi",
    "gloo",
    "pingpong",
    "mpich",
    "openmpi",
    "mpich-spin",
    "openmpi-ring",
    "openmpi-segmented-ring",
    "openmpi-rabenseifner",
    "openmpi-nonoverlapping",
    "openmpi-recursive-doubling",
];
const WIDTH: u32 = 900;
const HEIGHT: u32 = 460;
const LEGEND_WIDTH: u32 = 190;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(40, 40, 40);
/// Colours that people with any kind of colour vision can distinguish (Okabe and Ito's set, and
/// more).
const COLORS: [RGBColor; 13] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 150),
    RGBColor(110, 60, 20),
    RGBColor(120, 80, 200),
    RGBColor(170, 170, 60),
    RGBColor(60, 60, 140),
    RGBColor(240, 130, 130),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(y_log: bool) -> Plot {
        Plot {
            name: "test",
            title: "A title".to_owned(),
            x_label: "bytes",
            y_label: "us",
            y_log,
            x_bytes: true,
            series: vec![
                ("tributary".to_owned(), vec![(8.0, 120.0), (1024.0, 130.0), (1_048_576.0, 17_000.0)]),
                ("gloo & co".to_owned(), vec![(8.0, 4000.0)]),
            ],
        }
    }

    #[test]
    fn pictures_name_their_series_and_sizes() {
        for y_log in [true, false] {
            let svg = plot(y_log).svg().unwrap();
            for word in ["<svg", "A title", "tributary", "gloo &amp; co", "1K", "1M"] {
                assert!(svg.contains(word), "{word}");
            }
        }
    }

    #[test]
    fn columns_are_series() {
        assert_eq!(
            plot(true).csv(),
            "bytes,tributary,gloo & co\n8,120.0000,4000.0000\n1024,130.0000,\n1048576,17000.0000,\n"
        );
    }

    #[test]
    fn axes_have_few_and_round_labels() {
        assert_eq!(decades(0.5, 20.0), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(decades(1.0, 1e5), [1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0]);
        assert_eq!(ticks(&(0..20).map(f64::from).collect::<Vec<_>>()).len(), 7);
        assert_eq!([0.0123, 4.0, 55.0, 1234.0].map(short), ["0.012", "4", "55", "1234"]);
    }
}
