//! References of native code: who makes them, and which are never deleted; for people and as JSON.

use super::Report;
use crate::figures::{fit, grouped, several, wrap};
use crate::term::{BOLD, DIM, plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_analysis::{JniRefs, JniSite};
use tare_profile::JniReferences;

/// Sites on the page of something else, and on their own.
const FEW: usize = 3;

pub fn is_of_references(report: &Report<'_>) -> bool {
    JniReferences::of(&report.info().kind).is_some()
}

pub fn print(out: &mut Vec<u8>, report: &Report<'_>, width: usize) -> Result<()> {
    let Some(refs) = &report.jni_refs else { return Ok(()) };
    let width = width.min(160);
    let is_asked = report.args.jni_refs || is_of_references(report);
    let most = if is_asked { report.args.top() } else { FEW };
    head(out, refs, width)?;
    if refs.sites.is_empty() {
        return Ok(());
    }
    let [alive, made] = ["alive", "made"];
    writeln!(out, "{DIM}{alive:>9} {made:>9}{DIM:#}")?;
    for site in refs.sites.iter().take(most) {
        let text = fit(&place(site), width.saturating_sub(21).max(12));
        writeln!(out, "{:>9} {:>9}  {text}", count(site.alive), count(site.made))?;
        let mut details = Vec::new();
        if !site.class.is_empty() {
            details.push(format!("to {}", plain(&site.class)));
        }
        if !site.native.is_empty() && !site.java.is_empty() {
            details.push(format!("called by {}", plain(&site.java)));
        }
        if site.weak {
            details.push("weak".to_owned());
        }
        if !details.is_empty() {
            let details = fit(&details.join(", "), width.saturating_sub(23).max(12));
            writeln!(out, "{:>21}{DIM}{details}{DIM:#}", "")?;
        }
    }
    if let Some(more @ 1..) = refs.sites.len().checked_sub(most) {
        writeln!(out, "{DIM}  … {more} more; --jni-refs --top N shows them{DIM:#}")?;
    }
    Ok(())
}

fn head(out: &mut Vec<u8>, refs: &JniRefs, width: usize) -> Result<()> {
    let mut text = format!(
        "{} made, {} not deleted by the end",
        several(refs.made, "reference"),
        count(refs.alive)
    );
    if refs.older > 0 {
        text += &format!("; {} deleted that were made before the recording", count(refs.older));
    }
    text += "; what was there before is in a snapshot: tare heap JVM";
    for (at, line) in wrap(&text, width.saturating_sub(16)).iter().enumerate() {
        let title = if at == 0 { "\nJNI references" } else { "              " };
        writeln!(out, "{BOLD}{title}{BOLD:#}  {DIM}{line}{DIM:#}")?;
    }
    Ok(())
}

fn place(site: &JniSite) -> String {
    let place = if site.native.is_empty() { &site.java } else { &site.native };
    if place.is_empty() { "[stack not known]".to_owned() } else { plain(place).into_owned() }
}

fn count(number: u64) -> String {
    grouped(i64::try_from(number).unwrap_or(i64::MAX))
}

pub fn json(refs: &JniRefs) -> Value {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let sites = refs.sites.iter().map(|site| {
        json!({
            "class": known(&site.class),
            "native": known(&site.native),
            "java": known(&site.java),
            "weak": site.weak,
            "made": site.made,
            "alive": site.alive,
        })
    });
    json!({
        "made": refs.made,
        "alive": refs.alive,
        "deleted_made_before": refs.older,
        "sites": sites.collect::<Value>(),
    })
}
