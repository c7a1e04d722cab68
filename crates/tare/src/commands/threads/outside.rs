//! What the kernel tells of the threads of a JVM that does not answer: no Java frames, no locks.

use crate::term::plain;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tare_attach::Jvm;

/// Threads that are looked at, and names that are told of a state.
const MOST_THREADS: usize = 20_000;
const MOST_NAMES: usize = 4;

/// A few lines, or nothing when there is nothing to be seen.
pub fn seen(jvm: &Jvm) -> Option<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", jvm.pid)).ok()?;
    let stats: Vec<_> = tasks
        .flatten()
        .take(MOST_THREADS)
        .filter_map(|task| stat(&fs::read_to_string(Path::new(&task.path()).join("stat")).ok()?))
        .collect();
    say(&stats, jvm.has_agent())
}

/// A thread's name and state, out of the kernel's line about it.
fn stat(line: &str) -> Option<(String, char)> {
    let (head, rest) = line.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    Some((name.to_owned(), rest.trim_start().chars().next()?))
}

fn say(threads: &[(String, char)], has_agent: bool) -> Option<String> {
    if threads.is_empty() {
        return None;
    }
    let mut states: BTreeMap<char, Vec<&str>> = BTreeMap::new();
    for (name, state) in threads {
        states.entry(*state).or_default().push(name);
    }
    let mut text = "What the kernel tells of its threads (nothing of Java or locks):".to_owned();
    for (state, names) in &states {
        let shown: Vec<_> = names.iter().take(MOST_NAMES).map(|name| plain(name)).collect();
        let more = if names.len() > MOST_NAMES { ", …" } else { "" };
        text += &format!("\n  {:>5} {}: {}{more}", names.len(), means(*state), shown.join(", "));
    }
    if states.contains_key(&'T') {
        text += "\nThe process is stopped by a signal; `kill -CONT` lets it go on.";
    } else {
        text += "\nIf it runs, a thread may not reach a safepoint; -Xlog:safepoint names what was \
                 waited for.";
        text += match has_agent {
            true => {
                " The agent is in this JVM, and is waiting inside of it, for a recording; the \
                 samples of `tare record --cpu` go on meanwhile."
            }
            false => {
                " An agent that is in a JVM tells the stacks in spite of that, but none comes in \
                 without a safepoint: next time have it there before (`tare run -- java …`)."
            }
        };
    }
    Some(text)
}

fn means(state: char) -> &'static str {
    match state {
        'R' => "running or ready to",
        'S' => "asleep",
        'D' => "in the kernel, not to be interrupted",
        'T' => "stopped",
        't' => "stopped by a debugger",
        'Z' | 'X' => "ended",
        _ => "in another state",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_by_their_states() {
        let line = "71 (G1 (Main) x) T 1 2 3";
        assert_eq!(stat(line), Some(("G1 (Main) x".to_owned(), 'T')));
        assert_eq!(stat("71 nothing"), None);
        let text = say(&[("java".to_owned(), 'T'), ("GC".to_owned(), 'T')], true).unwrap();
        assert!(text.contains("2 stopped: java, GC") && text.contains("kill -CONT"), "{text}");
        assert_eq!(say(&[], true), None);
        let text = say(&[("java".to_owned(), 'R')], false).unwrap();
        assert!(
            text.contains("1 running or ready to: java") && text.contains("tare run"),
            "{text}"
        );
    }
}
