//! The Firefox Profiler's processed format, version 60: tables shared by all threads, samples and
//! markers per thread. Newer versions of the profiler upgrade it when they load it.

use crate::by_thread::{self, Sample};
use crate::error::WriteError;
use crate::event_names::EventNames;
use crate::json::{self, column, optional};
use crate::merged::{self, Labels};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use tare_java_names::is_jdk;
use tare_profile::{
    ContextId, EventTable, FieldType, FieldValue, MethodKind, Profile, Series, SeriesId, StringId,
    Strings, ThreadId, TimeAxis, Unit, ValueKind,
};

const VERSION: u32 = 60;

/// Categories by which frames are coloured, in the order of [`category`].
const CATEGORIES: [(&str, &str); 6] = [
    ("Other", "grey"),
    ("Java", "green"),
    ("JDK", "lightblue"),
    ("Native", "blue"),
    ("Kernel", "orange"),
    ("Class", "purple"),
];

fn category(text: &str, kind: MethodKind) -> usize {
    match kind {
        MethodKind::Java if is_jdk(text) => 2,
        MethodKind::Java => 1,
        MethodKind::Native => 3,
        MethodKind::Kernel => 4,
        MethodKind::Class => 5,
        MethodKind::Special => 0,
    }
}

/// What a thread has beside its samples.
#[derive(Default)]
struct Extras<'p> {
    allocations: Vec<Sample>,
    /// A table and a row of it.
    events: Vec<(&'p EventTable, usize)>,
}

pub fn write(
    profile: &Profile,
    series: SeriesId,
    title: &str,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let main = profile.series(series);
    let allocation = profile.all_series().find(|(id, other)| {
        *id != series && other.info().kind == ValueKind::AllocatedBytes && !other.is_empty()
    });
    let allocation = allocation.map(|(_, series)| series);
    let used = merged::used(profile, std::iter::once(main).chain(allocation));
    // Rows of the stack table, by context; the root is no stack.
    let mut stacks = vec![None; profile.contexts.len()];
    let kept = profile.contexts.iter().filter(|(id, ..)| used[id.index()]);
    for (row, (id, ..)) in (0_u32..).zip(kept) {
        stacks[id.index()] = Some(row);
    }
    let mut samples: BTreeMap<ThreadId, Vec<Sample>> = BTreeMap::new();
    let mut order = Vec::new();
    for thread in by_thread::split(main) {
        order.push(thread.thread);
        samples.insert(thread.thread, thread.samples);
    }
    let mut extras: HashMap<ThreadId, Extras<'_>> = HashMap::new();
    for thread in allocation.map(by_thread::split).unwrap_or_default() {
        extras.entry(thread.thread).or_default().allocations = thread.samples;
    }
    for (_, table) in profile.all_events() {
        for (row, event) in table.events().enumerate() {
            extras.entry(event.thread).or_default().events.push((table, row));
        }
    }
    let mut more: Vec<ThreadId> =
        extras.keys().filter(|id| !samples.contains_key(id)).copied().collect();
    more.sort_unstable();
    order.extend(more);

    let mut strings = Strings::default();
    write_meta(profile, main, title, out)?;
    write!(out, ",\"threads\":")?;
    let none = Extras::default();
    json::list(out, order, |out, id| {
        let samples = samples.remove(&id).unwrap_or_default();
        let extras = extras.get(&id).unwrap_or(&none);
        write_thread(profile, id, main, &samples, extras, &stacks, &mut strings, out)
    })?;
    write!(out, ",\"shared\":{{")?;
    write_shared(profile, &stacks, &mut strings, out)?;
    write!(out, ",\"stringArray\":")?;
    json::list(out, strings.iter(), |out, (_, text)| json::text(out, text))?;
    write!(out, "}}}}")?;
    Ok(())
}

fn millis(nanos: u64) -> String {
    format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000)
}

fn write_meta(
    profile: &Profile,
    series: &Series,
    title: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let info = series.info();
    let interval = if info.period > 0 { info.period } else { 1_000_000 };
    let started = u64::try_from(profile.run.started.unwrap_or(0)).unwrap_or(0);
    write!(
        out,
        "{{\"meta\":{{\"interval\":{},\"startTime\":{},",
        millis(interval),
        millis(started)
    )?;
    write!(out, "\"processType\":0,\"stackwalk\":1,\"version\":32,")?;
    write!(out, "\"preprocessedProfileVersion\":{VERSION},\"symbolicated\":true,")?;
    write!(out, "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,")?;
    write!(out, "\"importedFrom\":\"Tare\",\"product\":")?;
    let product = if title.is_empty() { &profile.run.main_class } else { title };
    json::text(out, if product.is_empty() { "JVM" } else { product })?;
    write!(out, ",\"oscpu\":")?;
    json::text(out, &profile.run.os)?;
    write!(out, ",\"categories\":")?;
    json::list(out, CATEGORIES, |out, (name, color)| {
        write!(out, "{{\"name\":\"{name}\",\"color\":\"{color}\",\"subcategories\":[\"Other\"]}}")
    })?;
    write!(out, ",\"markerSchema\":")?;
    json::list(out, profile.all_events(), |out, (_, table)| {
        write!(out, "{{\"name\":")?;
        json::text(out, &table.kind().name)?;
        write!(
            out,
            ",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],\"fields\":"
        )?;
        json::list(out, &table.kind().fields, |out, field| {
            let format = match field.kind {
                FieldType::Integer(Unit::Bytes) => "bytes",
                FieldType::Integer(_) => "integer",
                FieldType::Real => "decimal",
                FieldType::Text | FieldType::Thread | FieldType::Context => "string",
            };
            write!(out, "{{\"format\":\"{format}\",\"key\":")?;
            json::text(out, &field.name)?;
            write!(out, ",\"label\":")?;
            json::text(out, &field.name)?;
            write!(out, "}}")
        })?;
        write!(out, "}}")
    })?;
    write!(out, "}},\"libs\":[],\"pages\":[],\"counters\":[],\"profilerOverhead\":[]")
}

