//! Where two recordings of counts begin to differ, and what that may come from. Counts of a program
//! that does the same are the same, so one context that differs is worth more than a list of
//! changes.

use crate::figures::{fit, grouped, value, wrap};
use crate::term::{BOLD, DIM};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::{Diff, DiffOptions, Noise, fold_path, is_unstable};
use tare_profile::facts::keys;
use tare_profile::{Profile, RunInfo, SeriesId, SeriesInfo, ValueKind};

/// What a program is started with that takes chance from it.
const FIXED: &str = "-XX:hashCode=3";
/// Frames that are shown of a long path: outermost ones, and those next to what differs.
const OUTER: usize = 4;
const INNER: usize = 12;

/// The first context that differs, from the outside inwards.
pub struct First {
    /// Whether counts were compared at all.
    counted: bool,
    differ: usize,
    contexts: usize,
    found: Option<Found>,
}

struct Found {
    path: Vec<String>,
    values: [i64; 2],
    calls: Option<[i64; 2]>,
    causes: Vec<String>,
}

impl First {
    pub fn find(
        diff: &Diff,
        old: (&Profile, SeriesId),
        new: (&Profile, SeriesId),
        options: &DiffOptions,
    ) -> Result<Self> {
        let contexts = diff.tree.len() - 1;
        if diff.noise != Noise::None {
            return Ok(First { counted: false, differ: 0, contexts, found: None });
        }
        let (differ, first) = diff.first_difference();
        let Some(node) = first else {
            return Ok(First { counted: true, differ, contexts, found: None });
        };
        let path: Vec<String> = diff.path(node).into_iter().map(str::to_owned).collect();
        let values = diff.tree[node].own;
        let calls = match (calls_of(old), calls_of(new)) {
            (Some(a), Some(b)) => {
                let calls = Diff::build((old.0, a), (new.0, b), options)?;
                same_path(&calls, &path).map(|node| calls.tree[node].own)
            }
            _ => None,
        };
        let causes = causes(&path, [old.0, new.0]);
        let found = Some(Found { path, values, calls, causes });
        Ok(First { counted: true, differ, contexts, found })
    }

    pub fn page(&self, out: &mut impl Write, info: &SeriesInfo, width: usize) -> Result<()> {
        if !self.counted {
            return Ok(());
        }
        let Some(found) = &self.found else {
            let all = grouped(self.contexts as i64);
            let same = match self.contexts {
                1 => "The only context has".to_owned(),
                _ => format!("All {all} contexts have"),
            };
            return Ok(writeln!(out, "\n{same} the same {}", info.kind.name())?);
        };
        let [differ, all] = [self.differ, self.contexts].map(|count| grouped(count as i64));
        writeln!(
            out,
            "\n{BOLD}The first context that differs{BOLD:#}{DIM}, of {differ} among {all}, from the \
             outside inwards{DIM:#}"
        )?;
        let room = width.saturating_sub(2);
        for line in wrap(&shown(&found.path, room), room) {
            writeln!(out, "  {line}")?;
        }
        let [old, new] = found.values.map(|v| value(v, info.kind.unit()));
        let (old, new) = (old.trim(), new.trim());
        let calls = match found.calls {
            Some(calls) if info.kind != ValueKind::Invocations => {
                let [old, new] = calls.map(grouped);
                format!(", calls {old} → {new}")
            }
            _ => String::new(),
        };
        writeln!(out, "  {} {old} → {new}{calls}", info.kind.name())?;
        for cause in &found.causes {
            for line in wrap(&format!("if nothing was changed there: {cause}"), room) {
                writeln!(out, "{DIM}  {line}{DIM:#}")?;
            }
        }
        Ok(())
    }

    pub fn json(&self) -> Value {
        let Some(found) = &self.found else { return Value::Null };
        json!({
            "contexts": self.contexts,
            "differ": self.differ,
            "path": found.path,
            "old": found.values[0],
            "new": found.values[1],
            "calls": found.calls.map(|[old, new]| json!({ "old": old, "new": new })),
            "causes": found.causes,
        })
    }
}

