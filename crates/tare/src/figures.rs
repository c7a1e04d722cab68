//! Figures and names as people read them: values with their unit, shares, names that fit a width.

use crate::relayed;
use crate::term::{self, BOLD, DIM, WARN, clip, plain};
use std::path::Path;
use tare_profile::{SeriesInfo, Unit, ValueKind};
use tare_session::Note;
pub use tare_session::words::{grouped, roughly, several};

/// A value with its unit: `1,234`, `12.3 ms`, `4.5 MB`.
pub fn value(value: i64, unit: Unit) -> String {
    match unit {
        Unit::Count => grouped(value),
        Unit::Nanoseconds => {
            scaled(value as f64, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
        }
        Unit::Bytes => scaled(value as f64, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]),
    }
}

/// A value and what it is of, in words: `12.3 ms of CPU time`, `1 sample (collapsed)`.
pub fn amount(number: i64, info: &SeriesInfo) -> String {
    let word = match &info.kind {
        ValueKind::CpuTime => "CPU time".to_owned(),
        ValueKind::WallTime => "wall-clock time".to_owned(),
        ValueKind::Other { name, .. } => plain(name).into_owned(),
        kind => kind.name().replace('-', " "),
    };
    let amount = value(number, info.kind.unit());
    let mut text = match (info.kind.unit(), number) {
        (Unit::Count, 1) => format!("{amount} {}", word.strip_suffix('s').unwrap_or(&word)),
        (Unit::Count, _) => format!("{amount} {word}"),
        _ => format!("{amount} of {word}"),
    };
    // `CPU time`, not `CPU time (cpu)`; but `wall-clock time (parked)`.
    let is_plain = tare_analysis::is_of_classes(&info.kind);
    if !is_plain && !info.kind.name().starts_with(&info.name) {
        text.push_str(&format!(" ({})", plain(&info.name)));
    }
    text
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fits = units.iter().find(|(size, _)| value.abs() >= *size);
    let (size, name) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
    let number = value / size;
    let decimals = match number.abs() {
        _ if size == 1.0 => 0,
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{number:.decimals$} {name}")
}

/// `54.5 %`, aligned to the right in seven columns.
pub fn percent(share: f64) -> String {
    format!("{:>5.1} %", share * 100.0)
}

/// A class or method name that is no longer than `width`: its packages are cut to letters, from the
/// left; then its arguments go, then the beginning of its class, since the method's name tells the
/// most. Harmless for a terminal.
pub fn fit(name: &str, width: usize) -> String {
    let name = &*plain(name);
    let length = |text: &str| text.chars().count();
    if length(name) <= width {
        return name.to_owned();
    }
    // Accounts, which begin with a bracket, and files have no packages, and their sense in the
    // beginning.
    if name.starts_with('[') || name.ends_with(".jar") || name.contains(".so.") {
        return clip(name, width);
    }
    let (path, arguments) = name.split_at(name.find('(').unwrap_or(name.len()));
    let mut parts: Vec<String> = path.split('.').map(str::to_owned).collect();
    let last = parts.len().saturating_sub(2);
    let fits = |parts: &[String], arguments: &str| {
        let path: usize = parts.iter().map(|part| length(part) + 1).sum();
        path.saturating_sub(1) + length(arguments) <= width
    };
    for at in 0..last {
        if fits(&parts, arguments) {
            break;
        }
        parts[at] = parts[at].chars().take(1).collect();
    }
    let arguments = match arguments {
        all if fits(&parts, all) => all,
        "" | "()" => "",
        // Which of several it is, is lost; that there are several is not.
        _ if fits(&parts, "(…)") => "(…)",
        _ => "",
    };
    let short = parts.join(".") + arguments;
    let excess = length(&short).saturating_sub(width);
    if excess == 0 {
        return short;
    }
    let kept: String = short.chars().skip(excess + 1).collect();
    format!("…{kept}")
}

/// What stands behind a figure, and on the same line.
const UNITS: [&str; 12] = ["%", "ns", "µs", "ms", "s", "B", "KB", "MB", "GB", "TB", "points", "×"];

/// The words of a text; a figure and its unit are one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let unit = word.trim_end_matches(|c: char| ",;.:)".contains(c));
        match words.last_mut() {
            Some(last) if UNITS.contains(&unit) && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Lines of whole words. A name that is longer than a line is made to fit; a path stays whole, to
/// be copied.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in &words(text) {
        let word =
            if word.contains('/') { plain(word).into_owned() } else { fit(word, width.max(1)) };
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last] = word;
        } else if lines[last].chars().count() + 1 + word.chars().count() <= width {
            lines[last].push(' ');
            lines[last].push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}

