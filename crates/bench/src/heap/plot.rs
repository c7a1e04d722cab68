//! How pauses, times and memory grow with the heap, as three plots.

use super::measure::Point;
use std::fmt::Write as _;

const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 180.0;
const MARGIN: f64 = 52.0;

/// A name, a colour, and a figure of a point, if it has one.
type Line = (&'static str, &'static str, fn(&Point) -> Option<f64>);

struct Plot {
    title: &'static str,
    x: fn(&Point) -> f64,
    lines: &'static [Line],
}

const OURS: &str = "#1f77b4";
const THEIRS: &str = "#d62728";

const PLOTS: [Plot; 3] = [
    Plot {
        title: "pause in ms, by GB resident",
        x: |point| point.resident / 1e9,
        lines: &[
            ("tare heap PID", OURS, |point| Some(point.pause)),
            ("tare heap PID histo", "#2ca02c", |point| Some(point.count_pause)),
            ("HotSpot's dump", THEIRS, |point| Some(point.dump_pause)),
        ],
    },
    Plot {
        title: "seconds to read, by GB of the dump",
        x: |point| point.dump / 1e9,
        lines: &[
            ("tare heap FILE", OURS, |point| Some(point.ours.seconds)),
            ("again", "#2ca02c", |point| Some(point.again.seconds)),
            ("MAT", THEIRS, |point| Some(point.peers[0]?.seconds)),
            ("hprof-analyzer", "#9467bd", |point| Some(point.peers[1]?.seconds)),
            ("hprof-slurp", "#8c564b", |point| Some(point.peers[2]?.seconds)),
        ],
    },
    Plot {
        title: "GB of memory, by GB of the dump",
        x: |point| point.dump / 1e9,
        lines: &[
            ("tare heap FILE", OURS, |point| Some(point.ours.memory / 1e9)),
            ("MAT", THEIRS, |point| Some(point.peers[0]?.memory / 1e9)),
            ("hprof-analyzer", "#9467bd", |point| Some(point.peers[1]?.memory / 1e9)),
            ("hprof-slurp", "#8c564b", |point| Some(point.peers[2]?.memory / 1e9)),
        ],
    },
];

pub fn svg(points: &[Point]) -> String {
    let width = PLOTS.len() as f64 * (WIDTH + MARGIN) + MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        HEIGHT + 2.0 * MARGIN,
    );
    for (number, plot) in PLOTS.iter().enumerate() {
        draw(&mut text, plot, MARGIN + number as f64 * (WIDTH + MARGIN), points);
    }
    text + "</svg>\n"
}

/// Both axes begin at zero, so that what grows in step is a straight line.
fn draw(text: &mut String, plot: &Plot, left: f64, points: &[Point]) {
    let figures = |line: &Line| points.iter().filter_map(line.2).fold(0.0, f64::max);
    let most_y = plot.lines.iter().map(figures).fold(0.0, f64::max).max(1e-9);
    let most_x = points.iter().map(plot.x).fold(0.0, f64::max).max(1e-9);
    let x = |value: f64| left + WIDTH * value / most_x;
    let y = |value: f64| MARGIN + HEIGHT * (1.0 - value / most_y);
    let _ = writeln!(
        text,
        "<text x=\"{left:.0}\" y=\"20\" font-weight=\"bold\">{}</text>\n\
         <rect x=\"{left:.1}\" y=\"{MARGIN}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>",
        plot.title
    );
    for share in [0.0, 0.5, 1.0] {
        let value = most_y * share;
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#666\">{}</text>",
            left - 4.0,
            y(value) + 4.0,
            short(value),
        );
    }
    for point in points {
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#666\">{}</text>",
            x((plot.x)(point)),
            MARGIN + HEIGHT + 14.0,
            short((plot.x)(point)),
        );
    }
    for (at, line) in plot.lines.iter().enumerate() {
        let (name, colour, figure) = line;
        let places: Vec<String> = points
            .iter()
            .filter_map(|point| Some(format!("{:.1},{:.1}", x((plot.x)(point)), y(figure(point)?))))
            .collect();
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
            places.join(" "),
            left + 8.0,
            MARGIN + 14.0 + at as f64 * 14.0,
        );
    }
}

fn short(value: f64) -> String {
    match value {
        value if value >= 10.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::tests::point;

    #[test]
    fn each_figure_is_a_line_and_each_size_a_mark() {
        let svg = svg(&[point(1e9), point(2e9)]);
        assert_eq!(svg.matches("<polyline").count(), 12, "{svg}");
        assert!(svg.contains(">1.00</text>") && svg.contains(">2.00</text>"), "{svg}");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
