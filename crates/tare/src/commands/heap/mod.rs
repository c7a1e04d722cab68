//! `tare heap`: what a heap dump tells. Everything is computed by `tare-heapdump`; here it is asked
//! and shown.

mod allocations;
mod collections;
mod diff;
mod dominators;
mod export;
mod histo;
mod html;
mod index;
mod live_histo;
mod loaders;
mod memory;
mod names;
mod object;
mod overview;
mod paged;
mod path;
mod progress;
mod query;
mod strings;
mod suspects;
mod take;
mod threads;
mod watch;

pub use paged::Paged;

use crate::cli::{HeapArgs, HeapWhat, Keep};
use crate::figures::remark_aside;
use crate::term;
use allocations::Allocations;
use anyhow::{Context, Error, Result, anyhow, bail};
use progress::Line;
use tare_heapdump::{Heap, HeapError, Options, Strength};

/// Rows of a table if nobody wants more.
const ROWS: usize = 25;

/// A heap, and how it is to be shown.
struct Asked<'a> {
    heap: &'a Heap,
    /// What a recording tells of its objects, if there is one.
    allocations: Option<Allocations>,
    args: &'a HeapArgs,
    width: usize,
}

impl Asked<'_> {
    fn rows(&self) -> usize {
        self.args.limit.unwrap_or(ROWS)
    }
}

pub fn run(args: &HeapArgs) -> Result<()> {
    if let Some(HeapWhat::Watch { every, times }) = &args.what {
        return watch::run(args, *every, *times);
    }
    if let Some(HeapWhat::Histo { by, live, snapshot }) = args.what {
        let wanted = live_histo::Wanted { by, live, snapshot };
        if wanted.is_for_hotspot(args) {
            return live_histo::run(args, wanted);
        }
        if live {
            bail!("--live has a running JVM count, which tells no loaders and keeps no snapshot");
        }
        if snapshot && !take::is_jvm(&args.target) {
            bail!("--snapshot is for a running JVM, and {} is a file", args.target);
        }
    }
    let mut dump = take::open(args, &args.target, args.output.as_deref(), None)?;
    let recording = dump.recording.take();
    let (heap, unwritten) = read(dump, args)?;
    let allocations = allocations::find(args, &heap, recording)?;
    // In a pipe nothing is cut.
    let width = term::width().unwrap_or(usize::MAX);
    let asked = Asked { heap: &heap, allocations, args, width };
    let answer = || match args.what.as_ref().unwrap_or(&HeapWhat::Overview) {
        HeapWhat::Overview => overview::run(&asked),
        HeapWhat::Histo { by, .. } => histo::run(&asked, *by),
        HeapWhat::Dominators { object } => dominators::run(&asked, object.as_deref()),
        HeapWhat::Path { what } => path::run(&asked, what),
        HeapWhat::Suspects { least } => suspects::run(&asked, *least),
        HeapWhat::Threads => threads::run(&asked),
        HeapWhat::Loaders => loaders::run(&asked),
        HeapWhat::Strings => strings::run(&asked),
        HeapWhat::Collections => collections::run(&asked),
        HeapWhat::Object { object } => object::run(&asked, object),
        HeapWhat::Query { text } => query::run(&asked, text),
        HeapWhat::Export { file } => export::run(&asked, file),
        HeapWhat::Diff { new } => diff::run(&asked, new),
        HeapWhat::Html { file } => html::run(&asked, file),
        HeapWhat::Watch { .. } => unreachable!("it takes snapshots of its own"),
    };
    unwritten.keep(&heap, args.quiet, answer)
}

/// Reads a dump, with progress; and what is left to do about its index.
fn read(dump: take::Dump, args: &HeapArgs) -> Result<(Heap, index::Unwritten)> {
    let keep = match args.keep {
        Keep::None => Strength::Strong,
        Keep::Soft => Strength::Soft,
        Keep::Weak => Strength::Weak,
        Keep::All => Strength::Phantom,
    };
    let memory = args.memory.or_else(memory::free).unwrap_or(u64::MAX);
    let options = Options { keep, memory, ..Options::default() };
    let line = Line::new(args.quiet, dump.stop.clone());
    let is_usual = keep == Strength::Strong && !args.no_index;
    let beside = dump.path.as_deref().filter(|_| is_usual);
    let opened = index::open(dump.file, beside, &options, &line);
    if let Err(HeapError::Memory { objects, needed, allowed }) = opened {
        drop(line);
        return Err(no_room(&dump.name, objects, needed, allowed));
    }
    let (heap, unwritten) =
        opened.with_context(|| format!("{} cannot be read as a heap dump", dump.name))?;
    drop(line);
    for note in heap.about().notes {
        remark_aside(&format!("{}: {note}", dump.name));
    }
    Ok((heap, unwritten))
}

/// Nothing was computed, since it would not fit.
fn no_room(name: &str, objects: u64, needed: u64, allowed: u64) -> Error {
    let (objects, allowed) = (names::number(objects), names::bytes(allowed));
    // In the grammar of the option, and rounded up.
    let enough = format!("{}M", needed.div_ceil(1 << 20));
    anyhow!(
        "{name} has {objects} objects, which take up to {} of memory to compute, and {allowed} may \
         be taken; `--memory {enough}` takes it all the same, or read it where there is more",
        names::bytes(needed)
    )
}
