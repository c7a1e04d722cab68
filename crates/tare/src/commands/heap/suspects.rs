//! Who holds much, each with its share, what it holds, the way there and what fills it.

use super::names::{by_text, bytes, number, object, object_json};
use super::{Asked, allocations, names};
use crate::figures::{percent, several};
use crate::term::{self, BOLD, DIM};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_heapdump::analyses::suspects::{Holder, MANY, Suspect};
use tare_heapdump::{Heap, Path};

/// Of a long chain both ends tell the most.
const LONGEST_CHAIN: usize = 12;

pub fn run(asked: &Asked<'_>, least: f64) -> Result<()> {
    let suspects =
        asked.heap.suspects(least / 100.0, asked.args.limit.unwrap_or(MANY.1).min(200))?;
    if asked.args.json {
        return term::json(&all_json(asked, &suspects)?);
    }
    let mut out = Vec::new();
    if suspects.is_empty() {
        writeln!(out, "Nothing holds {least} % of the memory or more; try --least 0.1.")?;
    }
    print(asked, &mut out, &suspects)?;
    term::show(&out, false)
}

pub fn print(asked: &Asked<'_>, out: &mut impl Write, suspects: &[Suspect]) -> Result<()> {
    for (at, suspect) in (1..).zip(suspects) {
        if at > 1 {
            writeln!(out)?;
        }
        print_one(asked, out, at, suspect)?;
    }
    Ok(())
}

fn print_one(asked: &Asked<'_>, out: &mut impl Write, at: usize, suspect: &Suspect) -> Result<()> {
    let heap = asked.heap;
    let (share, size) = (percent(suspect.share), bytes(suspect.retained));
    let holder = term::plain(&holder_text(heap, suspect)?).into_owned();
    writeln!(out, "{BOLD}{at:>2}  {share}  {size:>8}  {holder}{BOLD:#}")?;
    let room = asked.width.saturating_sub(8);
    if suspect.count > 1 {
        writeln!(out, "      {DIM}the largest of {}:{DIM:#}", number(suspect.count))?;
    }
    match &suspect.path {
        Some(path) => print_path(asked, out, path, 6)?,
        None => writeln!(out, "      {}", object(heap, suspect.point, room)?)?,
    }
    let fill: Vec<String> = suspect
        .fill
        .iter()
        .map(|(class, sum)| {
            let name = &heap.classes().get(*class).name;
            format!("{} in {} {}", bytes(sum.bytes), number(sum.objects), term::plain(name))
        })
        .collect();
    for line in crate::figures::wrap(&format!("filled by {}", fill.join(", ")), room) {
        writeln!(out, "      {line}")?;
    }
    allocations::print(asked, out, suspect)
}

/// The holder in words.
pub fn holder_text(heap: &Heap, suspect: &Suspect) -> Result<String> {
    let class = |id| heap.classes().get(id).name.as_str();
    let threads = || match suspect.threads.as_slice() {
        [one] => {
            let name = heap.thread_name(*one).ok().flatten().unwrap_or_default();
            format!("thread \"{name}\"")
        }
        many => several(many.len(), "thread"),
    };
    Ok(match &suspect.holder {
        Holder::Static { class: id, field } => format!("static {}.{field}", class(*id)),
        Holder::Class(id) => format!("static fields of {}", class(*id)),
        Holder::ThreadLocal(name) => format!("ThreadLocal {name} in {}", threads()),
        Holder::Local(frame) => format!("variables of {frame} in {}", threads()),
        Holder::Thread => threads(),
        Holder::Loader(node) => format!("loader {}", object(heap, *node, usize::MAX)?),
        Holder::JniGlobal => "JNI global references (native code)".to_owned(),
        Holder::Other(kind) => kind.name().to_owned(),
        Holder::Many(id) => {
            let objects = match suspect.count {
                1 => "an object".to_owned(),
                count => format!("{} objects", number(count)),
            };
            format!("{objects} of {}, which several hold", class(*id))
        }
    })
}

/// A chain of references, one line for each step.
pub fn print_path(
    asked: &Asked<'_>,
    out: &mut impl Write,
    path: &Path,
    indent: usize,
) -> Result<()> {
    let count = path.steps.len();
    let is_long = count > LONGEST_CHAIN;
    for (at, step) in path.steps.iter().enumerate() {
        if is_long && at == LONGEST_CHAIN / 2 {
            let left_out = count - LONGEST_CHAIN;
            writeln!(out, "{:indent$}{DIM}… {}{DIM:#}", "", several(left_out, "step"))?;
        }
        if is_long && (LONGEST_CHAIN / 2..count - LONGEST_CHAIN / 2).contains(&at) {
            continue;
        }
        let by = by_text(&step.by);
        let by = if at == 0 { String::new() } else { format!("→ {}: ", term::plain(&by)) };
        let last = at + 1 == count;
        let size = format!(", {}", bytes(asked.heap.retained(step.node)));
        let size = if last { size } else { String::new() };
        let why = if at == 0 { format!(" {DIM}({}){DIM:#}", path.root) } else { String::new() };
        let room = asked.width.saturating_sub(indent + by.chars().count() + 24);
        let what = object(asked.heap, step.node, room.max(30))?;
        writeln!(out, "{:indent$}{by}{what}{why}{size}", "")?;
    }
    Ok(())
}

pub fn path_json(heap: &Heap, path: &Path) -> Result<Value> {
    let step = |step: &tare_heapdump::Step| -> Result<Value> {
        let mut value = object_json(heap, step.node)?;
        value["by"] = names::by_text(&step.by).into();
        Ok(value)
    };
    let steps: Vec<Value> = path.steps.iter().map(step).collect::<Result<_>>()?;
    Ok(json!({ "root": path.root, "steps": steps }))
}

pub fn all_json(asked: &Asked<'_>, suspects: &[Suspect]) -> Result<Value> {
    let heap = asked.heap;
    let one = |suspect: &Suspect| -> Result<Value> {
        let kind = match &suspect.holder {
            Holder::Static { .. } | Holder::Class(_) => "static",
            Holder::ThreadLocal(_) => "thread-local",
            Holder::Local(_) => "local",
            Holder::Thread => "thread",
            Holder::Loader(_) => "loader",
            Holder::JniGlobal => "jni-global",
            Holder::Other(_) => "root",
            Holder::Many(_) => "class",
        };
        let fill = suspect.fill.iter().map(|(class, sum)| {
            let name = &heap.classes().get(*class).name;
            json!({ "class": name, "objects": sum.objects, "bytes": sum.bytes })
        });
        let collection = suspect.collection.map(|node| object_json(heap, node)).transpose()?;
        let path = suspect.path.as_ref().map(|path| path_json(heap, path)).transpose()?;
        Ok(json!({
            "kind": kind,
            "holder": holder_text(heap, suspect)?,
            "retained": suspect.retained,
            "share": suspect.share,
            "count": suspect.count,
            "threads": suspect.threads.len(),
            "largest": object_json(heap, suspect.members[0])?,
            "collection": collection,
            "path": path,
            "filled_by": fill.collect::<Vec<Value>>(),
            "allocated": allocations::json(asked, suspect),
        }))
    };
    suspects.iter().map(one).collect()
}
