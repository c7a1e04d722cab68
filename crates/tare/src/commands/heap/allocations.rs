//! Where the objects behind a holder were allocated, and how old they are: numbers of sampled
//! objects in a snapshot, joined with what a recording tells of them.

use super::Asked;
use crate::cli::HeapArgs;
use crate::figures::{percent, remark_aside, several, value, wrap};
use crate::source;
use crate::term::{self, DIM};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use tare_heapdump::Heap;
use tare_heapdump::analyses::suspects::Suspect;
use tare_profile::{ContextId, EventKind, EventTable, FieldValue, MethodKind, Profile, Unit};

/// Sites that are shown of each holder, and frames of each site.
const SITES: usize = 3;
const FRAMES: usize = 5;

pub struct Allocations {
    profile: Profile,
    by_number: HashMap<u64, Known>,
}

/// What a recording tells of an object.
struct Known {
    context: ContextId,
    /// Nanoseconds from its allocation to the end of the recording.
    age: u64,
    size: i64,
    /// What it stands for.
    bytes: i64,
    collections: i64,
}

/// Objects of a class that were allocated at one place.
struct Site {
    class: String,
    /// Java methods, the innermost first.
    frames: Vec<String>,
    sampled: u64,
    bytes: i64,
    ages: (u64, u64),
    collections: (i64, i64),
}

/// The recording that is asked for, or the one that is under way; none if the snapshot knows of no
/// sampled objects.
pub fn find(
    args: &HeapArgs,
    heap: &Heap,
    under_way: Option<(File, PathBuf)>,
) -> Result<Option<Allocations>> {
    let has_samples = heap.samples().next().is_some();
    let given = args.recording.as_deref();
    let Some(path) = given.or(under_way.as_ref().map(|(_, path)| path.as_path())) else {
        return Ok(None);
    };
    if !has_samples {
        remark_aside(
            "no object in it was sampled by a recording: take the snapshot while `tare record \
             --alloc` runs in that JVM",
        );
        return Ok(None);
    }
    let name = given.map_or_else(|| "the recording".to_owned(), |path| path.display().to_string());
    let profile = source::load(path, None).with_context(|| format!("{name} cannot be used"))?;
    let allocations = Allocations::of(profile);
    let known = heap.samples().filter(|(node, number)| allocations.knows(heap, *node, *number));
    if known.count() == 0 && given.is_some() {
        bail!(
            "{name} knows none of the sampled objects: it is of another JVM, has no --alloc, or \
             ended before the snapshot was taken"
        );
    }
    Ok(Some(allocations))
}

impl Allocations {
    fn of(profile: Profile) -> Allocations {
        let name = EventKind::survivor().name;
        let mut by_number = HashMap::new();
        for (_, table) in profile.all_events().filter(|(_, table)| table.kind().name == name) {
            for (row, event) in table.events().enumerate() {
                let field = |name| integer(table, row, name);
                let known = Known {
                    context: event.context,
                    age: profile.run.duration.saturating_sub(event.time),
                    size: field("size"),
                    bytes: field("bytes"),
                    collections: field("collections"),
                };
                by_number.insert(field("number").cast_unsigned(), known);
            }
        }
        // What no number was told of.
        by_number.remove(&0);
        Allocations { profile, by_number }
    }

    /// What is told of an object. Numbers begin anew with each recording, so its size must be the
    /// one that was told, too.
    fn get(&self, heap: &Heap, node: u32, number: u64) -> Option<&Known> {
        let size = i64::try_from(heap.size(node)).ok();
        self.by_number.get(&number).filter(|known| Some(known.size) == size)
    }

    fn knows(&self, heap: &Heap, node: u32, number: u64) -> bool {
        self.get(heap, node, number).is_some()
    }

    /// Where what a holder holds was allocated, the most first. Places that differ only in how their
    /// code ran are one.
    fn sites(&self, heap: &Heap, suspect: &Suspect) -> Vec<Site> {
        let mut places: HashMap<ContextId, usize> = HashMap::new();
        let mut by_names: HashMap<(String, Vec<String>), usize> = HashMap::new();
        let mut sites: Vec<Site> = Vec::new();
        for (node, number) in &suspect.samples {
            let Some(known) = self.get(heap, *node, *number) else { continue };
            let Known { context, age, collections, .. } = *known;
            let at = *places.entry(context).or_insert_with(|| {
                let names = self.names(context);
                *by_names.entry(names).or_insert_with_key(|(class, frames)| {
                    sites.push(Site {
                        class: class.clone(),
                        frames: frames.clone(),
                        sampled: 0,
                        bytes: 0,
                        ages: (age, age),
                        collections: (collections, collections),
                    });
                    sites.len() - 1
                })
            });
            let site = &mut sites[at];
            site.sampled += 1;
            site.bytes = site.bytes.saturating_add(known.bytes);
            site.ages = (site.ages.0.min(age), site.ages.1.max(age));
            let (least, most) = site.collections;
            site.collections = (least.min(collections), most.max(collections));
        }
        // The order of those that weigh the same is the snapshot's.
        sites.sort_by_key(|site| std::cmp::Reverse(site.bytes));
        sites
    }