/// A path with its runs folded, its names no longer than a line, and the middle left out of one
/// that is long all the same.
fn shown(path: &[String], room: usize) -> String {
    if path.is_empty() {
        return "[all]".to_owned();
    }
    let pieces = fold_path(path);
    let told = |(piece, times): &(&[String], usize)| {
        // A line has room for the mark behind the name, too.
        let names: Vec<String> = piece.iter().map(|name| fit(name, room.max(24) - 4)).collect();
        let names = names.join(" › ");
        match (*times, piece.len()) {
            (1, _) => names,
            (times, 1) => format!("{names} × {}", grouped(times as i64)),
            (times, _) => format!("({names}) × {}", grouped(times as i64)),
        }
    };
    let told: Vec<String> = pieces.iter().map(told).collect();
    let left_out = told.len().saturating_sub(OUTER + INNER);
    if left_out < 2 {
        return told.join(" › ");
    }
    let (outer, inner) = (&told[..OUTER], &told[told.len() - INNER..]);
    let (outer, inner) = (outer.join(" › "), inner.join(" › "));
    format!("{outer} › … {left_out} more (--format json has them) … › {inner}")
}

fn calls_of((profile, metric): (&Profile, SeriesId)) -> Option<SeriesId> {
    let name = &profile.series(metric).info().name;
    let fits = |info: &SeriesInfo| info.name == *name && info.kind == ValueKind::Invocations;
    profile.all_series().find(|(_, series)| fits(series.info())).map(|(id, _)| id)
}

fn same_path(diff: &Diff, path: &[String]) -> Option<usize> {
    // Of a deep recursion most nodes have the same name.
    let mut depths = vec![0_usize; diff.tree.len()];
    for at in 1..diff.tree.len() {
        depths[at] = depths[diff.tree[at].parent] + 1;
    }
    let last = path.last()?;
    let named = |at: &usize| diff.labels[diff.tree[*at].label] == *last;
    let all = (1..diff.tree.len()).filter(|at| depths[*at] == path.len()).filter(named);
    all.into_iter().find(|at| diff.path(*at) == path)
}

/// What makes counts of the same program differ, as far as the recordings tell;
/// docs/guide/bytecodes.md.
fn causes(path: &[String], profiles: [&Profile; 2]) -> Vec<String> {
    let mut causes = Vec::new();
    let [old, new] = profiles.map(|profile| &profile.run);
    if (&old.jdk, &old.vm) != (&new.jdk, &new.vm) {
        causes.push(format!("the JVMs differ, {} {} and {} {}", old.vm, old.jdk, new.vm, new.jdk));
    }
    let commands = [old, new].map(|run| program(&run.command_line));
    if commands[0] != commands[1] {
        causes.push("the command lines differ".to_owned());
    }
    if path.iter().any(|name| name.ends_with("<clinit>")) {
        let who = "a static initialiser runs in whichever context comes first";
        causes.push(format!("{who}; --stable leaves it out"));
    } else if path.iter().any(|name| is_unstable(name)) {
        let what = "the JDK's own work, which hangs on warm-up, loading or waiting";
        causes.push(format!("{what}; --stable leaves it out"));
    }
    let threads = profiles.map(|profile| profile.threads.len());
    if threads.iter().any(|threads| *threads > 2) {
        causes.push("which of several threads does a piece of work".to_owned());
    }
    let mut chance = "time or a deadline, SecureRandom, the environment, files".to_owned();
    // A script's JVM has its flags from the environment.
    let fixed = |run: &RunInfo| {
        run.command_line.iter().any(|word| word == FIXED)
            || run.facts.get(keys::CHANCE_FIXED) == Some(true)
    };
    if !(fixed(old) && fixed(new)) {
        chance.push_str(
            "; identity hash codes and seeds, unless `tare record --bytecodes` starts the program",
        );
    }
    causes.push(chance);
    causes
}

/// A command line without the agent that was put into it, whose paths are new each time.
fn program(words: &[String]) -> Vec<&String> {
    let ours = |word: &&String| word.starts_with("-agentpath:") && word.contains("libtare_agent");
    words.iter().filter(|word| !ours(word)).collect()
}
