//! `tare class print` and `tare class weave`: the weaver on files. A report of a bug in it needs
//! nothing but a class file and these two commands.

use crate::cli::{ClassCommand, WeaveArgs};
use crate::figures::several;
use crate::term::{self, plain};
use crate::{files, interrupt};
use anyhow::{Context, Result, bail};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tare_classfile::ClassFile;
use tare_classfile::print::print_class as print_class_file;
use tare_offline::{Batch, Row, Settings, Totals, classes_of, weave_path};

/// Refused methods that are listed without `--verbose`.
pub const LISTED: usize = 20;

pub fn run(command: &ClassCommand) -> Result<()> {
    match command {
        ClassCommand::Print { input } => print(input),
        ClassCommand::Weave(args) => weave(args),
    }
}

fn print(input: &str) -> Result<()> {
    let (path, class) = split(input);
    let wanted = class.as_deref().map(|name| name.replace('.', "/"));
    let mut out = term::stdout();
    let mut printed = 0;
    let mut outcome = Ok(());
    classes_of(
        &path,
        &|name| wanted.as_ref().is_none_or(|wanted| name == wanted || is_versioned(name, wanted)),
        &mut |name, bytes| {
            printed += 1;
            if outcome.is_ok() {
                outcome = print_class(&mut out, name, bytes);
            }
        },
    )?;
    outcome?;
    match (printed, class) {
        (0, Some(class)) => {
            bail!("{} holds no class {class}; `unzip -l` lists what it holds", path.display())
        }
        (0, None) => bail!("{} holds no class", path.display()),
        _ => Ok(()),
    }
}

fn print_class(out: &mut impl std::io::Write, name: &str, bytes: &[u8]) -> Result<()> {
    let class = ClassFile::parse(bytes).with_context(|| format!("{name} is malformed"))?;
    let mut text = String::new();
    print_class_file(&class, &mut text).with_context(|| format!("{name} cannot be printed"))?;
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// Separates the class from the jar, unless a file of the whole name exists.
fn split(input: &str) -> (PathBuf, Option<String>) {
    match input.split_once('!') {
        Some((jar, class)) if !Path::new(input).exists() => {
            let class = class.trim_start_matches('/');
            (jar.into(), Some(class.strip_suffix(".class").unwrap_or(class).to_owned()))
        }
        _ => (input.into(), None),
    }
}

/// Whether an entry of a multi-release jar is a further version of the class.
fn is_versioned(entry: &str, class: &str) -> bool {
    let rest = entry.strip_prefix("META-INF/versions/").and_then(|rest| rest.split_once('/'));
    rest.is_some_and(|(_, name)| name == class)
}

fn weave(args: &WeaveArgs) -> Result<()> {
    let mut settings = Settings::new(args.mode.clone());
    settings.runtime = args.runtime.replace('.', "/");
    settings.allow_huge = args.allow_huge;
    settings.lines = args.lines;
    settings.threshold = args.flush_every;
    let mut batch = Batch::new(settings)?;
    if args.map.is_some() {
        batch.keep_rows();
    }
    if let Some(parent) = args.output.parent().filter(|p| !p.as_os_str().is_empty() && !p.is_dir())
    {
        bail!("there is no directory {} to write to; create it first", parent.display());
    }
    batch.stop_at(interrupt::flag()?);
    weave_path(&mut batch, &args.input, &args.output, &[])
        .with_context(|| format!("weaving {}", args.input.display()))?;
    if let Some(file) = &args.map {
        files::replace_by(file, |file| Ok(write_map(file, &batch.rows)?))?;
    }
    report(&batch.totals, &batch.rows, args);
    if args.json {
        outln!("{}", json(&batch.totals, &batch.rows));
    }
    Ok(())
}

fn write_map(file: std::fs::File, rows: &[Row]) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(file);
    for row in rows {
        writeln!(
            out,
            "{}\t{}\t{}\t{}\t{}\t{}-{}",
            row.id,
            plain(&row.class),
            plain(&row.name),
            plain(&row.descriptor),
            row.outcome,
            row.sites.0,
            row.sites.1
        )?;
    }
    out.flush()
}

