//! JSON as a stream: the files are too large to be built in memory first.

use std::io::{self, Write};

/// A text with its quotes and escapes.
pub fn text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    serde_json::to_writer(out, text).map_err(io::Error::from)
}

pub fn text_or_null(out: &mut dyn Write, known: Option<&str>) -> io::Result<()> {
    match known {
        Some(known) => text(out, known),
        None => out.write_all(b"null"),
    }
}

/// `[a,b,c]`, each written by `one`.
pub fn list<T>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    mut one: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(b"[")?;
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            out.write_all(b",")?;
        }
        one(out, item)?;
    }
    out.write_all(b"]")
}

/// `"key":[a,b,c]` of numbers, or whatever else displays as JSON.
pub fn column<T: std::fmt::Display>(
    out: &mut dyn Write,
    key: &str,
    items: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    write!(out, "\"{key}\":")?;
    list(out, items, |out, item| write!(out, "{item}"))
}

/// A number, or `null`.
pub fn optional(number: Option<impl std::fmt::Display>) -> String {
    number.map_or_else(|| "null".to_owned(), |number| number.to_string())
}
