//! `cargo xtask bench locks`: what recording locks costs, on a program whose threads fight for one,
//! on a database, and on threads that do nothing but park, beside async-profiler and the JVM's own
//! recorder.

use super::comparison::{self, Comparison, Kind, Told, Who};
use anyhow::{Context, Result};

const HELP: &str = "\
Measures what recording locks costs beside the plain program, async-profiler and JFR.

Usage: cargo xtask bench locks [OPTION…] [NAME…]

NAMEs are workloads (see `cargo xtask bench --help`); without NAMEs it is locks, whose threads fight for one lock,
h2, and parks, whose threads park and wake each other and do nothing else. Of each, two JVMs are warm at the same time: Tare comes and goes in the one, the peers in the other, with
plain windows between them.

Options:
  --quick         a smoke test: small inputs and two rounds
  --rounds N      windows of each kind (default: 8; 2 with --quick)
  --jdk N         the JDK to run on (default: 25)
  --tare FILE     measure this `tare` instead of building one
  --write-docs    write docs/measured/locks.md
";

pub static COMPARISON: Comparison = Comparison {
    name: "locks",
    help: HELP,
    title: "What recording locks costs",
    apart: "async-profiler leaves its own `Unsafe.park` behind",
    about: "**Waits** are those of a window that are in the recording one by one; of ours those \
            for what somebody had, and the share whose owner has told its stack. \
            Thresholds are our default, 10 µs, for all three. The threads of **parks** park and \
            wake each other and do nothing else: more than that recording cannot cost, and the goal \
            is for programs that do something.",
    workloads: &["locks", "h2", "parks"],
    ours: &[Kind { name: "tare", who: Who::Tare(&["--lock"]), goal: Some(1.02) }],
    peers: &[
        Kind { name: "async-profiler", who: Who::Async("start,event=lock,lock=10us"), goal: None },
        Kind {
            name: "JFR",
            who: Who::Jfr(&[
                "jdk.JavaMonitorEnter#threshold=10us",
                "jdk.JavaMonitorWait#threshold=10us",
                "jdk.ThreadPark#threshold=10us",
            ]),
            goal: None,
        },
    ],
    columns: ["waits", "with owner's stack"],
    told: |facts| {
        let counted = facts["lock-waits"].as_f64().context("a number of waits")?;
        let with_stack = facts["lock-owner-stacks"].as_f64().unwrap_or(0.0);
        Ok(Told { counted, other: (counted > 0.0).then_some(with_stack / counted) })
    },
    events: &["jdk.JavaMonitorEnter", "jdk.JavaMonitorWait", "jdk.ThreadPark"],
    show: |share| format!("{:.0} %", share * 100.0),
};

pub fn run(words: &[&str]) -> Result<()> {
    comparison::run(&COMPARISON, words)
}