/// What was done, on standard error: standard output belongs to scripts.
fn report(totals: &Totals, rows: &[Row], args: &WeaveArgs) {
    let Totals { classes, changed, methods, woven, untouched, .. } = totals;
    errln!(
        "Wove {} into {woven} of {} ({changed} of {}): {}",
        args.mode,
        several(*methods, "method"),
        several(*classes, "class"),
        args.output.display()
    );
    if *untouched > 0 {
        errln!("Nothing to do for these modes: {}", several(*untouched, "method"));
    }
    for (reason, count) in &totals.failed {
        errln!("Left as they were: {}: {}", several(*count, "class"), plain(reason));
    }
    list_passed_by(totals);
    list_refused(totals, rows, if args.verbose { usize::MAX } else { LISTED });
}

/// What lies in a directory and was not taken into the result.
pub fn list_passed_by(totals: &Totals) {
    for (path, reason) in totals.passed_by.iter().take(LISTED) {
        errln!("Not read: {}, {reason}", path.display());
    }
    if let Some(more @ 1..) = totals.passed_by.len().checked_sub(LISTED) {
        errln!("Not read: {more} more");
    }
}

/// Methods that were not woven, by reason, and so many of them by name.
pub fn list_refused(totals: &Totals, rows: &[Row], shown: usize) {
    let refused: u64 = totals.refused.values().sum();
    if refused == 0 {
        return;
    }
    let reasons: Vec<_> = totals.refused.iter().map(|(name, n)| format!("{name} {n}")).collect();
    let methods = several(refused, "method");
    errln!("Refused and left as they were: {methods} ({})", reasons.join(", "));
    let refused: Vec<_> = rows.iter().filter(|row| row.reason.is_some()).collect();
    for row in refused.iter().take(shown) {
        let reason = row.reason.as_deref().unwrap_or_default();
        let method = format!("{}.{}{}", row.class, row.name, row.descriptor);
        errln!("  {}: {}", plain(&method), plain(reason));
    }
    if refused.len() > shown {
        errln!("  … and {} more; --verbose lists them all", refused.len() - shown);
    }
}

fn json(totals: &Totals, rows: &[Row]) -> serde_json::Value {
    let refused: Vec<_> = rows
        .iter()
        .filter_map(|row| {
            let reason = row.reason.as_ref()?;
            let method = format!("{}.{}{}", row.class, row.name, row.descriptor);
            Some(serde_json::json!({ "method": method, "name": row.outcome, "reason": reason }))
        })
        .collect();
    serde_json::json!({
        "classes": totals.classes,
        "changed": totals.changed,
        "methods": totals.methods,
        "woven": totals.woven,
        "untouched": totals.untouched,
        "refused": totals.refused,
        "failed": totals.failed,
        "bytes_in": totals.bytes_in,
        "bytes_out": totals.bytes_out,
        "weaving_ns": totals.time.as_nanos() as u64,
        "slowest_ns": totals.slowest.0.as_nanos() as u64,
        "slowest": totals.slowest.1,
        "refusals": refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_of_a_jar_is_named_behind_a_mark() {
        let check = |text: &str, path: &str, class: Option<&str>| {
            assert_eq!(split(text), (path.into(), class.map(str::to_owned)), "{text}");
        };
        check("a.jar", "a.jar", None);
        check("a.jar!b/C", "a.jar", Some("b/C"));
        check("a.jar!/b/C.class", "a.jar", Some("b/C"));
        check("a.jar!b.C", "a.jar", Some("b.C"));
    }

    #[test]
    fn versions_of_a_class_belong_to_it() {
        assert!(is_versioned("META-INF/versions/9/a/B", "a/B"));
        assert!(!is_versioned("META-INF/versions/9/x/a/B", "a/B"));
        assert!(!is_versioned("a/B", "a/B"));
    }
}
