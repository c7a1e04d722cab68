//! Words for people: numbers with what they count, lengths of time, and text of others made
//! harmless.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

/// Digits in groups of three.
pub fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0 { format!("-{out}") } else { out }
}

/// `1 thread`, `12 threads`: a number as it is, and the word for it.
pub fn several(number: impl TryInto<u64>, one: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let digits = grouped(i64::try_from(number).unwrap_or(i64::MAX));
    format!("{digits} {}", plural(number, one))
}

/// The same with a large number rounded: `1.2 M calls`.
pub fn roughly(number: u64, one: &str) -> String {
    format!("{} {}", count(number), plural(number, one))
}

/// A word for so many of it; the last word of several is the one that changes.
fn plural(number: u64, one: &str) -> String {
    if number == 1 {
        return one.to_owned();
    }
    match one.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if one.ends_with(['s', 'x']) || one.ends_with("ch") => format!("{one}es"),
        _ => format!("{one}s"),
    }
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

/// A time between two samples, in nanoseconds: `10 ms`, `1.02 ms`, `100 µs`.
pub fn interval(nanos: u64) -> String {
    let (number, unit) = match nanos {
        0..1_000_000 => (nanos as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (nanos as f64 / 1e6, "ms"),
        _ => (nanos as f64 / 1e9, "s"),
    };
    let text = format!("{number:.2}");
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// `512 KiB`, `1.5 MiB`, `640 B`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut number = bytes as f64;
    let mut unit = 0;
    // What would be written as 1024 of a unit is one of the next.
    while number >= 1023.5 && unit + 1 < UNITS.len() {
        number /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && number < 9.95);
    let text = format!("{number:.digits$}");
    format!("{} {}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
}

/// Whether a character does something other than to stand there: control characters, and what turns
/// the direction of writing, ends a line, or is seen by nobody.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{fff9}'..='\u{fffb}')
}

/// As Java and JSON write it. No character that steers has more than four digits.
pub fn escape(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c => drop(write!(out, "\\u{:04x}", u32::from(c))),
    }
}

/// A text of somebody else as one line that only stands there; what would do more is written as in
/// Java's source.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if steers(c) {
            escape(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
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
    fn intervals_are_short_to_read() {
        for (nanos, text) in [
            (10_000_000, "10 ms"),
            (1_020_000, "1.02 ms"),
            (100_000, "100 µs"),
            (4_000_123, "4 ms"),
            (2_000_000_000, "2 s"),
            (0, "0 µs"),
        ] {
            assert_eq!(interval(nanos), text);
        }
        for (size, text) in [
            (0, "0 B"),
            (640, "640 B"),
            (1023, "1023 B"),
            (512 << 10, "512 KiB"),
            (3 << 19, "1.5 MiB"),
            ((1 << 20) - 1, "1 MiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(bytes(size), text);
        }
    }

    #[test]
    fn names_become_one_harmless_line() {
        assert!(matches!(plain("com.acme.Größe"), Cow::Borrowed("com.acme.Größe")));
        let title = plain("\u{1b}]0;pwned\u{7}\r\n\tx");
        assert_eq!(title, "\\u001b]0;pwned\\u0007\\r\\n\\tx");
        assert_eq!(plain("a\u{9b}31mb\u{7f}"), "a\\u009b31mb\\u007f");
        assert_eq!(plain("\u{202e}gpj.exe\u{2066}\u{2028}"), "\\u202egpj.exe\\u2066\\u2028");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(several(1_u32, "pause"), "1 pause");
        assert_eq!(several(0_u32, "class"), "0 classes");
        assert_eq!(several(1_u32, "class"), "1 class");
        assert_eq!(several(12_345_u64, "entry"), "12,345 entries");
        assert_eq!(several(2_u32, "woven method"), "2 woven methods");
        assert_eq!(several(2_u32, "key"), "2 keys");
        assert_eq!(roughly(1, "call"), "1 call");
        assert_eq!(roughly(1_234_567, "call"), "1.2 M calls");
    }
}
