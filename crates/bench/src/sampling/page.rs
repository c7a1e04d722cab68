//! docs/measured/sampling.md: one piece of text for each program and JDK, and the page that they
//! make.

use super::windows::{COMPARED, Held, Kind, Measured, Windows};
use crate::config::{Config, Every};
use crate::launch::Launch;
use crate::stats::{beside, median, ratio, shown};
use crate::workloads::Workload;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use tare_toolbox::jdks::Jdk;

/// What is told of a run beside its figures.
pub struct About {
    pub command: String,
    pub revision: Option<String>,
    pub machine: String,
    pub load: Option<f64>,
}

impl About {
    fn line(&self, jdk: &Jdk) -> String {
        let mut text = format!("`{}`", self.command);
        if let Some(revision) = &self.revision {
            let _ = write!(text, ", commit {revision}");
        }
        let _ = write!(text, "; {}; Java {}", self.machine, jdk.version);
        if let Some(load) = self.load {
            let _ = write!(text, "; load before: {load:.1}");
        }
        text
    }
}

pub fn windows(
    about: &About,
    name: &str,
    workload: &Workload,
    jdk: &Jdk,
    measured: &Measured,
) -> String {
    let of = |kind| measured.windows.iter().find(|w| w.kind == kind);
    let wall = |w: &Windows| w.costs.iter().map(|cost| cost.wall).collect::<Vec<_>>();
    let cpu = |w: &Windows| w.costs.iter().map(|cost| cost.cpu).collect::<Vec<_>>();
    let mut text = format!(
        "## {} on JDK {}\n\nThis is {}; {} rounds. {}\n\n\
         | interval | | time | processor time | ours : theirs, time | processor time |\n\
         |---|---|--:|--:|--:|--:|\n",
        name,
        jdk.major,
        workload.what.split(", all of").next().unwrap_or(&workload.what),
        measured.rounds,
        about.line(jdk),
    );
    let Some(plain) = of(Kind::Plain) else { return text };
    for every in Every::ALL {
        let (Some(ours), Some(theirs)) = (of(Kind::Ours(every)), of(Kind::Async(every))) else {
            continue;
        };
        for (name, one) in [("tare", ours), ("async-profiler", theirs)] {
            let mut cells = vec![
                shown(beside(&wall(one), &wall(plain))),
                shown(beside(&cpu(one), &cpu(plain))),
            ];
            if name == "tare" {
                cells.push(shown(beside(&wall(one), &wall(theirs))));
                cells.push(shown(beside(&cpu(one), &cpu(theirs))));
            } else {
                cells.extend([String::new(), String::new()]);
            }
            let _ = writeln!(text, "| {} | {name} | {} |", every.option(), cells.join(" | "));
        }
    }
    let a = &measured.agreement;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let apart = |list: &[(String, f64, f64)]| {
        let each = list
            .iter()
            .map(|(name, a, b)| format!("`{name}` {:.1} / {:.1} %", a * 100.0, b * 100.0));
        each.collect::<Vec<_>>().join(", ")
    };
    let _ = write!(
        text,
        "\n| agreement at {}, {} and {} samples in Java in the halves of ours, {} and {} in theirs | |\n|---|--:|\n\
         | tare with async-profiler | {} |\n| async-profiler with itself | {} |\n\
         | tare with itself | {} |\n| tare with async-profiler, twice the samples | {} |\n",
        COMPARED.option(),
        a.samples[0][0],
        a.samples[0][1],
        a.samples[1][0],
        a.samples[1][1],
        percent(a.both),
        percent(a.theirs),
        percent(a.ours),
        percent(a.whole),
    );
    if let Some(exact) = &a.exact {
        let _ = writeln!(
            text,
            "| tare with exact times of the same run, `{}` woven | {} |",
            exact.what,
            percent(exact.overlap),
        );
    }
    let _ = writeln!(text, "\nMost apart, ours and theirs: {}.", apart(&a.apart));
    if let Some(exact) = &a.exact {
        let _ = writeln!(text, "Most apart, ours and exact: {}.", apart(&exact.apart));
    }
    let held = |kind: Kind| of(kind).map_or_else(Held::default, |w| w.held);
    let (ours, theirs) = (held(Kind::Ours(Every::Ms10)), held(Kind::Async(Every::Ms10)));
    let _ = writeln!(
        text,
        "Descriptors of the process: {} plain, {} with tare, {} with async-profiler; timers: {}, {}, {}.",
        plain.held.descriptors,
        ours.descriptors,
        theirs.descriptors,
        plain.held.timers,
        ours.timers,
        theirs.timers,
    );
    let told = |kind: Kind| {
        median(of(kind).map_or(&[][..], |w| &w.told[..])).map_or_else(|| "–".to_owned(), percent)
    };
    let each = Every::ALL.map(|every| {
        let (ours, theirs) = (told(Kind::Ours(every)), told(Kind::Async(every)));
        format!("{ours} and {theirs} at {}", every.option())
    });
    let _ = writeln!(
        text,
        "Samples stand for so much of the process's processor time, ours and theirs: {}.",
        each.join(", ")
    );
    let _ = writeln!(text, "The last of our windows: {}.", last_words(&measured.said));
    text
}

