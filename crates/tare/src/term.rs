//! What the terminal can do, and the few styles we use. `anstream` drops colour in pipes and for
//! `NO_COLOR`.

use anstyle::{AnsiColor, Style};
use std::time::Duration;

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const WARN: Style = AnsiColor::Yellow.on_default();
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Columns of the terminal that standard output goes to; `None` in a pipe or file.
pub fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// The first `width` columns of a text, with an ellipsis when something is lost.
pub fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// `950`, `12.3 k`, `4.5 M`, `1.2 G`.
pub fn count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1} k", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} M", n as f64 / 1e6),
        _ => format!("{:.1} G", n as f64 / 1e9),
    }
}

/// `850 ms`, `12 s`, `3 min 5 s`, `2 h 7 min`, `4 d 3 h`.
pub fn time(duration: Duration) -> String {
    let s = duration.as_secs();
    match s {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..86_400 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_exact_enough() {
        let check = |seconds: f64, text| assert_eq!(time(Duration::from_secs_f64(seconds)), text);
        check(0.85, "850 ms");
        check(59.9, "59 s");
        check(185.0, "3 min 5 s");
        check(7620.0, "2 h 7 min");
        check(356_400.0, "4 d 3 h");
    }

    #[test]
    fn clipping_counts_characters() {
        assert_eq!(clip("grüße", 5), "grüße");
        assert_eq!(clip("grüße", 4), "grü…");
    }
}
