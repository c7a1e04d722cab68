//! From the flags of `tare record` to a plan, once. Nothing behind this door knows flags, and what
//! is wrong with them is said before a program is started or a JVM touched.

use super::files::{check_output, check_room};
use super::plan::{finds_roots, plan};
use super::{Job, predict};
use crate::cli::{LockDepth, RecordArgs};
use crate::figures::remark_aside;
use crate::source;
use crate::target_costs::TargetCosts;
use anyhow::{Result, bail};
use std::path::Path;
use tare_formats::Format;
use tare_session::engines::{exact, stream, trace};
use tare_session::{Plan, What};

/// What the flags mean.
pub fn job(args: &RecordArgs) -> Result<Job> {
    let output = args.output.as_deref();
    check_patterns(args)?;
    check_output(output)?;
    check_stacks(args, output)?;
    check_room(output)?;
    let what = match () {
        () if args.trace => {
            What::Trace(trace::Plan { weave: plan(args)?, rate: args.rate, most: args.events })
        }
        // Regions are woven, too.
        () if args.exact || args.bytecodes || args.alloc_exact || !args.region.is_empty() => {
            What::Exact(exact(args)?)
        }
        () => What::Stream(stream(args)?),
    };
    if let (What::Exact(plan), Some(sample)) = (&what, &args.sample) {
        let sentence = predict::sentence(&source::load(sample, None)?, sample, &plan.weave)?;
        if !args.quiet {
            remark_aside(&sentence);
        }
    }
    Ok(Job {
        plan: Plan { what, duration: args.duration, command: args.command.clone() },
        output: args.output.clone(),
        quiet: args.quiet,
        mute: false,
        by_thread: args.threads,
        json: false,
        timeout: args.patience.timeout,
    })
}

/// Samples of threads, unless only something else is asked for.
fn stream(args: &RecordArgs) -> Result<stream::Plan> {
    let others = args.alloc || args.lock.is_some() || args.classes || args.jni_refs;
    let with_samples = !others || args.cpu || args.wall;
    if !with_samples && (args.interval.is_some() || args.engine.is_some() || args.java_only) {
        bail!(
            "--interval, --engine and --java-only are for samples of threads, which --alloc, --lock, \
             --classes and --jni-refs alone do not take; add --cpu or --wall. The interval of allocation samples is \
             --interval-bytes, the shortest wait that is shown --lock-threshold"
        );
    }
    Ok(stream::Plan {
        samples: with_samples.then_some(stream::Samples {
            trigger: args.engine,
            wall: args.wall,
            interval: args.interval,
            java_only: args.java_only,
            yields: false,
        }),
        alloc: args
            .alloc
            .then_some(stream::Alloc { interval: args.interval_bytes, live: !args.no_live }),
        locks: args.lock.map(|depth| stream::Locks {
            threshold: args.lock_threshold,
            // In a program that begins there is hardly any compiled code to lose.
            weave: depth == LockDepth::Full || !args.command.is_empty(),
        }),
        classes: args.classes,
        jni_refs: args.jni_refs,
        depth: args.depth,
        include: args.include.clone(),
        exclude: args.exclude.clone(),
        keep: args.keep,
    })
}

fn exact(args: &RecordArgs) -> Result<exact::Plan> {
    if args.cpu && args.jvm.is_none() {
        bail!(
            "--exact --cpu samples a program before it is woven, so the program must run already: start \
             it, and record it by its pid"
        );
    }
    let target = args.target.as_deref().map(TargetCosts::read).transpose()?;
    Ok(exact::Plan {
        weave: plan(args)?,
        target: target.map(|target| target.jvm),
        overhead: args.share(),
        find_roots: finds_roots(args),
        found: Vec::new(),
        window: args.cpu.then_some(args.window),
        counters: args.counters,
        chance: match args.bytecodes && !args.as_it_comes {
            true => exact::Chance::Fixed,
            false => exact::Chance::AsItComes,
        },
    })
}

/// Patterns for what is not recorded: samples have no classes of their own to watch, and regions alone
/// neither classes to weave nor stacks to choose from.
fn check_patterns(args: &RecordArgs) -> Result<()> {
    if args.alloc && !args.live.is_empty() {
        bail!(
            "--live names classes of which every object is watched, and --alloc samples objects: it \
             watches those of all classes that it meets. Leave --live out, or count every allocation \
             with --alloc-exact"
        );
    }
    let regions_only = !args.region.is_empty() && !args.exact;
    if regions_only && !(args.include.is_empty() && args.exclude.is_empty()) {
        bail!(
            "--region alone weaves the lines that it names, and nothing that --include or --exclude \
             could choose from; leave them out, or add --exact to count calls as well"
        );
    }
    Ok(())
}

/// Other tools' files are made of stacks, which regions have none of.
fn check_stacks(args: &RecordArgs, output: Option<&Path>) -> Result<()> {
    let regions_only = !args.region.is_empty() && !args.exact;
    match output.filter(|path| regions_only && Format::of_path(path).is_some()) {
        Some(path) => bail!(
            "{} would be empty: a recording of regions alone has no stacks. Name a .tare file, or \
             record with --exact as well",
            path.display()
        ),
        None => Ok(()),
    }
}
