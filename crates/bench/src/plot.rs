//! The steady-state figures as a bar plot in SVG, written by hand: a few rectangles need no
//! library.
//!
//! The axis is logarithmic, because a ratio of 1.02 and one of 24 stand side by side. A whisker
//! shows the bounds, a tick in red the aim.

use super::config::Config;
use super::figures::{Figures, Row, groups};

const LABELS: f64 = 170.0;
const WIDTH: f64 = 560.0;
const BAR: f64 = 16.0;
const TITLE: f64 = 34.0;
/// Left end of the axis; a profiled run may be quicker than a plain one by chance.
const LEAST: f64 = 0.5;

pub fn svg(rows: &[Row]) -> String {
    let groups = groups(rows);
    let figures: Vec<(String, Vec<(Config, Figures)>)> = groups
        .iter()
        .map(|(plain, same)| {
            let title = format!("{} on JDK {}", plain.workload, plain.jdk);
            (title, same.iter().map(|row| (row.config, row.figures(plain))).collect())
        })
        .collect();
    let all = || figures.iter().flat_map(|(_, rows)| rows.iter().map(|(_, f)| f));
    let most = all()
        .flat_map(|f| [f.steady.map_or(1.0, |r| r.high), f.target.unwrap_or(1.0)])
        .fold(2.0, f64::max);
    let axis = Axis { most };
    let lines: usize = figures.iter().map(|(_, rows)| rows.len()).sum();
    let height = figures.len() as f64 * TITLE + lines as f64 * BAR + 20.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{height:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        LABELS + WIDTH + 60.0,
    );
    for mark in [1.0, 2.0, 5.0, 10.0, 20.0, 50.0].into_iter().filter(|m| *m <= most) {
        let x = axis.x(mark);
        text += &format!(
            "<line x1=\"{x:.1}\" y1=\"10\" x2=\"{x:.1}\" y2=\"{:.0}\" stroke=\"#ddd\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#666\">{mark}×</text>\n",
            height - 16.0,
            height - 4.0,
        );
    }
    let mut y = 0.0;
    for (title, rows) in &figures {
        y += TITLE;
        text +=
            &format!("<text x=\"6\" y=\"{:.0}\" font-weight=\"bold\">{title}</text>\n", y - 8.0);
        for (config, figures) in rows {
            text += &bar(&axis, y, *config, figures);
            y += BAR;
        }
    }
    text + "</svg>\n"
}

struct Axis {
    most: f64,
}

impl Axis {
    fn x(&self, ratio: f64) -> f64 {
        let share = (ratio.max(LEAST) / LEAST).ln() / (self.most / LEAST).ln();
        LABELS + WIDTH * share
    }
}

fn bar(axis: &Axis, y: f64, config: Config, figures: &Figures) -> String {
    let Some(steady) = figures.steady else { return String::new() };
    let colour = match config {
        Config::Plain => "#999",
        config if config.is_ours() => "#3b7dd8",
        _ => "#c9a227",
    };
    let (from, to) = (axis.x(LEAST), axis.x(steady.value));
    let middle = y + BAR / 2.0 - 1.0;
    let mut text = format!(
        "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
         <rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>\n\
         <line x1=\"{:.1}\" y1=\"{middle:.1}\" x2=\"{:.1}\" y2=\"{middle:.1}\" stroke=\"black\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\">{:.2}</text>\n",
        LABELS - 6.0,
        y + 10.0,
        config.name(),
        to - from,
        BAR - 3.0,
        axis.x(steady.low),
        axis.x(steady.high),
        axis.x(steady.high) + 6.0,
        y + 10.0,
        steady.value,
    );
    if let Some(target) = figures.target {
        let x = axis.x(target);
        text += &format!(
            "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"#d22\" \
             stroke-width=\"2\"/>\n",
            y + BAR - 3.0,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Jfr, Mode};
    use crate::figures::tests::row;

    #[test]
    fn the_axis_doubles_by_equal_steps() {
        let axis = Axis { most: 8.0 };
        let (one, two, four) = (axis.x(1.0), axis.x(2.0), axis.x(4.0));
        assert!(((two - one) - (four - two)).abs() < 1e-9);
        assert!((axis.x(8.0) - LABELS - WIDTH).abs() < 1e-9);
        assert_eq!(axis.x(0.1), LABELS);
    }

    #[test]
    fn each_row_is_a_bar_and_each_aim_a_tick() {
        let rows = [
            row(Config::Plain, &[10.0, 10.0]),
            row(Config::Launched(Mode::Count), &[21.0, 22.0]),
            row(Config::Jfr(Jfr::Profile), &[10.1, 10.2]),
        ];
        let svg = svg(&rows);
        for colour in ["#999", "#3b7dd8", "#c9a227"] {
            assert_eq!(svg.matches(&format!("fill=\"{colour}\"")).count(), 1, "{svg}");
        }
        assert_eq!(svg.matches("#d22").count(), 1);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains(">2.15<"), "{svg}");
    }
}
