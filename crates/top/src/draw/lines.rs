//! The lines at the top: what the JVM does as a whole, and what looking at it costs.

use super::{BOLD, DIM, MARK, put};
use crate::app::App;
use crate::history::Gauge;
use crate::table::bytes;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

const BARS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII: [&str; 8] = ["_", ".", ":", "-", "=", "+", "*", "#"];

/// The longest text behind a line.
const TEXT: u16 = 12;

pub fn draw(buffer: &mut Buffer, area: Rect, app: &App) {
    let third = area.width / 3;
    for (at, gauge) in (0_u16..).zip(Gauge::ALL) {
        let (x, y) = (at % 3 * third, at / 3);
        let last = if at % 3 == 2 { area.width - 2 * third } else { third };
        let cell = Rect { x: area.x + x, y: area.y + y, width: last - 1, height: 1 };
        one(buffer, cell, app, gauge);
    }
}

fn one(buffer: &mut Buffer, area: Rect, app: &App, gauge: Gauge) {
    let x = put(buffer, area, 0, 0, gauge.name(), DIM) + 1;
    let points = area.width.saturating_sub(x + TEXT + 1);
    let values: Vec<Option<f64>> = app.history.line(gauge, usize::from(points)).collect();
    let most = scale(app, gauge, &values);
    let bars = if app.paint.ascii { &ASCII } else { &BARS };
    let first = x + points.saturating_sub(u16::try_from(values.len()).unwrap_or(u16::MAX));
    for (at, value) in (first..).zip(values) {
        if let Some(value) = value {
            let level = (value / most * 7.99).clamp(0.0, 7.0) as usize;
            put(buffer, area, at, 0, bars[level], MARK);
        }
    }
    put(buffer, area, x + points + 1, 0, &text(app, gauge), BOLD);
}

/// What the highest bar stands for. Shares have a limit of their own; the rest is as high as it has
/// been.
fn scale(app: &App, gauge: Gauge, values: &[Option<f64>]) -> f64 {
    let highest = values.iter().flatten().copied().fold(0.0, f64::max);
    let least = match gauge {
        Gauge::Cpu => f64::from(app.header.cpus.max(1)),
        Gauge::Gc => 0.1,
        Gauge::Tare => 0.05,
        Gauge::Blocked => 1.0,
        Gauge::Heap | Gauge::Alloc => 1.0,
    };
    highest.max(least)
}

fn text(app: &App, gauge: Gauge) -> String {
    // A second alone would flicker.
    let smooth = |gauge| app.history.mean(gauge, 3);
    let value = match gauge {
        Gauge::Heap => app.history.last().heap,
        _ => smooth(gauge),
    };
    let Some(value) = value else { return "–".to_owned() };
    match gauge {
        Gauge::Cpu => format!("{:.0} %/{}00", value * 100.0, app.header.cpus.max(1)),
        Gauge::Heap => bytes(value),
        Gauge::Alloc => format!("{}/s", bytes(value)),
        Gauge::Gc => format!("{:.1} %", value * 100.0),
        Gauge::Blocked => format!("{value:.1} threads"),
        Gauge::Tare => format!("{:.1} %", value * 100.0),
    }
}