#[allow(clippy::too_many_arguments)]
fn write_thread(
    profile: &Profile,
    id: ThreadId,
    series: &Series,
    samples: &[Sample],
    extras: &Extras<'_>,
    stacks: &[Option<u32>],
    strings: &mut Strings,
    out: &mut dyn Write,
) -> io::Result<()> {
    let thread = profile.threads.get(id);
    let name = profile.thread_name(id);
    let ended = thread.ended.map(millis);
    write!(
        out,
        "{{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
    )?;
    write!(out, "\"registerTime\":{},", millis(thread.started.unwrap_or(0)))?;
    write!(out, "\"unregisterTime\":{},\"pausedRanges\":[],\"name\":", optional(ended))?;
    json::text(out, &name)?;
    write!(out, ",\"isMainThread\":{},\"processName\":", name == "main")?;
    json::text(
        out,
        if profile.run.main_class.is_empty() { "JVM" } else { &profile.run.main_class },
    )?;
    let tid = thread.os_id.or(thread.java_id).unwrap_or(u64::from(id.raw()));
    let pid = profile.run.pid.unwrap_or(0);
    write!(out, ",\"pid\":\"{pid}\",\"tid\":\"{tid}/{}\",\"samples\":{{", id.raw())?;

    let stack = |context: ContextId| optional(stacks[context.index()]);
    column(out, "stack", samples.iter().map(|sample| stack(sample.context)))?;
    write!(out, ",")?;
    // Without times, samples stand one interval apart, in no order that means anything.
    let timed = series.info().time == TimeAxis::Exact;
    let step = if series.info().period > 0 { series.info().period } else { 1_000_000 };
    let times = (0_u64..).zip(samples);
    let times = times.map(|(row, sample)| millis(if timed { sample.time } else { row * step }));
    column(out, "time", times)?;
    write!(out, ",")?;
    let unit = series.info().kind.unit();
    column(
        out,
        "weight",
        samples.iter().map(|sample| match unit {
            Unit::Nanoseconds => millis(sample.value as u64),
            Unit::Count | Unit::Bytes => sample.value.to_string(),
        }),
    )?;
    let weight_type = match unit {
        Unit::Nanoseconds => "tracing-ms",
        Unit::Bytes => "bytes",
        Unit::Count => "samples",
    };
    write!(out, ",\"weightType\":\"{weight_type}\",\"length\":{}}}", samples.len())?;

    if !extras.allocations.is_empty() {
        let all = &extras.allocations;
        write!(out, ",\"nativeAllocations\":{{")?;
        column(out, "time", all.iter().map(|sample| millis(sample.time)))?;
        write!(out, ",")?;
        column(out, "weight", all.iter().map(|sample| sample.value))?;
        write!(out, ",\"weightType\":\"bytes\",")?;
        column(out, "stack", all.iter().map(|sample| stack(sample.context)))?;
        write!(out, ",\"length\":{}}}", all.len())?;
    }
    write!(out, ",\"markers\":{{")?;
    write_markers(profile, &extras.events, strings, out)?;
    write!(out, "}}}}")
}

