//! Paints what there is to see. The same state gives the same picture.

mod details;
mod lines;
mod rows;

use crate::app::{App, Standing};
use crate::pages::Page;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::terminal::Frame;

/// A smaller terminal shows nothing that would be of use.
const SMALLEST: (u16, u16) = (40, 10);

pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
const GOOD: Style = Style::new().fg(Color::Green);
const WARN: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
pub(crate) const MARK: Style = Style::new().fg(Color::Cyan);

pub fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("tare top needs {}×{}; q ends", SMALLEST.0, SMALLEST.1);
        put(buffer, area, 0, 0, &text, Style::new());
        return;
    }
    head(buffer, area, app);
    lines::draw(buffer, Rect { y: 1, height: 2, ..area }, app);
    tabs(buffer, area, app);
    let height = details::height(app, area);
    let rows = Rect { y: 4, height: area.height - 5 - height, ..area };
    rows::draw(buffer, rows, app);
    if height > 0 {
        let below = Rect { y: rows.bottom(), height, ..area };
        details::draw(buffer, below, app);
    }
    foot(buffer, area, app);
    if app.help {
        details::help(buffer, area, app);
    }
}

/// Writes into a line, as far as there is room; where it ends.
pub(crate) fn put(
    buffer: &mut Buffer,
    area: Rect,
    x: u16,
    y: u16,
    text: &str,
    style: Style,
) -> u16 {
    if y >= area.height || x >= area.width {
        return x;
    }
    let room = usize::from(area.width - x);
    buffer.set_stringn(area.x + x, area.y + y, text, room, style).0 - area.x
}

/// The same so that it ends there.
fn put_right(buffer: &mut Buffer, area: Rect, right: u16, y: u16, text: &str, style: Style) -> u16 {
    let x = right.saturating_sub(width(text));
    put(buffer, area, x, y, text, style);
    x
}

pub(crate) fn width(text: &str) -> u16 {
    u16::try_from(ratatui_core::text::Span::raw(text).width()).unwrap_or(u16::MAX)
}

/// Lines of whole words; one that is longer than a line goes on in the next.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let last = lines.last_mut().expect("there is one always");
            let used = last.chars().count();
            let space = usize::from(used > 0);
            if used + space + word.len() <= columns {
                if space > 0 {
                    last.push(' ');
                }
                last.extend(word);
                break;
            }
            if used > 0 {
                lines.push(String::new());
                continue;
            }
            last.extend(word.drain(..columns.min(word.len())));
            if word.is_empty() {
                break;
            }
        }
    }
    lines
}

fn head(buffer: &mut Buffer, area: Rect, app: &App) {
    let header = &app.header;
    let dot = if app.paint.ascii { "*" } else { "●" };
    let (text, style) = match &header.standing {
        Standing::Beginning => ("…".to_owned(), DIM),
        Standing::Live => (header.how.clone(), GOOD),
        Standing::Waiting(_) => ("waiting".to_owned(), WARN),
        Standing::Ended(_) => ("ended".to_owned(), BAD),
    };
    let mut right = put_right(buffer, area, area.width, 0, &text, style);
    if header.standing == Standing::Live {
        right = put_right(buffer, area, right.saturating_sub(1), 0, dot, style);
    }
    if let Some(file) = &header.recording {
        let text = format!("REC {file} ");
        let room = usize::from(area.width / 3);
        right =
            put_right(buffer, area, right.saturating_sub(1), 0, &(app.paint.fit)(&text, room), BAD);
    }
    let after = format!("  {}  {}", header.pid, header.jdk);
    let room = right.saturating_sub(width(&after) + 2);
    let name = (app.paint.fit)(&header.name, usize::from(room));
    let x = put(buffer, area, 0, 0, &name, BOLD);
    let left = Rect { width: right.saturating_sub(1), ..area };
    put(buffer, left, x, 0, &after, DIM);
}

fn tabs(buffer: &mut Buffer, area: Rect, app: &App) {
    let line = Rect { y: 3, height: 1, ..area };
    buffer.set_style(line, REVERSED);
    let mut x = 0;
    for page in Page::ALL {
        let text = format!(" {} {} ", page.number() + 1, page.title());
        let style =
            if page == app.page { BOLD.remove_modifier(Modifier::REVERSED) } else { REVERSED };
        x = put(buffer, line, x, 0, &text, style);
    }
    let mut notes = vec![format!("last {} s", app.seconds())];
    if app.is_frozen() {
        notes.push("order frozen".to_owned());
    }
    if !app.filter.is_empty() && app.typing.is_none() {
        notes.push(format!("/{}", app.filter));
    }
    let text = format!("{} ", notes.join(", "));
    let room = usize::from(area.width.saturating_sub(x + 1));
    put_right(buffer, line, area.width, 0, &(app.paint.fit)(&text, room), REVERSED);
}

/// What is typed, what is to be said, or which keys there are.
fn foot(buffer: &mut Buffer, area: Rect, app: &App) {
    let y = area.height - 1;
    if let Some(text) = &app.typing {
        let x = put(buffer, area, 0, y, "filter: ", BOLD);
        let x = put(buffer, area, x, y, text, Style::new());
        put(buffer, area, x, y, " ", REVERSED);
        return;
    }
    if let Some(message) = app.message() {
        let lines = wrapped(message, usize::from(area.width));
        let top = area.height - (lines.len() as u16).min(4);
        for (y, line) in (top..area.height).zip(lines) {
            let blank = " ".repeat(usize::from(area.width));
            put(buffer, area, 0, y, &blank, Style::reset());
            put(buffer, area, 0, y, &line, WARN);
        }
        return;
    }
    let clock = if app.wall { "cpu" } else { "wall" };
    let record = if app.header.recording.is_some() { "stop" } else { "record" };
    let keys = [
        ("↑↓", "row"),
        ("/", "filter"),
        ("<>", "order"),
        ("[]", "span"),
        ("e", "exact"),
        ("w", clock),
        ("r", record),
        ("v", "view"),
        ("?", "help"),
        ("q", "quit"),
    ];
    let mut x = 0;
    for (key, does) in keys {
        let key = if app.paint.ascii && key == "↑↓" { "jk" } else { key };
        if x + width(key) + width(does) + 1 > area.width {
            break;
        }
        x = put(buffer, area, x, y, key, BOLD);
        x = put(buffer, area, x + 1, y, does, DIM) + 1;
    }
}
