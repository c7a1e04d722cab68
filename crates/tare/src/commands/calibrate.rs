//! `tare calibrate-target`: what bytecodes cost on a JVM, measured by a program that runs on it.

use crate::cli::CalibrateArgs;
use crate::files;
use crate::other_load::OtherLoad;
use crate::target_costs::{LARGEST, TargetCosts};
use crate::term;
use anyhow::{Context, Result, bail};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tare_offline::portable;

/// Others may have this share of the machine. The best of many rounds is taken, so a little does no
/// harm.
const OTHERS: f64 = 0.2;

/// How long is looked before anything is measured.
const LOOK: Duration = Duration::from_millis(500);

pub fn run(args: &CalibrateArgs) -> Result<()> {
    if let Some(jar) = &args.jar {
        write_jar(jar)?;
        errln!(
            "On the other machine: java -cp {} {} > measured.txt",
            jar.display(),
            portable::TARGET
        );
        return Ok(());
    }
    let (measured, others) = match &args.measured {
        Some(path) => (files::read_text(path, LARGEST)?, None),
        None => measure_undisturbed(args)?,
    };
    let target = TargetCosts::measured(&measured)?;
    let mut text = target.text();
    if let Some(others) = others {
        let percent = others * 100.0;
        text.push_str(&format!(
            "# measured by --force while others had {percent:.0} % of the machine\n"
        ));
    }
    // As without -o, but for who writes it everywhere.
    match args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        Some(path) => files::replace(path, text.as_bytes())?,
        None => term::stdout().write_all(text.as_bytes())?,
    }
    errln!(
        "{}: the costs reproduce the measured times of the loops to {:.0} %, on average",
        target.jvm,
        target.fit * 100.0
    );
    Ok(())
}

fn write_jar(path: &Path) -> Result<()> {
    let jar = portable::jar().context("making the runtime's jar")?;
    Ok(files::replace(path, &jar)?)
}

/// The same, unless others use the machine, before it or meanwhile: with `--force` by how much.
fn measure_undisturbed(args: &CalibrateArgs) -> Result<(String, Option<f64>)> {
    let refuse = |others: f64, when: &str| -> Result<()> {
        if args.force || others <= OTHERS {
            return Ok(());
        }
        bail!(
            "other programs {when} {:.0} % of this machine's processors, which would count as costs of \
             bytecodes; wait until they are done, or use --force",
            others * 100.0
        );
    };
    refuse(OtherLoad::look(LOOK).unwrap_or(0.0), "use")?;
    let watch = OtherLoad::start();
    let text = measure(args)?;
    let others = watch.and_then(OtherLoad::others).unwrap_or(0.0);
    refuse(others, "used, while it was measured,")?;
    Ok((text, Some(others).filter(|others| *others > OTHERS)))
}

/// Runs the kernels and returns what they say.
fn measure(args: &CalibrateArgs) -> Result<String> {
    let (java, options) = match args.command.split_first() {
        Some((java, options)) => (java.clone(), options),
        None => ("java".into(), &[][..]),
    };
    let directory = std::env::temp_dir().join(format!("tare-target-{}", std::process::id()));
    std::fs::create_dir(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let jar = directory.join(portable::JAR);
    let outcome = write_jar(&jar).and_then(|()| {
        let mut command = Command::new(&java);
        command.args(options).arg("-cp").arg(&jar).arg(portable::TARGET).stderr(Stdio::inherit());
        command.output().with_context(|| format!("{} cannot be started", java.to_string_lossy()))
    });
    let _ = std::fs::remove_dir_all(&directory);
    let output = outcome?;
    if !output.status.success() {
        bail!("{} ended with {}", java.to_string_lossy(), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
