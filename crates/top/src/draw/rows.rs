//! The table: its head, and as many rows as there is room for.

use super::{BOLD, DIM, MARK, REVERSED, put, put_right, width};
use crate::app::{App, Standing, Weighing};
use crate::pages::Page;
use crate::table::{Column, Value};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};

/// A column, where it begins, and how wide it is.
struct Place {
    at: usize,
    column: Column,
    x: u16,
    width: u16,
}

fn places(app: &App, columns: u16) -> Vec<Place> {
    let exact = ["calls_per_second", "mean"];
    let is_exact = app.page == Page::Methods && app.has_weighed();
    let has_room = |column: &Column| match () {
        () if is_exact && exact.contains(&column.id) => true,
        // What was asked for has the room of what was not.
        () if is_exact && columns < 100 => column.least == 0 && column.id != "margin",
        () => columns >= column.least,
    };
    let chosen: Vec<(usize, Column)> =
        app.page.columns().iter().copied().enumerate().filter(|(_, c)| has_room(c)).collect();
    let fixed: u16 = chosen.iter().map(|(_, column)| column.width + 1).sum();
    let flexible = chosen.iter().filter(|(_, column)| column.width == 0).count() as u16;
    let rest = columns.saturating_sub(fixed);
    let mut x = 0;
    let mut left = flexible;
    let mut rest_left = rest;
    chosen
        .into_iter()
        .map(|(at, column)| {
            let mut width = column.width;
            if width == 0 {
                width = rest_left / left.max(1);
                rest_left -= width;
                left -= 1;
            }
            let place = Place { at, column, x, width };
            x += width + 1;
            place
        })
        .collect()
}

/// Texts are read from the left, numbers stand below each other.
fn is_text(column: &Column) -> bool {
    column.width == 0 || ["state", "kind", "loader"].contains(&column.id)
}

pub fn draw(buffer: &mut Buffer, area: Rect, app: &mut App) {
    app.room = usize::from(area.height.saturating_sub(1));
    let places = places(app, area.width);
    let (order, selected) = (app.view().order, app.view().selected.clone());
    for place in &places {
        let is_order = place.at == order;
        let style = if is_order { BOLD.add_modifier(Modifier::UNDERLINED) } else { DIM };
        let title = match (app.page, place.column.id, app.wall) {
            (Page::Threads, "busy", true) => "busy %",
            _ => place.column.title,
        };
        cell(buffer, area, place, 0, title, style);
    }
    if app.view().rows.is_empty() {
        put(buffer, area, 2, 2, &nothing(app), DIM);
        return;
    }
    let view = app.view();
    let rows = view.rows.iter().skip(view.top).take(app.room);
    for (y, row) in (1_u16..).zip(rows) {
        let is_selected = selected.as_deref() == Some(row.key.as_str());
        let line = Rect { y: area.y + y, height: 1, ..area };
        for place in &places {
            let value = &row.values[place.at];
            let (text, style) = match (value, place.column.id) {
                (Value::Text(text), "state") if text.is_empty() => {
                    (app.states.get(&row.key).cloned().unwrap_or_default(), DIM)
                }
                (Value::Text(text), _) if is_text(&place.column) => {
                    ((app.paint.fit)(text, usize::from(place.width)), Style::new())
                }
                (Value::Nothing, _) => ("–".to_owned(), DIM),
                (value, "margin") => (value.shown(), DIM),
                (value, "calls_per_second" | "mean") => (value.shown(), MARK),
                (value, _) => (value.shown(), Style::new()),
            };
            let text = if app.paint.ascii { text.replace('–', "-") } else { text };
            cell(buffer, area, place, y, &text, style);
        }
        if is_selected {
            buffer.set_style(line, REVERSED);
        } else if app.weighed.get(&row.key).is_some_and(|one| one.state == Weighing::Counts) {
            buffer.set_style(line, BOLD);
        }
    }
    more(buffer, area, app);
}

fn cell(buffer: &mut Buffer, area: Rect, place: &Place, y: u16, text: &str, style: Style) {
    let cell = Rect { x: area.x + place.x, width: place.width.min(area.width - place.x), ..area };
    if is_text(&place.column) || width(text) > place.width {
        put(buffer, cell, 0, y, text, style);
    } else {
        put_right(buffer, cell, place.width, y, text, style);
    }
}

/// Where one is in a table that is longer than the screen.
fn more(buffer: &mut Buffer, area: Rect, app: &App) {
    let view = app.view();
    let (count, end) = (view.rows.len(), view.top + app.room);
    if count > app.room && view.selected.is_some() {
        let text = format!(" {}–{} of {count}", view.top + 1, end.min(count));
        let text = if app.paint.ascii { text.replace('–', "-") } else { text };
        put_right(buffer, area, area.width, 0, &text, DIM);
    }
}

fn nothing(app: &App) -> String {
    match &app.header.standing {
        Standing::Beginning => "the first figures come in a second".to_owned(),
        Standing::Waiting(why) | Standing::Ended(why) => why.clone(),
        Standing::Live if !app.filter.is_empty() => {
            format!("nothing has {:?} in its name; / changes the filter, Esc drops it", app.filter)
        }
        Standing::Live => match app.page {
            Page::Methods if app.wall => "no thread was seen in the last seconds",
            Page::Methods => {
                "no thread used a processor in the last seconds; w shows what threads wait for"
            }
            Page::Threads => "no thread",
            Page::Collections => "no collection since top began",
            Page::Locks => "no thread had to wait for a lock in the last seconds",
            Page::Classes => "no class was loaded since top began",
        }
        .to_owned(),
    }
}
