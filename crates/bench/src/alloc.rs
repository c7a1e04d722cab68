//! `cargo xtask bench alloc`: what sampling allocation costs, with and without watching what lives,
//! beside async-profiler's and the JVM's own recorder.

use super::comparison::{self, Comparison, Kind, Told, Who};
use anyhow::{Context, Result};

const HELP: &str = "\
Measures what sampling allocation costs beside the plain program, async-profiler and JFR.

Usage: cargo xtask bench alloc [OPTION…] [NAME…]

NAMEs are workloads (see `cargo xtask bench --help`); without NAMEs it is h2 and json. Of each, two JVMs are warm
at the same time: Tare comes and goes in the one, the peers in the other, with plain windows between them.

Options:
  --quick         a smoke test: small inputs and two rounds
  --rounds N      windows of each kind (default: 8; 2 with --quick)
  --jdk N         the JDK to run on (default: 25)
  --tare FILE     measure this `tare` instead of building one
  --write-docs    write docs/measured/alloc.md
";

pub static COMPARISON: Comparison = Comparison {
    name: "alloc",
    help: HELP,
    title: "What sampling allocation costs",
    apart: "the JVM's sampler of allocation has one owner in a process",
    about: "**Samples** are those of a window; with what lives, async-profiler tells only of \
            objects that live at its end. **Table** is the memory of our table of what lives.",
    workloads: &["h2", "json"],
    ours: &[
        Kind {
            name: "tare, 512K, with what lives",
            who: Who::Tare(&["--alloc", "--interval-bytes", "512K"]),
            goal: Some(1.01),
        },
        Kind {
            name: "tare, 512K",
            who: Who::Tare(&["--alloc", "--interval-bytes", "512K", "--no-live"]),
            goal: None,
        },
        Kind {
            name: "tare, 64K, with what lives",
            who: Who::Tare(&["--alloc", "--interval-bytes", "64K"]),
            goal: Some(1.03),
        },
    ],
    peers: &[
        Kind {
            name: "async-profiler, 512k, with what lives",
            who: Who::Async("start,event=alloc,alloc=512k,live"),
            goal: None,
        },
        Kind {
            name: "async-profiler, 512k",
            who: Who::Async("start,event=alloc,alloc=512k"),
            goal: None,
        },
        Kind {
            name: "async-profiler, 64k, with what lives",
            who: Who::Async("start,event=alloc,alloc=64k,live"),
            goal: None,
        },
        Kind { name: "JFR, profile", who: Who::Jfr(&[]), goal: None },
    ],
    columns: ["samples", "table"],
    told: |facts| {
        let counted = facts["allocation-samples"].as_f64().context("a number of samples")?;
        Ok(Told { counted, other: facts["live-table-bytes"].as_f64() })
    },
    events: &["jdk.ObjectAllocationSample"],
    show: |bytes| format!("{:.1} MiB", bytes / 1048576.0),
};

pub fn run(words: &[&str]) -> Result<()> {
    comparison::run(&COMPARISON, words)
}
