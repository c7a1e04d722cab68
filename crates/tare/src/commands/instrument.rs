//! `tare instrument`: a program that counts by itself, wherever it runs. Weaving is
//! `tare-offline`'s business; this file places the results and says what was done.

use crate::cli::InstrumentArgs;
use crate::commands::class::{LISTED, list_passed_by, list_refused};
use crate::figures::several;
use crate::interrupt;
use crate::term::{WARN, plain};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tare_java_names::ClassChoice;
use tare_offline::{
    Batch, Blocks, FileError, Staging, Wanted, classes_of, portable, weave_aside, weave_path,
};
use tare_protocol::{BlockAnalysis, Pattern};

pub fn run(args: &InstrumentArgs) -> Result<()> {
    let blocks = match args.counted.blocks {
        BlockAnalysis::Default => Blocks::Default,
        BlockAnalysis::Precise => Blocks::Precise,
    };
    let outputs = outputs(args)?;
    // Where several go, it goes too; one has it at its side.
    let several = args.inputs.len() > 1;
    let place = if several { &args.output } else { parent(&args.output) };
    let beside = place.join(portable::JAR);
    check_runtime(&beside, &outputs)?;
    let wanted = wanted(args.counted.include.clone(), args.counted.exclude.clone());
    let mut batch = Batch::portable(blocks, args.allow_huge, wanted)?;
    let stop = interrupt::flag()?;
    batch.stop_at(Arc::clone(&stop));
    // All of it is written before anything arrives, and the runtime arrives first: a result without
    // it would not run.
    let runtime = portable::jar().context("making the runtime's jar")?;
    let staging = if several {
        let staging = Staging::new(&args.output);
        let path = staging.path();
        fs::create_dir(path).with_context(|| format!("creating {}", path.display()))?;
        for (input, output) in args.inputs.iter().zip(&outputs) {
            refuse_same(input, output)?;
            let to = path.join(output.file_name().unwrap_or_default());
            weave_path(&mut batch, input, &to, &[&args.output, &beside])
                .with_context(|| doing(input))?;
        }
        staging
    } else {
        let (input, output) = (&args.inputs[0], &outputs[0]);
        refuse_same(input, output)?;
        weave_aside(&mut batch, input, output, &[&args.output, &beside])
            .with_context(|| doing(input))?
    };
    if several && !args.output.is_dir() {
        // There is no place for the runtime yet; it comes with the rest.
        write_runtime(&staging.path().join(portable::JAR), &runtime)?;
        end_if(&stop)?;
    } else {
        let aside = Staging::new(&beside);
        write_runtime(aside.path(), &runtime)?;
        end_if(&stop)?;
        aside.place()?;
    }
    staging.place()?;
    if batch.totals.changed == 0 {
        errln!("{WARN}tare:{WARN:#} no class was woven; {}", why_nothing(&batch));
    }
    report(&batch, args, &beside);
    Ok(())
}

fn doing(input: &Path) -> String {
    format!("instrumenting {}", input.display())
}

fn write_runtime(path: &Path, runtime: &[u8]) -> Result<()> {
    fs::write(path, runtime).with_context(|| format!("writing {}", path.display()))
}

/// The last moment at which nothing has arrived.
fn end_if(stop: &AtomicBool) -> Result<()> {
    if interrupt::is_set(stop) { Err(FileError::Stopped.into()) } else { Ok(()) }
}

/// Where each input goes.
fn outputs(args: &InstrumentArgs) -> Result<Vec<PathBuf>> {
    for input in &args.inputs {
        if !input.exists() {
            bail!("there is no {}", input.display());
        }
    }
    let above = parent(&args.output);
    if !above.is_dir() {
        bail!("there is no directory {} to write to; create it first", above.display());
    }
    if let [input] = args.inputs.as_slice() {
        match (input.is_dir(), args.output.is_dir()) {
            (true, false) if args.output.exists() => {
                bail!(
                    "{} is a directory, so {} must not be a file",
                    input.display(),
                    args.output.display()
                )
            }
            (false, true) => {
                let name = input.file_name().context("the input has no name")?;
                bail!(
                    "{} is a directory; name the file, as {}",
                    args.output.display(),
                    args.output.join(name).display()
                )
            }
            _ => return Ok(vec![args.output.clone()]),
        }
    }
    if args.output.exists() && !args.output.is_dir() {
        bail!("{} is no directory, which several results need", args.output.display());
    }
    let mut outputs = Vec::new();
    for input in &args.inputs {
        let name = input.file_name().with_context(|| format!("{} has no name", input.display()))?;
        let output = args.output.join(name);
        if outputs.contains(&output) {
            bail!("two inputs are called {}; instrument them one by one", name.to_string_lossy());
        }
        outputs.push(output);
    }
    Ok(outputs)
}

/// Of several the result is made elsewhere first, where nobody would notice.
fn refuse_same(input: &Path, output: &Path) -> Result<()> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    if real(input).is_some() && real(input) == real(output) {
        bail!("{} is input and output; name another output", input.display());
    }
    Ok(())
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The runtime replaces another version of itself, and nothing else.
fn check_runtime(path: &Path, outputs: &[PathBuf]) -> Result<()> {
    if outputs.iter().any(|output| output == path) {
        bail!("{} is where the runtime goes; name another output", path.display());
    }
    if !path.exists() {
        return Ok(());
    }
    let mut ours = false;
    let _ = classes_of(path, &|name| name == portable::PROBE, &mut |_, _| ours = true);
    if !ours {
        bail!("{} is in the way of Tare's runtime; name another output", path.display());
    }
    Ok(())
}

/// By default what `tare record` would weave.
fn wanted(include: Vec<Pattern>, exclude: Vec<Pattern>) -> Wanted {
    Box::new(move |class| ClassChoice { include: &include, exclude: &exclude, also: &[] }.of(class))
}

fn why_nothing(batch: &Batch) -> String {
    let totals = &batch.totals;
    match (totals.classes, totals.left_out) {
        (0, _) => "there is none".to_owned(),
        (all, left) if all == left => "none is chosen; see --include".to_owned(),
        _ => "what kept them from it is said below".to_owned(),
    }
}

/// What was done, on standard error.
fn report(batch: &Batch, args: &InstrumentArgs, runtime: &Path) {
    let totals = &batch.totals;
    errln!(
        "Wove {} of {} ({} of {}): {}",
        totals.woven,
        several(totals.methods, "method"),
        totals.changed,
        several(totals.classes, "class"),
        args.output.display()
    );
    if totals.left_out > 0 {
        errln!("Not chosen, and left as they were: {}", several(totals.left_out, "class"));
    }
    for (reason, count) in &totals.failed {
        errln!("Left as they were: {}: {}", several(*count, "class"), plain(reason));
    }
    list_passed_by(totals);
    list_refused(totals, &batch.rows, if args.verbose { usize::MAX } else { LISTED });
    if totals.signatures > 0 {
        errln!(
            "Signatures left out: {}. What they signed was changed; sign the result again where \
             somebody verifies it",
            several(totals.signatures, "file")
        );
    }
    if totals.modules > 0 {
        errln!(
            "Modules that now require {}: {}. Put {} on the module path",
            portable::MODULE,
            totals.modules,
            runtime.display()
        );
    }
    errln!("The runtime that it needs: {}", runtime.display());
}
