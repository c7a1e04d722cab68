//! `tare calibrate-target`: what bytecodes cost on a JVM, measured by a program that runs on it.

use crate::cli::CalibrateArgs;
use crate::target::Target;
use anyhow::{Context, Result, bail};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tare_offline::portable;

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
    let text = match &args.measured {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("{} cannot be read", path.display()))?,
        None => measure(args)?,
    };
    let target = Target::measured(&text)?;
    match &args.output {
        Some(path) => std::fs::write(path, target.text())
            .with_context(|| format!("writing {}", path.display()))?,
        None => std::io::stdout().lock().write_all(target.text().as_bytes())?,
    }
    errln!(
        "{}: the costs tell the times of the loops that were measured to {:.0} %, on average",
        target.jvm,
        target.fit * 100.0
    );
    Ok(())
}

fn write_jar(path: &Path) -> Result<()> {
    let jar = portable::jar().context("making the runtime's jar")?;
    std::fs::write(path, jar).with_context(|| format!("writing {}", path.display()))
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