/// A file and what is in it, in one line if that fits the terminal; the name stays whole, to be
/// copied.
pub fn headline(path: &Path, text: &str) {
    // At the other end of a relay it has another name.
    if relayed::tell(text) {
        return;
    }
    let (path, width) = (path.display().to_string(), term::width().unwrap_or(usize::MAX));
    if path.chars().count() + 2 + text.chars().count() <= width {
        return outln!("{BOLD}{path}{BOLD:#}: {text}");
    }
    outln!("{BOLD}{path}{BOLD:#}:");
    for line in wrap(text, width.saturating_sub(2)) {
        outln!("  {line}");
    }
}

/// A remark on standard output, in lines that fit the terminal.
pub fn remark(text: &str) {
    for line in wrap(text, term::width().unwrap_or(usize::MAX)) {
        outln!("{DIM}{line}{DIM:#}");
    }
}

/// The same on standard error, where all that we say begins with our name.
pub fn remark_aside(text: &str) {
    let text = format!("tare: {text}");
    for line in wrap(&text, term::error_width().unwrap_or(usize::MAX)) {
        errln!("{DIM}{line}{DIM:#}");
    }
}

/// What a session has to tell, on standard error.
pub fn say(note: Note) {
    match note {
        Note::Aside(text) => remark_aside(&text),
        Note::Warning(text) | Note::Alarm(text) => errln!("{WARN}tare: {text}{WARN:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units() {
        for (number, unit, text) in [
            (0, Unit::Count, "0"),
            (1_234_567, Unit::Count, "1,234,567"),
            (-999, Unit::Count, "-999"),
            (-1000, Unit::Count, "-1,000"),
            (15, Unit::Nanoseconds, "15 ns"),
            (1_500, Unit::Nanoseconds, "1.50 µs"),
            (12_340_000, Unit::Nanoseconds, "12.3 ms"),
            (-2_000_000_000, Unit::Nanoseconds, "-2.00 s"),
            (123_456_789, Unit::Bytes, "123 MB"),
        ] {
            assert_eq!(value(number, unit), text);
        }
    }

    #[test]
    fn amounts_say_what_they_are_of() {
        let bytes = ValueKind::AllocatedBytes;
        for (name, kind, number, text) in [
            ("cpu", ValueKind::CpuTime, 2_960_000_000, "2.96 s of CPU time"),
            ("parked", ValueKind::WallTime, 5_000, "5.00 µs of wall-clock time (parked)"),
            ("exact", ValueKind::Invocations, 1_234, "1,234 invocations (exact)"),
            ("collapsed", ValueKind::Samples, 1, "1 sample (collapsed)"),
            ("alloc", bytes, 4_096, "4.10 kB of allocated bytes"),
        ] {
            assert_eq!(amount(number, &SeriesInfo::new(name, kind)), text);
        }
    }

    #[test]
    fn lines_are_broken_between_words_and_names_keep_their_ends() {
        assert_eq!(wrap("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrap("it took 12 ms, 3 %", 10), ["it took", "12 ms, 3 %"]);
        assert_eq!(wrap("it took 12 ms", 10), ["it took", "12 ms"]);
        assert_eq!(wrap("it took % ms", 10), ["it took %", "ms"]);
        assert_eq!(
            wrap("in com.acme.orders.Pricing.price now", 14),
            ["in", "…Pricing.price", "now"]
        );
        assert_eq!(wrap("see /opt/tare/lib/tare.so", 8), ["see", "/opt/tare/lib/tare.so"]);
        assert_eq!(wrap("", 8), [""]);
    }

    #[test]
    fn names_lose_their_packages_first() {
        for (width, text) in [
            (40, "com.acme.orders.Pricing.price"),
            (28, "c.acme.orders.Pricing.price"),
            (25, "c.a.orders.Pricing.price"),
            (20, "c.a.o.Pricing.price"),
            (10, "…ing.price"),
        ] {
            assert_eq!(fit("com.acme.orders.Pricing.price", width), text);
        }
        assert_eq!(fit("ab.cd.C.f(int, String)", 20), "a.c.C.f(int, String)");
        assert_eq!(fit("ab.cd.Class.method(int, String)", 20), "a.c.Class.method(…)");
        assert_eq!(fit("ab.cd.Class.method(int, String)", 16), "a.c.Class.method");
        assert_eq!(fit("ab.cd.Class.method(int, String)", 12), "…lass.method");
        assert_eq!(fit("[the rest of what was pruned]", 12), "[the rest o…");
    }
}
