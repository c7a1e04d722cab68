//! `tare check`: runs a program, counts what it executes and allocates, and compares with a
//! baseline.
//!
//! A case is what the recording sees as outermost: a root, a test that a framework calls, `main`,
//! the `run` of a thread. How it is measured is `record`'s business.

mod baseline;
mod ci;
mod compare;

use super::record::{self, Job};
use crate::cli::{CheckArgs, Patience};
use crate::figures::{grouped, several};
use crate::files;
use crate::source;
use crate::term::{BAD, BOLD, GOOD, WARN, plain};
use anyhow::{Context, Result, bail};
use baseline::{Baseline, Case};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tare_analysis::{is_service, is_unstable};
use tare_java_names::{is_jdk, stable};
use tare_profile::{ContextId, LossKind, Profile, ValueKind};
use tare_protocol::{
    CHECK_PREFIX, Counted, ExactPlan, Figures, Measure, Roots, Scheme, TreePlan, TreeRoots,
};
use tare_session::engines::exact;
use tare_session::{Plan, What};

/// The exit status for what grew, as of `tare diff --threshold`.
const GREW: u8 = 3;

/// Bytes of a baseline: a line for each case and each of the dearest methods.
const LARGEST_BASELINE: u64 = 64 << 20;

/// Bytes for the trees.
const MEMORY: u64 = 1 << 30;

/// The class that runs the pieces of parallel streams and other work that is forked, on whatever
/// thread.
const FORK_JOIN: &str = "java.util.concurrent.ForkJoinTask";

/// The method that runs a piece of forked work (of [`FORK_JOIN`]).
const PIECE: &str = "doExec";

/// What test frameworks and build tools bring along; their frames are no cases.
const FRAMEWORKS: [&str; 14] = [
    "org.junit.**",
    "junit.**",
    "org.testng.**",
    "org.opentest4j.**",
    "org.apiguardian.**",
    "org.hamcrest.**",
    "org.assertj.**",
    "org.mockito.**",
    "org.apache.maven.**",
    "org.codehaus.**",
    "org.gradle.**",
    "worker.org.gradle.**",
    "org.eclipse.aether.**",
    "com.beust.jcommander.**",
];

pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    let told = compared(args);
    if let Err(error) = &told {
        ci::tell_failure(args, &format!("{error:#}"))?;
    }
    told
}

