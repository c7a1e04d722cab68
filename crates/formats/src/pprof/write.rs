//! A profile as pprof. All series that have rows, and the one that is asked for, go into one file,
//! as its sample types.

use super::{kind_name, type_name, unit_name};
use crate::error::WriteError;
use crate::proto::Message;
use std::collections::HashMap;
use std::io::Write;
use tare_profile::{
    ContextId, FrameId, Merger, MethodId, MethodKind, Profile, Series, SeriesId, StringId, Strings,
    ThreadId,
};

/// Writes the message, not yet packed. `default` is what `go tool pprof` shows first.
pub fn write(profile: &Profile, default: SeriesId, out: &mut dyn Write) -> Result<(), WriteError> {
    // A file without a sample type says nothing to its readers; one without samples does.
    let told = |id: SeriesId, series: &Series| id == default || !series.is_empty();
    let all: Vec<(SeriesId, &Series)> =
        profile.all_series().filter(|(id, series)| told(*id, series)).collect();
    let mut strings = Strings::default();
    let mut text = |text: &str| u64::from(strings.intern(text).raw());

    let mut head = Message::new();
    for (_, series) in &all {
        let mut value_type = Message::new();
        value_type.number(1, text(&type_name(profile, series.info())));
        value_type.number(2, text(unit_name(series.info().kind.unit())));
        head.message(1, &value_type);
    }
    let info = profile.series(default).info();
    if let Some(kind) = info.period_kind.as_ref().filter(|_| info.period > 0) {
        let mut period_type = Message::new();
        period_type.number(1, text(kind_name(kind)));
        period_type.number(2, text(unit_name(kind.unit())));
        head.message(11, &period_type);
        head.number(12, info.period);
    }
    head.signed(9, profile.run.started.unwrap_or(0));
    head.number(10, profile.run.duration);
    for comment in comments(profile) {
        head.number(13, text(&comment));
    }
    head.number(14, text(&type_name(profile, info)));
    out.write_all(head.as_bytes())?;

    let series: Vec<&Series> = all.iter().map(|(_, series)| *series).collect();
    let frames = write_samples(profile, &series, &mut text, out)?;
    write_locations(profile, &frames, &mut text, out)?;

    for (_, text) in strings.iter() {
        let mut message = Message::new();
        message.text(6, text);
        out.write_all(message.as_bytes())?;
    }
    Ok(())
}

/// One sample per stack and thread, with a value of each series. Says which frames they use.
fn write_samples(
    profile: &Profile,
    all: &[&Series],
    text: &mut impl FnMut(&str) -> u64,
    out: &mut dyn Write,
) -> Result<Vec<bool>, WriteError> {
    let mut rows: Vec<(ContextId, ThreadId, usize, i64)> = Vec::new();
    for (column, series) in all.iter().enumerate() {
        let mut merger = Merger::new(series.info().clone());
        series.rows().for_each(|row| merger.add(row));
        let sums = merger.finish();
        rows.extend(sums.rows().map(|row| (row.context, row.thread, column, row.value)));
    }
    rows.sort_unstable();

    let (key_name, key_number) = (text("thread"), text("thread_id"));
    let mut used = vec![false; profile.frames.len()];
    let (mut sample, mut message) = (Message::new(), Message::new());
    // The threads of a stack follow each other, so that it is put down once for all of them.
    let (mut stack, mut stack_of) = (Message::new(), None);
    let mut values = vec![0; all.len()];
    for same in rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (context, thread, ..) = same[0];
        values.fill(0);
        same.iter().for_each(|(_, _, column, value)| values[*column] = *value as u64);
        if stack_of != Some(context) {
            stack_of = Some(context);
            stack.clear();
            let frames = profile.contexts.frames(context);
            stack.packed(
                1,
                frames.map(|frame| {
                    used[frame.index()] = true;
                    location_number(frame)
                }),
            );
        }
        sample.clear();
        sample.append(&stack);
        sample.packed(2, values.iter().copied());
        if thread != ThreadId::UNKNOWN {
            let mut label = Message::new();
            label.number(1, key_name);
            label.number(2, text(&profile.thread_name(thread)));
            sample.message(3, &label);
            let known = profile.threads.get(thread);
            if let Some(number) = known.os_id.or(known.java_id) {
                label.clear();
                label.number(1, key_number);
                label.number(3, number);
                sample.message(3, &label);
            }
        }
        message.clear();
        message.message(2, &sample);
        out.write_all(message.as_bytes())?;
    }
    Ok(used)
}

