//! The page of a JVM that reaches no safepoint: who keeps it from one, and the stacks as far as
//! they can be read without it.

use super::page::{groups, stack};
use super::words::{does, name};
use crate::figures::{several, wrap};
use crate::term::{self, BAD, BOLD, DIM, WARN};
use std::io::{self, Write};
use std::time::Duration;
use tare_protocol::{DumpedThread, Stalled, ThreadDump};

/// Frames of a thread that is waited for, and how many of those are shown.
const FRAMES: usize = 12;
const MOST: usize = 10;

/// `jvm` is how the JVM is called.
pub fn write(
    out: &mut impl Write,
    jvm: &str,
    dump: &ThreadDump,
    stalled: &Stalled,
) -> io::Result<()> {
    let waited = term::time(Duration::from_millis(stalled.ms));
    writeln!(
        out,
        "{BOLD}{jvm}:{BOLD:#} {BAD}reaches no safepoint{BAD:#}, and has not for {waited}"
    )?;
    let width = term::width().unwrap_or(usize::MAX);
    let say = |out: &mut dyn Write, text: &str| {
        wrap(text, width).iter().try_for_each(|line| writeln!(out, "{WARN}{line}{WARN:#}"))
    };
    say(
        out,
        "So the stacks are not of one instant. Names and numbers of threads are the kernel's, which \
         keeps 15 characters. Nothing is known of locks, deadlocks and virtual threads.",
    )?;
    let keeps = |id: &u64| dump.threads.iter().find(|thread| thread.id == *id);
    let kept_by: Vec<&DumpedThread> = stalled.kept_by.iter().filter_map(keeps).collect();
    if kept_by.is_empty() {
        say(
            out,
            "No thread runs Java code: the JVM is in a pause of its own, such as a long garbage \
             collection.",
        )?;
    } else {
        let count = several(kept_by.len(), "thread");
        writeln!(out, "\n{BAD}It waits for {count} that will not stop:{BAD:#}")?;
        for thread in kept_by.iter().take(MOST) {
            writeln!(out, "  {BOLD}{}{BOLD:#} {}", name(thread), does(dump, thread))?;
            stack(out, dump, thread, FRAMES)?;
        }
        if let Some(more @ 1..) = kept_by.len().checked_sub(MOST) {
            writeln!(out, "  … and {more} more")?;
        }
        let text = "A loop that counts an int may be compiled without a place to stop at; \
                    -XX:+UseCountedLoopSafepoints gives it one.";
        wrap(text, width.saturating_sub(2))
            .iter()
            .try_for_each(|line| writeln!(out, "  {DIM}{line}{DIM:#}"))?;
    }
    groups(out, dump)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "F\tshop.Sum\tloop\tSum.java\t7\nF\tshop.Main\tmain\tMain.java\t3\nS\t0 1\nS\t1\n\
        T\t11\tworker\tplatform\tRUNNABLE\t\t5\t0\t0\nT\t12\tmain\tplatform\tWAITING\t\t5\t1\t0\n\
        N\tstalled\t8000";

    fn page(text: &str) -> String {
        let dump = ThreadDump::parse(text).unwrap();
        let stalled = dump.stalled.clone().unwrap();
        let mut out = Vec::new();
        write(&mut out, "JVM 7 (Main)", &dump, &stalled).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    #[test]
    fn who_is_waited_for_comes_first() {
        let page = page(&format!("{TEXT}\nN\tkeeps\t11"));
        let parts = [
            "reaches no safepoint",
            "not of one instant",
            "It waits for 1 thread that will not stop:",
            "\"worker\" #11 runs",
            "at shop.Sum.loop(Sum.java:7)",
            "Stacks (2 different)",
            "\"main\" #12",
        ];
        let mut rest = page.as_str();
        for part in parts {
            let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not next in\n{page}"));
            rest = &rest[at..];
        }
    }

    #[test]
    fn a_pause_of_the_jvm_is_told_apart() {
        let page = page(TEXT);
        assert!(page.contains("in a pause of its own") && !page.contains("It waits for"), "{page}");
    }
}