fn compared(args: &CheckArgs) -> Result<ExitCode> {
    let old = match (args.baseline.exists(), args.update) {
        (true, _) => {
            let text = files::read_text(&args.baseline, LARGEST_BASELINE)?;
            Some(Baseline::parse(&text).with_context(|| args.baseline.display().to_string())?)
        }
        (false, true) => None,
        (false, false) => bail!(
            "there is no baseline {}; the first one is written with --update",
            args.baseline.display()
        ),
    };
    let room = Room::new()?;
    let (status, _) = record::launched(job(args, &room.0)?)?;
    if !status.success() {
        let reason = format!("the program ended with {status}; nothing was compared");
        errln!("{BAD}tare:{BAD:#} {reason}");
        ci::tell_failure(args, &reason)?;
        return Ok(tare_session::launch::exit_code(status));
    }
    let new = measured(&room.0, !args.root.is_empty())?;
    if new.cases.is_empty() {
        bail!(
            "nothing of the program was counted. Does the command start Java, and do --include and \
             --root name code that it runs?"
        );
    }
    if args.update {
        let path = &args.baseline;
        files::replace(path, new.folded().to_text().as_bytes())?;
        let cases = several(new.cases.len(), "case");
        outln!("{GOOD}{}{GOOD:#}: {cases}", path.display());
        if let Some(old) = old {
            let verdict = compare::compare(&old, &new, args.tolerance, false);
            out!("{}", verdict.text);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let old = old.unwrap_or_default();
    let verdict = compare::compare(&old, &new, args.tolerance, args.partial);
    out!("{}", verdict.text);
    ci::tell(args, &verdict)?;
    let total = grouped(i64::try_from(new.bytecodes()).unwrap_or(i64::MAX));
    let tolerance = args.tolerance * 100.0;
    if verdict.is_good() {
        outln!(
            "{GOOD}ok{GOOD:#}: {}, {total} bytecodes, within {tolerance} % of {}",
            several(new.cases.len(), "case"),
            args.baseline.display()
        );
        return Ok(ExitCode::SUCCESS);
    }
    // The rest is one more.
    let methods = old.whole.map_or(0, |whole| whole.methods.len() + 1);
    outln!(
        "{BAD}{} of {} and {} of {}{BAD:#} grew by more than {tolerance} % or are missing; \
         if that is meant, run again with {BOLD}--update{BOLD:#} and commit {}",
        verdict.failures,
        several(old.cases.len(), "case"),
        verdict.methods,
        several(methods, "method"),
        args.baseline.display()
    );
    Ok(ExitCode::from(GREW))
}

/// The recording that a check is made of.
fn job(args: &CheckArgs, room: &Path) -> Result<Job> {
    let mut exclude = args.counted.exclude.clone();
    if args.junit {
        let frameworks = FRAMEWORKS.iter().map(|pattern| pattern.parse());
        exclude.extend(frameworks.collect::<Result<Vec<_>, _>>()?);
    }
    // What a root calls for the first time must count as much as the second time.
    let roots = Roots::of(args.root.clone(), Scheme::All);
    let figures = Figures::Bytecodes {
        blocks: args.counted.blocks,
        fold: false,
        counted: Counted::Number { allocations: true, agent_jar: None },
    };
    let weave = ExactPlan {
        include: args.counted.include.clone(),
        also: vec![FORK_JOIN.parse()?],
        exclude,
        memory: MEMORY,
        measure: Measure::Trees(TreePlan {
            figures,
            roots: roots.map(|roots| TreeRoots { roots, follow_threads: false, follow: None }),
            depth: 0,
        }),
        ..ExactPlan::default()
    };
    let chance = exact::Chance::FixedEverywhere;
    let what = What::Exact(exact::Plan { weave, chance, ..exact::Plan::default() });
    Ok(Job {
        plan: Plan { what, duration: None, command: args.command.clone() },
        output: Some(room.join("run.tare")),
        quiet: true,
        mute: true,
        by_thread: false,
        json: false,
        timeout: Patience::usual().map_err(anyhow::Error::msg)?,
    })
}

/// A directory for the recordings, which goes with its owner. It is locked meanwhile: one that is
/// not was left by a process that was killed, and is swept at some later attach.
struct Room(PathBuf, #[expect(dead_code, reason = "holds the lock")] File);

impl Room {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("{CHECK_PREFIX}{}", std::process::id()));
        let cannot = || format!("cannot create {}", path.display());
        DirBuilder::new().mode(0o700).create(&path).with_context(cannot)?;
        let lock = File::open(&path).with_context(cannot)?;
        lock.lock_shared().with_context(cannot)?;
        Ok(Room(path, lock))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The cases of all JVMs that were recorded.
fn measured(room: &Path, roots: bool) -> Result<Baseline> {
    let mut all = Baseline::default();
    let mut files: Vec<PathBuf> = std::fs::read_dir(room)?.flatten().map(|e| e.path()).collect();
    files.sort();
    for file in files {
        let profile = source::load(&file, None)?;
        let jdk = &profile.run.jdk;
        all.java = jdk.split(['.', '-', '+']).next().unwrap_or_default().to_owned();
        for loss in profile.run.losses.iter().filter(|loss| loss.kind != LossKind::Refused) {
            errln!("{WARN}tare:{WARN:#} {}, {}: {}", loss.count, loss.name, loss.reason);
        }
        let left_out = add_cases(&profile, roots, &mut all.cases);
        if left_out > 0 {
            errln!(
                "{WARN}tare:{WARN:#} {} in pieces of parallel work below a root left out: chance decides how \
                 many of them the root's own thread runs",
                several(left_out, "call")
            );
        }
    }
    Ok(all)
}

/// Where the values of a context belong.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Outside of any case: the next frame of the program begins one.
    Outside,
    /// In the case that this context begins.
    In(ContextId),
    /// Nowhere, with all that it calls: it differs from run to run.
    Nowhere,
    /// Nowhere either: a piece of parallel work below a root.
    LeftOut,
}

/// Of each context. A piece of parallel work is a case, whichever thread runs it: a parallel stream
/// leaves it to chance which pieces the thread runs that waits for all of them, and which a pool.
/// Those of a pool are below no root, so with roots it would be chance what is counted.
fn places(profile: &Profile, roots: bool) -> Vec<Place> {
    let mut all = vec![Place::Outside; profile.contexts.len()];
    let mut in_pieces = vec![false; profile.contexts.len()];
    for (id, parent, frame) in profile.contexts.iter() {
        let method = profile.methods.get(profile.frames.get(frame).method);
        let [class, name] = [method.class, method.name].map(|text| profile.strings.get(text));
        let is_piece = class == FORK_JOIN && name == PIECE;
        in_pieces[id.index()] = is_piece || in_pieces[parent.index()];
        all[id.index()] = match all[parent.index()] {
            Place::LeftOut => Place::LeftOut,
            _ if is_piece && roots => Place::LeftOut,
            _ if is_piece => Place::Outside,
            Place::Nowhere => Place::Nowhere,
            _ if name == "<clinit>" || is_unstable(class) => Place::Nowhere,
            // How the JDK gets from the piece to the program's code is its own business.
            Place::Outside if in_pieces[parent.index()] && is_jdk(class) => Place::Outside,
            Place::Outside => Place::In(id),
            inside => inside,
        };
    }
    all
}

/// Adds what a profile has; the calls that were left out of it.
fn add_cases(profile: &Profile, roots: bool, cases: &mut BTreeMap<String, Case>) -> u64 {
    let places = places(profile, roots);
    let mut left_out = 0;
    let name = |context: ContextId| {
        let frame = profile.contexts.frame(context)?;
        let name = stable(&profile.method_name(profile.frames.get(frame).method));
        // Names of the file are words, and harmless to print.
        Some(plain(&name).replace(char::is_whitespace, "_"))
    };
    for kind in [
        ValueKind::Bytecodes,
        ValueKind::Invocations,
        ValueKind::AllocatedObjects,
        ValueKind::AllocatedBytes,
    ] {
        let mut all = profile.all_series();
        let Some((_, series)) = all.find(|(_, series)| series.info().kind == kind) else {
            continue;
        };
        for row in series.rows() {
            let place = places[row.context.index()];
            if place == Place::LeftOut && kind == ValueKind::Invocations {
                left_out += u64::try_from(row.value).unwrap_or(0);
            }
            let Place::In(top) = place else { continue };
            if is_service(&profile.thread_name(row.thread)) {
                continue;
            }
            let (Some(case), Some(method)) = (name(top), name(row.context)) else { continue };
            let value = u64::try_from(row.value).unwrap_or(0);
            let case = cases.entry(case).or_default();
            match kind {
                ValueKind::Bytecodes => {
                    case.bytecodes += value;
                    case.methods.entry(method).or_default().bytecodes += value;
                }
                ValueKind::Invocations => {
                    case.calls += if top == row.context { value } else { 0 };
                    case.methods.entry(method).or_default().calls += value;
                }
                ValueKind::AllocatedObjects => case.objects += value,
                _ => case.bytes += value,
            }
        }
    }
    left_out
}
