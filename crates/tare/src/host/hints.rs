//! Commands that a far end proposes, as they have to be typed here: the far side knows nothing of
//! `--host`, so its hints lack it.

use crate::cli::HostArgs;
use std::fmt::Write;
use std::path::Path;

/// Verbs that go there, unless their word is a file, which is here.
const VERBS: [&str; 17] = [
    "climb",
    "detach",
    "doctor",
    "dump",
    "explain",
    "heap",
    "metric",
    "pause",
    "ps",
    "record",
    "resume",
    "split",
    "status",
    "stop",
    "threads",
    "threshold",
    "top",
];

/// The flags that lead there, with a space behind.
pub fn flags(at: &HostArgs) -> String {
    let mut flags = String::new();
    let named = [("-n", &at.namespace), ("--context", &at.context)];
    for (flag, value) in named {
        if let Some(value) = value {
            let _ = write!(flags, "{flag} {value} ");
        }
    }
    if let Some(place) = &at.host {
        let _ = write!(flags, "--host {place} ");
    }
    flags
}

/// The text with `flags` in each command of it that is for there.
pub fn pasteable(text: &str, flags: &str) -> String {
    const TARE: &str = "tare ";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(TARE) {
        let (before, after) = rest.split_at(at + TARE.len());
        out.push_str(before);
        let lead = out.len() - TARE.len();
        if is_command(&out[..lead], after) {
            out.push_str(flags);
        }
        rest = after;
    }
    out + rest
}

/// Whether what follows `tare ` is a command for there. One stands in backquotes, or in a column of
/// its own; what only talks of a verb, or names a program's words, does not.
fn is_command(before: &str, after: &str) -> bool {
    let column = |text: &str| text.ends_with("  ") || text.ends_with(": ");
    if !(before.ends_with('`') || column(before)) {
        return false;
    }
    let line = after.split(['\n', '`', '\u{1b}']).next().unwrap_or_default();
    let mut words = line.split_whitespace();
    let is_verb = words.next().is_some_and(|verb| VERBS.contains(&verb));
    let is_here = |word: &str| word == "FILE" || word == "--help" || Path::new(word).exists();
    // Somebody else's command line, with its number.
    let is_told = after[line.len()..].starts_with("` (pid ");
    is_verb && !is_told && !words.next().is_some_and(is_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_for_there_can_be_pasted() {
        let check = |text: &str, expected: &str| {
            assert_eq!(pasteable(text, "--host ann@box "), expected);
        };
        check(
            "or at once with `tare detach 4711`.",
            "or at once with `tare --host ann@box detach 4711`.",
        );
        check(
            "\u{1b}[2mAll of them:   tare heap 7 suspects\nAll:  tare heap --help\u{1b}[0m",
            "\u{1b}[2mAll of them:   tare --host ann@box heap 7 suspects\nAll:  tare heap --help\u{1b}[0m",
        );
        check(
            "`tare ps` and `tare status JVM --watch`",
            "`tare --host ann@box ps` and `tare --host ann@box status JVM --watch`",
        );
        for same in [
            // Files are here; Cargo.toml is one of this package, where tests run.
            "`tare report run.tare`",
            "`tare heap Cargo.toml suspects`",
            "`tare heap FILE histo` lists all",
            "`tare record -o x.tare 7` (pid 9) records this JVM",
            "a thread called tare record",
            "java -jar tare status",
            "`tare recording`",
            "it ends with tare ",
        ] {
            check(same, same);
        }
    }

    #[test]
    fn the_flags_are_those_that_led_there() {
        let place = "pod/orders/app".parse().ok();
        let at = HostArgs {
            host: place,
            namespace: Some("prod".into()),
            context: None,
            keep_there: true,
            rate: Some(1),
        };
        assert_eq!(flags(&at), "-n prod --host pod/orders/app ");
    }
}