/// Frames are locations, methods are functions, modules are mappings. Numbers begin with 1.
fn write_locations(
    profile: &Profile,
    used: &[bool],
    text: &mut impl FnMut(&str) -> u64,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let mut methods = vec![false; profile.methods.len()];
    let mut mappings: HashMap<StringId, u64> = HashMap::new();
    let (mut inner, mut message) = (Message::new(), Message::new());
    for (id, frame) in profile.frames.iter().filter(|(id, _)| used[id.index()]) {
        methods[frame.method.index()] = true;
        let module = profile.methods.get(frame.method).module;
        let next = mappings.len() as u64 + 1;
        let mapping = *mappings.entry(module).or_insert(next);
        let mut line = Message::new();
        line.number(1, function_number(frame.method));
        line.number(2, frame.line.map_or(0, u64::from));
        inner.clear();
        inner.number(1, location_number(id));
        inner.number(2, mapping);
        inner.message(4, &line);
        message.clear();
        message.message(4, &inner);
        out.write_all(message.as_bytes())?;
    }
    for (id, method) in profile.methods.iter().filter(|(id, _)| methods[id.index()]) {
        let name = profile.method_name(id);
        inner.clear();
        inner.number(1, function_number(id));
        inner.number(3, text(&system_name(profile, id, &name)));
        inner.number(2, text(&name));
        inner.number(4, text(profile.strings.get(method.file)));
        inner.number(5, method.line.map_or(0, u64::from));
        message.clear();
        message.message(5, &inner);
        out.write_all(message.as_bytes())?;
    }
    let mut mappings: Vec<_> = mappings.into_iter().map(|(module, id)| (id, module)).collect();
    mappings.sort_unstable();
    for (id, module) in mappings {
        inner.clear();
        inner.number(1, id);
        inner.number(5, text(profile.strings.get(module)));
        // Names are here, and nobody needs to look for symbols.
        (7..=10).for_each(|field| inner.flag(field, true));
        message.clear();
        message.message(3, &inner);
        out.write_all(message.as_bytes())?;
    }
    Ok(())
}

fn location_number(frame: FrameId) -> u64 {
    u64::from(frame.raw()) + 1
}

fn function_number(method: MethodId) -> u64 {
    u64::from(method.raw()) + 1
}

/// The name as the system has it. It also tells what kind of frame it is, which nothing else does.
fn system_name(profile: &Profile, id: MethodId, name: &str) -> String {
    let method = profile.methods.get(id);
    match method.kind {
        MethodKind::Java => format!("{name}{}", profile.strings.get(method.descriptor)),
        MethodKind::Class => format!("class {name}"),
        MethodKind::Kernel => format!("kernel {name}"),
        MethodKind::Native | MethodKind::Special => name.to_owned(),
    }
}

/// What is known of the run, for `go tool pprof -comments`.
fn comments(profile: &Profile) -> Vec<String> {
    let run = &profile.run;
    let facts = [
        ("tool", run.tool.clone()),
        ("main class", run.main_class.clone()),
        ("jdk", run.jdk.clone()),
        ("vm", run.vm.clone()),
        ("host", run.host.clone()),
        ("command", run.command_line.join(" ")),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    let facts = facts.map(|(key, value)| format!("{key}: {value}"));
    let losses = run.losses.iter();
    let losses = losses.map(|loss| {
        format!("{}: {} {} ({})", loss.kind.name(), loss.count, loss.name, loss.reason)
    });
    facts.chain(losses).collect()
}