fn write_markers(
    profile: &Profile,
    events: &[(&EventTable, usize)],
    strings: &mut Strings,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows = || events.iter().filter_map(|(table, row)| table.event(*row));
    column(out, "startTime", rows().map(|event| millis(event.time)))?;
    write!(out, ",")?;
    let ends = rows().map(|event| event.time.saturating_add(event.duration));
    column(out, "endTime", ends.map(millis))?;
    write!(out, ",")?;
    // 1 is an interval, 0 a moment.
    column(out, "phase", rows().map(|event| u8::from(event.duration > 0)))?;
    write!(out, ",")?;
    column(out, "category", events.iter().map(|_| 0))?;
    write!(out, ",")?;
    // Events of a thread come table by table.
    let mut named = Vec::with_capacity(events.len());
    for of_table in events.chunk_by(|(a, _), (b, _)| std::ptr::eq(*a, *b)) {
        let Some((table, _)) = of_table.first() else { continue };
        let names = EventNames::new(profile, table);
        let rows = of_table.iter().filter_map(|(table, row)| table.event(*row));
        named.extend(rows.map(|event| strings.intern(names.of(&event)).raw()));
    }
    column(out, "name", named)?;
    write!(out, ",\"data\":")?;
    json::list(out, events, |out, (table, row)| {
        write!(out, "{{\"type\":")?;
        json::text(out, &table.kind().name)?;
        for (number, field) in table.kind().fields.iter().enumerate() {
            write!(out, ",")?;
            json::text(out, &field.name)?;
            write!(out, ":")?;
            match table.field(*row, number) {
                Some(FieldValue::Integer(value)) => write!(out, "{value}")?,
                Some(FieldValue::Real(value)) if value.is_finite() => write!(out, "{value}")?,
                Some(FieldValue::Text(id)) => json::text(out, profile.strings.get(id))?,
                Some(FieldValue::Thread(id)) => json::text(out, &profile.thread_name(id))?,
                Some(FieldValue::Context(id)) => {
                    json::text_or_null(out, profile.innermost_name(id).as_deref())?;
                }
                _ => write!(out, "null")?,
            }
        }
        write!(out, "}}")
    })?;
    write!(out, ",\"length\":{}", events.len())
}

fn write_shared(
    profile: &Profile,
    stacks: &[Option<u32>],
    strings: &mut Strings,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut labels = Labels::default();
    let of_frames = labels.of_frames(profile);
    let kept = || profile.contexts.iter().filter(|(id, ..)| stacks[id.index()].is_some());
    write!(out, "\"stackTable\":{{")?;
    column(out, "frame", kept().map(|(_, _, frame)| frame.raw()))?;
    write!(out, ",")?;
    column(out, "prefix", kept().map(|(_, parent, _)| optional(stacks[parent.index()])))?;
    write!(out, ",\"length\":{}}},\"frameTable\":{{", kept().count())?;

    let frames = profile.frames.len();
    let nulls = || std::iter::repeat_n("null", frames);
    column(out, "address", std::iter::repeat_n(-1, frames))?;
    write!(out, ",")?;
    column(out, "inlineDepth", std::iter::repeat_n(0, frames))?;
    write!(out, ",")?;
    let categories = of_frames.iter().map(|label| &labels.rows[*label as usize]);
    column(out, "category", categories.map(|label| category(&label.text, label.kind)))?;
    write!(out, ",")?;
    column(out, "subcategory", std::iter::repeat_n(0, frames))?;
    write!(out, ",")?;
    column(out, "func", &of_frames)?;
    write!(out, ",")?;
    let lines = profile.frames.iter().map(|(_, frame)| optional(frame.line));
    column(out, "line", lines)?;
    for key in ["nativeSymbol", "innerWindowID", "column"] {
        write!(out, ",")?;
        column(out, key, nulls())?;
    }
    write!(out, ",\"length\":{frames}}},\"funcTable\":{{")?;

    // Methods of one name are one function, of which the first method's file and line are told.
    let mut firsts: Vec<(StringId, Option<u32>)> = vec![(StringId::EMPTY, None); labels.rows.len()];
    for (id, frame) in profile.frames.iter() {
        let method = profile.methods.get(frame.method);
        let first = &mut firsts[of_frames[id.index()] as usize];
        if first.0.is_empty() {
            *first = (method.file, method.line);
        }
    }
    let mut sources: Vec<StringId> = firsts.iter().map(|first| first.0).collect();
    sources.retain(|file| !file.is_empty());
    sources.sort_unstable();
    sources.dedup();
    let functions = labels.rows.len();
    column(out, "name", labels.rows.iter().map(|label| strings.intern(&label.text).raw()))?;
    for key in ["isJS", "relevantForJS"] {
        write!(out, ",")?;
        column(out, key, std::iter::repeat_n(false, functions))?;
    }
    write!(out, ",")?;
    column(out, "resource", std::iter::repeat_n(-1, functions))?;
    write!(out, ",")?;
    column(
        out,
        "source",
        firsts.iter().map(|first| optional(sources.binary_search(&first.0).ok())),
    )?;
    write!(out, ",")?;
    column(out, "lineNumber", firsts.iter().map(|first| optional(first.1)))?;
    write!(out, ",")?;
    column(out, "columnNumber", std::iter::repeat_n("null", functions))?;
    write!(out, ",\"length\":{functions}}},")?;
    write!(
        out,
        "\"resourceTable\":{{\"type\":[],\"lib\":[],\"name\":[],\"host\":[],\"length\":0}},"
    )?;
    write!(out, "\"nativeSymbols\":{{\"libIndex\":[],\"address\":[],\"name\":[],")?;
    write!(out, "\"functionSize\":[],\"length\":0}},\"sources\":{{")?;
    column(out, "uuid", sources.iter().map(|_| "null"))?;
    write!(out, ",")?;
    let names = sources.iter().map(|file| strings.intern(profile.strings.get(*file)).raw());
    column(out, "filename", names)?;
    write!(out, ",\"length\":{}}}", sources.len())
}
