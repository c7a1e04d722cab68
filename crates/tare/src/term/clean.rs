//! What comes from the profiled program, or out of a file, does not steer the terminal: names of
//! threads, classes and files may hold any character, among them those that move the cursor, change
//! the title, or turn a line around.
//!
//! [`plain`] makes one harmless line of a name. [`Clean`] stands before every output as a second
//! net: it lets nothing through but text, line ends, tabs, and the few styles that are ours.

use std::io::{self, Write};
pub use tare_session::words::plain;
use tare_session::words::{escape, steers};

/// The sequences of the styles in `term`; each is whole in one piece.
const OURS: [&str; 6] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];

/// A stream through which only text and our own styles pass.
pub struct Clean<W: Write> {
    out: W,
    /// The beginning of a character or of a sequence whose end has not come yet.
    pending: Vec<u8>,
}

impl<W: Write> Clean<W> {
    pub fn new(out: W) -> Self {
        Clean { out, pending: Vec::new() }
    }

    /// Passes on what is whole; with `all`, the rest as well.
    fn pass(&mut self, all: bool) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.pending);
        if bytes.iter().all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t')) {
            return self.out.write_all(&bytes);
        }
        let mut text = String::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (valid, bad) = match std::str::from_utf8(rest) {
                Ok(valid) => (valid, None),
                Err(e) => {
                    let (valid, _) = rest.split_at(e.valid_up_to());
                    (std::str::from_utf8(valid).unwrap_or_default(), Some(e.error_len()))
                }
            };
            let left = filter(valid, all || bad.is_some(), &mut text);
            rest = &rest[valid.len() - left.len()..];
            match bad {
                Some(None) if !all => break,
                None if !left.is_empty() => break,
                Some(length) => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &rest[length.unwrap_or(rest.len())..];
                }
                None => {}
            }
        }
        self.pending = rest.to_vec();
        self.out.write_all(text.as_bytes())
    }
}

/// Adds the text without what steers; what may yet become a style of ours is left over.
fn filter<'t>(text: &'t str, all: bool, out: &mut String) -> &'t str {
    let mut rest = text;
    while let Some(at) = rest.find(|c| steers(c) && c != '\n' && c != '\t') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(style) = OURS.iter().find(|style| from.starts_with(**style)) {
            out.push_str(style);
            rest = &from[style.len()..];
            continue;
        }
        if !all && OURS.iter().any(|style| style.starts_with(from)) {
            return from;
        }
        let c = from.chars().next().unwrap_or_default();
        escape(c, out);
        rest = &from[c.len_utf8()..];
    }
    out.push_str(rest);
    ""
}

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        self.pass(false)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass(true)?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Clean<W> {
    fn drop(&mut self) {
        let _ = self.pass(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::{BAD, BOLD, DIM, GOOD, WARN};

    /// What comes out, given in pieces of so many bytes.
    fn through(bytes: &[u8], step: usize) -> String {
        let mut out = Vec::new();
        let mut clean = Clean::new(&mut out);
        bytes.chunks(step).for_each(|piece| clean.write_all(piece).unwrap());
        drop(clean);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_means_the_same_behind_it() {
        let value = serde_json::json!({ "name": "a\u{1b}[2J\u{9b}\u{7f}\u{202e}\n\u{e0001}ü" });
        let text = through(value.to_string().as_bytes(), 7);
        assert!(!text.contains(steers), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn only_text_and_our_styles_pass() {
        let styled = format!(
            "{BOLD}a{BOLD:#} {DIM}b{DIM:#} {GOOD}c{GOOD:#} {WARN}d{WARN:#} {BAD}ü{BAD:#}\n\t"
        );
        for step in 1..40 {
            assert_eq!(through(styled.as_bytes(), step), styled, "in pieces of {step}");
            for (bad, text) in [
                ("x\u{1b}]0;t\u{7}y", "x\\u001b]0;t\\u0007y"),
                ("\u{1b}[2J\u{1b}[1;1H", "\\u001b[2J\\u001b[1;1H"),
                ("\u{1b}[38;5;1m\u{1b}[8m", "\\u001b[38;5;1m\\u001b[8m"),
                ("\u{1b}[", "\\u001b["),
                ("a\rb\u{8}\u{0}", "a\\rb\\u0008\\u0000"),
                ("\u{9d}8;;x\u{9c}", "\\u009d8;;x\\u009c"),
                ("\u{202e}x", "\\u202ex"),
            ] {
                assert_eq!(through(bad.as_bytes(), step), text, "{bad:?} in pieces of {step}");
            }
            assert_eq!(through(b"a\xffb\xc3", step), "a\u{fffd}b\u{fffd}");
        }
    }
}