    /// The class of the objects, and the Java methods above their allocation from the innermost.
    fn names(&self, context: ContextId) -> (String, Vec<String>) {
        let profile = &self.profile;
        let text = |id| profile.strings.get(id);
        let (mut class, mut frames) = (String::new(), Vec::new());
        for frame in profile.contexts.frames(context) {
            let frame = profile.frames.get(frame);
            let method = profile.methods.get(frame.method);
            match method.kind {
                MethodKind::Class => class = text(method.class).to_owned(),
                MethodKind::Java => {
                    let line = match (text(method.file), frame.line) {
                        (file, Some(line)) if !file.is_empty() => format!("({file}:{line})"),
                        _ => String::new(),
                    };
                    frames.push(format!("{}.{}{line}", text(method.class), text(method.name)));
                }
                _ => {}
            }
        }
        (class, frames)
    }
}

fn integer(table: &EventTable, row: usize, name: &str) -> i64 {
    match table.field_named(name).and_then(|field| table.field(row, field)) {
        Some(FieldValue::Integer(value)) => value,
        _ => 0,
    }
}

/// Below a holder: where its objects come from.
pub fn print(asked: &Asked<'_>, out: &mut impl Write, suspect: &Suspect) -> Result<()> {
    let Some(allocations) = &asked.allocations else { return Ok(()) };
    let sites = allocations.sites(asked.heap, suspect);
    if sites.is_empty() {
        let text = match suspect.samples.len() {
            0 => "none of its objects was sampled by the recording".to_owned(),
            n => format!(
                "{} sampled; no collection has proven yet that they stay",
                several(n, "object")
            ),
        };
        writeln!(out, "      {DIM}{text}{DIM:#}")?;
        return Ok(());
    }
    let all: i64 = sites.iter().map(|site| site.bytes).sum();
    let sampled: u64 = sites.iter().map(|site| site.sampled).sum();
    let sum = value(all, Unit::Bytes);
    writeln!(
        out,
        "      allocated, by {} that {} for about {sum}:",
        several(sampled as usize, "sampled object"),
        if sampled == 1 { "stands" } else { "stand" },
    )?;
    for site in sites.iter().take(SITES) {
        let Site { class, frames, .. } = site;
        let share = percent(site.bytes as f64 / all.max(1) as f64);
        let more = if frames.len() > FRAMES { " ← …" } else { "" };
        let way: Vec<&str> = frames.iter().take(FRAMES).map(String::as_str).collect();
        let text = format!("{share}  {class} at {}{more}", way.join(" ← "));
        let room = asked.width.saturating_sub(18);
        for (at, line) in wrap(&term::plain(&text), room).iter().enumerate() {
            writeln!(out, "      {:indent$}{line}", "", indent = if at == 0 { 0 } else { 10 })?;
        }
        writeln!(out, "      {DIM}{:10}{}{DIM:#}", "", ages(site))?;
    }
    if sites.len() > SITES {
        let left = several(sites.len() - SITES, "more place");
        writeln!(out, "      {DIM}{:10}{left}; --json has all{DIM:#}", "")?;
    }
    Ok(())
}

/// `12 s to 4 min old, after 3 to 31 collections`.
fn ages(site: &Site) -> String {
    let time = |age: u64| value(i64::try_from(age).unwrap_or(i64::MAX), Unit::Nanoseconds);
    let (young, old) = (time(site.ages.0), time(site.ages.1));
    let age = if young == old { young } else { format!("{young} to {old}") };
    let survived = match site.collections {
        (least, most) if least == most => several(most.max(0) as usize, "collection"),
        (least, most) => format!("{least} to {most} collections"),
    };
    format!("{age} old, after {survived}")
}

/// The same for scripts; `null` without a recording.
pub fn json(asked: &Asked<'_>, suspect: &Suspect) -> Value {
    let Some(allocations) = &asked.allocations else { return Value::Null };
    let sites = allocations.sites(asked.heap, suspect);
    let known: u64 = sites.iter().map(|site| site.sampled).sum();
    let site = |site: &Site| {
        json!({
            "class": site.class,
            "frames": site.frames,
            "sampled": site.sampled,
            "bytes": site.bytes,
            "youngest_ns": site.ages.0,
            "oldest_ns": site.ages.1,
            "fewest_collections": site.collections.0,
            "most_collections": site.collections.1,
        })
    };
    json!({
        "sampled": suspect.samples.len(),
        "known": known,
        "sites": sites.iter().map(site).collect::<Vec<Value>>(),
    })
}
