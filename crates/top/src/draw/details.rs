//! What there is beside the row that is selected, and the page of keys.

use super::{BOLD, DIM, MARK, REVERSED, put, width, wrapped};
use crate::app::{App, Standing, Weighed, Weighing};
use crate::pages::{Page, Side};
use crate::table::{counted, time};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// Lines that details take.
pub fn height(app: &App, area: Rect) -> u16 {
    let words = words(app, area).len() as u16;
    if app.view().selected.is_none() {
        return words;
    }
    let most = if app.wide { area.height / 2 } else { (area.height / 5).clamp(4, 9) };
    (most + words).min(area.height - 7)
}

/// What there is to say of the page, in two lines at most.
fn words(app: &App, area: Rect) -> Vec<String> {
    let text = match &app.header.standing {
        Standing::Waiting(why) | Standing::Ended(why) => why,
        _ => &app.snapshot.words[app.page.number()],
    };
    if text.is_empty() {
        return Vec::new();
    }
    let mut lines = wrapped(text, usize::from(area.width));
    lines.truncate(2);
    lines
}

pub fn draw(buffer: &mut Buffer, area: Rect, app: &App) {
    let mut area = area;
    for line in words(app, area).iter().rev() {
        let style = if app.header.standing == Standing::Live { DIM } else { BOLD };
        put(buffer, area, 0, area.height - 1, line, style);
        area.height -= 1;
    }
    let Some(selected) = &app.view().selected else { return };
    if area.height < 2 {
        return;
    }
    let rule = if app.paint.ascii { "-" } else { "─" };
    put(buffer, area, 0, 0, &rule.repeat(usize::from(area.width)), DIM);
    let is_method = app.page == Page::Methods;
    if let Some(weighed) = app.weighed.get(selected).filter(|_| is_method) {
        put(buffer, area, 0, 0, &format!("{} ", exact(weighed, app)), MARK);
    }
    let half = area.width / 2;
    let detail = &app.snapshot.detail;
    let left = Rect { width: half - 1, ..area };
    let right = Rect { x: area.x + half, width: area.width - half, ..area };
    for (side, cell) in [(&detail.left, left), (&detail.right, right)] {
        one_side(buffer, cell, 1, side, app);
    }
}

fn one_side(buffer: &mut Buffer, area: Rect, y: u16, side: &Side, app: &App) {
    put(buffer, area, 0, y, &side.title, BOLD);
    for (at, (share, name)) in (y + 1..area.height).zip(&side.rows) {
        let x = match share {
            Some(share) => put(buffer, area, 0, at, &format!("{:>5.1} % ", share * 100.0), DIM),
            None => 0,
        };
        let room = usize::from(area.width.saturating_sub(x));
        put(buffer, area, x, at, &(app.paint.fit)(name, room), Style::new());
    }
}

/// What exact counts say.
fn exact(weighed: &Weighed, app: &App) -> String {
    let figures = || {
        let times = weighed.times.map_or_else(String::new, |[mean, half, most]| {
            let (mean, half, most) = (time(mean), time(half), time(most));
            format!(", mean {mean}, p50 {half}, p99 {most}")
        });
        format!("{} calls/s{times}", counted(weighed.calls))
    };
    let text = match &weighed.state {
        Weighing::Begins => "exact: its class is being woven …".to_owned(),
        Weighing::Counts => {
            format!("exact, {} s: {}; e ends it", weighed.seconds, figures())
        }
        Weighing::Over => format!("exact, over {} s: {}", weighed.seconds, figures()),
        Weighing::Failed(why) => format!("not weighed: {why}"),
    };
    if app.paint.ascii { text.replace('…', "...") } else { text }
}

const HELP: [(&str, &str); 19] = [
    ("1–5 Tab ← →", "methods, threads, collections, locks, classes"),
    ("↑ ↓ PgUp PgDn", "select a row: the order is frozen, details are below"),
    ("Enter", "more room for what is beside the row"),
    ("Esc", "give up the row, the frozen order, the filter"),
    ("/", "show only rows that have a text in them"),
    ("< > i", "order by the column before or after; invert"),
    ("o t a l c m n", "order by own, total, allocation, locks, calls, mean, name"),
    ("[ ]", "look back 1, 5, 10, 30 or 60 seconds"),
    ("Space", "freeze the order; figures go on"),
    ("e", "weigh the row: weave that method for ten seconds, count"),
    ("", "and time each call; again takes it back at once"),
    ("w", "sample by the wall clock, also who waits; or cpu again"),
    ("r", "record into a .tare file; again ends it"),
    ("v", "the same in the browser: tare view"),
    ("^L ^Z ^C q", "draw anew, suspend, end"),
    ("", ""),
    ("lock ms/s", "milliseconds a second that threads waited for locks"),
    ("±", "19 of 20 times the own share is as near as this"),
    ("tare", "processor time of this program, and of ours in the JVM"),
];

pub fn help(buffer: &mut Buffer, area: Rect, app: &App) {
    let widest = HELP.iter().map(|(_, text)| width(text) + 18).max().unwrap_or(0);
    let (columns, lines) = (widest.min(area.width), (HELP.len() as u16 + 3).min(area.height));
    let place = Rect {
        x: (area.width - columns) / 2,
        y: (area.height - lines) / 2,
        width: columns,
        height: lines,
    };
    for y in 0..place.height {
        put(buffer, place, 0, y, &" ".repeat(usize::from(columns)), Style::new());
    }
    buffer.set_style(place, Style::reset());
    let title = Rect { height: 1, ..place };
    put(buffer, title, 1, 0, "Keys (any of them closes this)", BOLD);
    buffer.set_style(title, REVERSED);
    for (y, (keys, text)) in (2_u16..).zip(HELP) {
        let keys = if app.paint.ascii { ascii(keys) } else { keys.to_owned() };
        put(buffer, place, 1, y, &keys, BOLD);
        put(buffer, place, 17, y, text, Style::new());
    }
}

fn ascii(text: &str) -> String {
    let names = [('↑', "Up"), ('↓', "Down"), ('←', "Left"), ('→', "Right"), ('–', "-")];
    names.iter().fold(text.to_owned(), |text, (from, to)| text.replace(*from, to))
}
