//! Wall-clock samples of threads that wait at known places: the state is right, and the stack is
//! the one that `jstack` prints.

use crate::recording::Recorded;
use std::collections::BTreeMap;
use std::process::Command;
use tare_jvm_tests::{Scratch, Tare, Target, classes, env, on_each_jdk};
use tare_profile::{MethodKind, Profile};

/// The threads of `Waits`, and the state that each is in.
const THREADS: [&str; 6] = ["waiting", "blocked", "parked", "sleeping", "system-call", "running"];

/// `CLASS.METHOD` of Java frames, the innermost first.
type Stack = Vec<String>;

/// What `jstack` prints of the threads whose names begin with `t-`.
fn jstack(pid: u32) -> BTreeMap<String, Stack> {
    // The tool may be of another version: the JVM itself makes the text.
    let tool = env().javac.home.join("bin/jstack");
    let output = Command::new(tool).arg(pid.to_string()).output().expect("jstack runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut stacks: BTreeMap<String, Stack> = BTreeMap::new();
    let mut current = None;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some(rest) = line.strip_prefix('"') {
            current = rest.split('"').next().filter(|n| n.starts_with("t-")).map(str::to_owned);
        } else if let (Some(name), Some(frame)) = (&current, line.trim().strip_prefix("at ")) {
            let frame = frame.split('(').next().unwrap_or_default();
            // `java.base@25.0.3/` in front; a hidden class has a slash of its own.
            let frame = match frame.split_once('/') {
                Some((module, rest)) if module.contains('@') => rest,
                _ => frame,
            };
            stacks.entry(name.clone()).or_default().push(plain(frame));
        }
    }
    stacks
}

/// Without the numbers that the JVM makes up.
fn plain(name: &str) -> String {
    match name.split_once("$$Lambda") {
        Some((class, rest)) => {
            let method = rest.rsplit('.').next().unwrap_or_default();
            format!("{class}$$Lambda.{method}")
        }
        None => name.to_owned(),
    }
}

/// The heaviest stack of each thread, and its values by state.
fn sampled(profile: &Profile) -> BTreeMap<String, (Stack, BTreeMap<String, i64>)> {
    let mut stacks: BTreeMap<String, BTreeMap<Stack, i64>> = BTreeMap::new();
    let mut states: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    for (_, series) in profile.all_series() {
        let state = series.info().name.clone();
        for row in series.rows() {
            let thread = profile.thread_name(row.thread);
            if state != "wall" {
                *states.entry(thread).or_default().entry(state.clone()).or_default() += row.value;
                continue;
            }
            let frames = profile.contexts.frames(row.context);
            let java = frames.filter(|f| profile.method_of(*f).kind == MethodKind::Java);
            let stack = java.map(|f| profile.method_name(profile.frames.get(f).method)).collect();
            *stacks.entry(thread).or_default().entry(stack).or_default() += row.value;
        }
    }
    let heaviest = |stacks: BTreeMap<Stack, i64>| {
        stacks.into_iter().max_by_key(|(_, value)| *value).unwrap_or_default().0
    };
    let both = stacks.into_iter().map(|(thread, stacks)| {
        let states = states.remove(&thread).unwrap_or_default();
        (thread, (heaviest(stacks), states))
    });
    both.collect()
}

on_each_jdk! {
    fn waiting_threads_are_where_jstack_says(jdk) {
        let target = Target::java(jdk).class_path(classes()).main("Waits").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let (name, path) = (target.name(), file.display().to_string());
        Tare::this().run(&["record", "--wall", "--interval", "20ms", "-d", "2s", "-o", &path, &name]).ok();
        let truth = jstack(target.pid());
        let found = sampled(&Recorded::open(&file).profile);
        for state in THREADS {
            let thread = format!("t-{state}");
            let (stack, states) = found.get(&thread).unwrap_or_else(|| panic!("no {thread} in {found:?}"));
            let all: i64 = states.values().sum();
            let mut right = states.get(state).copied().unwrap_or(0);
            if state == "running" {
                // On a busy machine it waits for a processor.
                right += states.get("runnable").copied().unwrap_or(0);
            }
            assert!(right * 10 >= all * 9, "{thread} was {states:?}");
            assert!(all > 500_000_000, "{thread} was seen for {all} ns of 2 s");
            let expected = &truth[&thread];
            if state == "running" {
                assert_eq!(stack.first().map(String::as_str), Some("Waits.running"), "{stack:?}");
            } else {
                assert_eq!(stack, expected, "{thread}");
            }
        }
    }
}
