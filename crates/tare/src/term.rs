//! What the terminal can do, the few styles we use, and the only ways to it: [`stdout`], `outln!`
//! and `errln!`. `anstream` drops colour in pipes and for `NO_COLOR`; `clean` whatever else would
//! steer a terminal.

mod clean;
mod full;
mod pager;

pub use clean::plain;
pub use full::{FullScreen, Input, can_be_full, output as full_output};
pub use tare_session::words::{count, time};

use crate::relayed;
use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clean::Clean;
use serde::Serialize;
use std::fmt::Arguments;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const WARN: Style = AnsiColor::Yellow.on_default();
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Columns of the terminal that standard output goes to; `None` in a pipe or file.
pub fn width() -> Option<usize> {
    size_of_output().map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0)
}

/// Lines of the terminal that standard output goes to; `None` in a pipe or file.
pub fn height() -> Option<usize> {
    size_of_output().map(|(_, lines)| usize::from(lines)).filter(|lines| *lines > 0)
}

/// Columns of that of standard error.
pub fn error_width() -> Option<usize> {
    size_of_errors().map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0)
}

/// Columns and lines of the terminal that standard output goes to, here or at the other end of a
/// relay.
pub fn size_of_output() -> Option<(u16, u16)> {
    size(false, io::stdout())
}

/// The same of standard error.
pub fn size_of_errors() -> Option<(u16, u16)> {
    size(true, io::stderr())
}

fn size(of_error: bool, stream: impl AsFd) -> Option<(u16, u16)> {
    if let Some(theirs) = relayed::terminal(of_error) {
        return theirs.map(|size| (size.columns, size.lines));
    }
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some((size.ws_col, size.ws_row))
}

/// Whether standard error goes to a terminal.
pub fn has_error_terminal() -> bool {
    match relayed::terminal(true) {
        Some(theirs) => theirs.is_some(),
        None => io::stderr().is_terminal(),
    }
}

/// A line on standard error that the next one replaces. It is no longer than the terminal: what
/// wraps cannot be taken back. Nothing is an empty line.
pub fn progress(text: &str) {
    let width = size_of_errors().map_or(usize::MAX, |size| usize::from(size.0).wrapping_sub(1));
    IS_SHOWN.store(!text.is_empty(), Ordering::Relaxed);
    if relayed::progress(&clip(text, width)) {
        return;
    }
    eprint!("\r\x1b[K{}", clip(text, width));
    let _ = io::stderr().flush();
}

/// Whether such a line is on the terminal, which must go before anything else is written.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// A line on the terminal, if there is one, for as long as something is done.
pub struct Doing;

impl Doing {
    pub fn say(text: &str, quiet: bool) -> Option<Doing> {
        shows_progress(quiet).then(|| {
            progress(text);
            Doing
        })
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        if IS_SHOWN.load(Ordering::Relaxed) {
            progress("");
        }
    }
}

/// Whether there is a line of progress: on a terminal, unless it is to be quiet there.
pub fn shows_progress(quiet: bool) -> bool {
    !quiet && has_error_terminal()
}

/// Standard output, for text.
pub fn stdout() -> Clean<AutoStream<StdoutLock<'static>>> {
    Clean::new(anstream::stdout().lock())
}

/// A whole text for people, with our styles; page by page, if that is wanted, standard output is a
/// terminal, and the text is longer than it.
pub fn show(text: &[u8], paged: bool) -> anyhow::Result<()> {
    if paged && is_longer_than_screen(text) {
        let colours = AutoStream::choice(&io::stdout());
        let mut stream = AutoStream::new(Vec::new(), colours);
        put(Clean::new(&mut stream), format_args!("{}", String::from_utf8_lossy(text)));
        if pager::show(&stream.into_inner())? {
            return Ok(());
        }
    }
    let mut out = BufWriter::new(stdout());
    out.write_all(text)?;
    Ok(out.flush()?)
}

/// Whether standard output is a terminal that cannot show the text and a prompt below it at once.
pub fn is_longer_than_screen(text: &[u8]) -> bool {
    // Of a terminal elsewhere that is asked there.
    if relayed::is() {
        return false;
    }
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    height().is_some_and(|height| lines >= height)
}

/// A value as JSON on standard output, for scripts; what steers a terminal is escaped, as JSON
/// allows it for any character.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = BufWriter::new(stdout());
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// Prints to standard output, for people.
macro_rules! out {
    ($($text:tt)*) => { $crate::term::put($crate::term::stdout(), format_args!($($text)*)) };
}

/// Prints a line to standard output, for people.
macro_rules! outln {
    ($($text:tt)*) => { out!("{}\n", format_args!($($text)*)) };
}

/// Prints a line to standard error.
macro_rules! errln {
    ($($text:tt)*) => { $crate::term::put_error(format_args!("{}\n", format_args!($($text)*))) };
}

/// Standard output for what is no text: the far end of a connection. Nothing else may be written
/// there.
pub fn wire() -> io::Result<std::fs::File> {
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Whether an error only means that nobody reads what is printed, as in `tare ps | head -1`.
pub fn is_closed(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// What came of printing, for whom more depends on than the reader, who may have all that he
/// wanted.
pub fn printed(outcome: anyhow::Result<()>) -> anyhow::Result<()> {
    outcome.or_else(|error| if is_closed(&error) { Ok(()) } else { Err(error) })
}

/// A reader that has closed the pipe has all it wanted; anything else must not go unnoticed.
pub fn put(mut out: impl Write, text: Arguments<'_>) {
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => panic!("cannot print: {e}"),
        _ => {}
    }
}

pub fn put_error(text: Arguments<'_>) {
    if IS_SHOWN.load(Ordering::Relaxed) {
        progress("");
    }
    put(Clean::new(anstream::stderr().lock()), text);
}

/// The first `width` columns of a text of somebody else, as one line, with an ellipsis when
/// something is lost.
pub fn clip(text: &str, width: usize) -> String {
    let text = plain(text).into_owned();
    if text.chars().count() <= width {
        return text;
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_counts_characters() {
        assert_eq!(clip("grüße", 5), "grüße");
        assert_eq!(clip("grüße", 4), "grü…");
    }
}