/// What a recording says of itself, without the path of its file.
fn last_words(said: &str) -> &str {
    said.split_once(": ").map_or(said, |(_, rest)| rest).trim_end_matches('.')
}

pub fn starts(
    about: &About,
    workload: &Workload,
    jdk: &Jdk,
    starts: &[(Config, Vec<Launch>)],
) -> String {
    let mut text = format!(
        "## The start of a program on JDK {}\n\nThis is {}: the first iteration of a new JVM, {} launches. {}\n\n\
         | | until `main` | until the end of the first iteration |\n|---|--:|--:|\n",
        jdk.major,
        workload.what.split(", all of").next().unwrap_or(&workload.what),
        starts.first().map_or(0, |(_, launches)| launches.len()),
        about.line(jdk),
    );
    let times = |launches: &[Launch], get: fn(&Launch) -> Option<f64>| {
        launches.iter().filter_map(get).collect::<Vec<f64>>()
    };
    let Some((_, plain)) = starts.iter().find(|(config, _)| *config == Config::Plain) else {
        return text;
    };
    for (config, launches) in starts.iter().filter(|(config, _)| *config != Config::Plain) {
        let cell = |get| shown(ratio(&times(launches, get), &times(plain, get)));
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            config.name(),
            cell(|l| l.startup),
            cell(|l| l.first)
        );
    }
    text
}

/// The page: what the figures mean, and all pieces in the order of their names.
pub fn whole(pieces: &Path) -> Result<String> {
    let mut files: Vec<_> = fs::read_dir(pieces)
        .with_context(|| format!("reading {}", pieces.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    files.sort();
    let mut text = INTRODUCTION.to_owned();
    for file in files {
        text += "\n";
        text += &fs::read_to_string(&file).with_context(|| format!("{}", file.display()))?;
    }
    Ok(text)
}

const INTRODUCTION: &str = "\
# What sampling costs, and how far profiles agree

This page is generated from runs of `cargo xtask bench sampling --write-docs`; each part names its own. Do not edit it.

Tare and async-profiler 4 attach in turns to one warm JVM, sample some iterations by the same kind of clock
(`perf_event_open`, cpu-clock) and leave; in each round there is a window of each kind and a plain one. The JVM has `DebugNonSafepoints`,
which both tools give to JVMs that they launch.

**Cost** is the median over rounds of an iteration's time, and of the processor time of the whole process, beside
the plain window of the same round; *ours : theirs* is the same beside async-profiler's window. In brackets the bounds of 95 % of
4,000 bootstrap draws of rounds.

**Agreement** is the sum, over all methods, of the smaller of two shares, by the innermost Java method of each sample; samples without
one, of collectors and compilers, change in a JVM's life and do not count. Two profiles
of one tool do not agree wholly either: samples are few for thousands of methods, and the program goes on compiling. So halves of the windows
are compared: ours with theirs, theirs with theirs, ours with ours, at equal numbers of samples. The line with twice the samples tells how much of
the rest is chance.

**Exact times** are of some packages of the program, woven in the same JVM at the end; samples of the same run are compared with them by
the innermost *woven* method, since a woven method's own time has all in it that it calls outside. Packages were chosen whose
methods take longer than a probe. Times are as measured: samples of woven code see the probes, too. With everything woven
the two agree less, whoever takes the samples: probes keep the JVM from inlining, so short methods take another share of the woven program than of the plain one, and what they would take without is an estimate ([how times are compensated](../internals/times.md)). That is why
`tare record --exact --cpu` takes counts from the one and time from the other.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_holds_all_pieces_in_order() {
        let place = std::env::temp_dir().join(format!("tare-pieces-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("b-17.md"), "## second\n").unwrap();
        fs::write(place.join("a-25.md"), "## first\n").unwrap();
        fs::write(place.join("notes.txt"), "no piece\n").unwrap();
        let page = whole(&place).unwrap();
        fs::remove_dir_all(&place).unwrap();
        assert!(
            page.starts_with("# What sampling costs")
                && page.ends_with("\n## first\n\n## second\n")
        );
        assert_eq!(last_words("x/window.tare: 12 samples."), "12 samples");
    }
}
