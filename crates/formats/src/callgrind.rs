//! Callgrind's format: cost per line of each function, and who calls whom at what cost.
//!
//! It knows pairs of caller and callee, no whole stacks. So a pair's cost is that of its outermost
//! appearances; inner ones, by recursion, are part of those already.

use crate::error::WriteError;
use crate::merged::{self, Labels};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use tare_profile::{ContextId, Profile, SeriesId, StringId, ValueKind};

/// What a function costs itself and by those that it calls.
#[derive(Default)]
struct Function {
    file: StringId,
    line: u32,
    /// By line.
    own: BTreeMap<u32, i64>,
    /// By the line of the call and the callee's label: calls and cost.
    calls: BTreeMap<(u32, u32), (i64, i64)>,
}

pub fn write(profile: &Profile, series: SeriesId, out: &mut dyn Write) -> Result<(), WriteError> {
    let series = profile.series(series);
    let used = merged::used(profile, [series]);
    let mut labels = Labels::default();
    let of_frames = labels.of_frames(profile);
    let mut own = vec![0_i64; profile.contexts.len()];
    for row in series.rows() {
        let value = &mut own[row.context.index()];
        *value = value.saturating_add(row.value);
    }
    let mut totals = own.clone();
    for (id, parent, _) in profile.contexts.iter().rev() {
        let total = totals[id.index()];
        totals[parent.index()] = totals[parent.index()].saturating_add(total);
    }
    let functions = functions(profile, &of_frames, &used, &own, &totals);

    let info = series.info();
    let event: String = info.kind.name().replace(char::is_whitespace, "-");
    writeln!(out, "# callgrind format\nversion: 1\ncreator: tare-{}", env!("CARGO_PKG_VERSION"))?;
    if !profile.run.command_line.is_empty() {
        writeln!(out, "cmd: {}", clean(&profile.run.command_line.join(" ")))?;
    }
    writeln!(out, "positions: line\nevents: {event}\nsummary: {}", totals[0])?;
    let mut named = HashSet::new();
    let mut name = |label: u32| match named.insert(label) {
        true => format!("({label}) {}", clean(&labels.rows[label as usize].text)),
        false => format!("({label})"),
    };
    let mut files = HashSet::new();
    let mut file = |id: StringId| match (id.is_empty(), files.insert(id)) {
        (true, true) => format!("({}) ???", id.raw()),
        (false, true) => format!("({}) {}", id.raw(), clean(profile.strings.get(id))),
        (_, false) => format!("({})", id.raw()),
    };
    let mut order: Vec<u32> = functions.keys().copied().collect();
    order.sort_unstable();
    for label in order {
        let function = &functions[&label];
        writeln!(out, "\nfl={}\nfn={}", file(function.file), name(label))?;
        for (line, value) in function.own.iter().filter(|(_, value)| **value != 0) {
            writeln!(out, "{line} {value}")?;
        }
        for ((line, callee), (count, cost)) in &function.calls {
            let target = functions.get(callee);
            let (callee_file, callee_line) =
                target.map_or((StringId::EMPTY, 0), |f| (f.file, f.line));
            writeln!(out, "cfi={}\ncfn={}", file(callee_file), name(*callee))?;
            writeln!(out, "calls={count} {callee_line}\n{line} {cost}")?;
        }
    }
    writeln!(out, "\ntotals: {}", totals[0])?;
    Ok(())
}

fn functions(
    profile: &Profile,
    of_frames: &[u32],
    used: &[bool],
    own: &[i64],
    totals: &[i64],
) -> HashMap<u32, Function> {
    let invocations = invocations(profile);
    let mut functions: HashMap<u32, Function> = HashMap::new();
    for (id, parent, frame) in profile.contexts.iter().filter(|(id, ..)| used[id.index()]) {
        let label = of_frames[frame.index()];
        let (place, method) = (profile.frames.get(frame), profile.method_of(frame));
        let function = functions.entry(label).or_default();
        if function.file.is_empty() {
            function.file = method.file;
            function.line = method.line.unwrap_or(0);
        }
        *function.own.entry(place.line.unwrap_or(0)).or_default() += own[id.index()];
        let Some(caller) = profile.contexts.frame(parent) else { continue };
        let caller_label = of_frames[caller.index()];
        let line = profile.frames.get(caller).line.unwrap_or(0);
        let pair = (caller_label, label);
        let call =
            functions.entry(caller_label).or_default().calls.entry((line, label)).or_default();
        call.0 += invocations.as_ref().map_or(1, |counts| counts[id.index()]);
        if is_outermost(profile, of_frames, parent, pair) {
            call.1 = call.1.saturating_add(totals[id.index()]);
        }
    }
    functions
}

/// How often each context was entered, where that was counted. Without it, a call is a context.
fn invocations(profile: &Profile) -> Option<Vec<i64>> {
    let counted = |kind: &ValueKind| *kind == ValueKind::Invocations;
    let (_, series) = profile
        .all_series()
        .find(|(_, series)| counted(&series.info().kind) && !series.is_empty())?;
    let mut counts = vec![0_i64; profile.contexts.len()];
    for row in series.rows() {
        let count = &mut counts[row.context.index()];
        *count = count.saturating_add(row.value);
    }
    Some(counts)
}

/// Whether a pair of caller and callee appears nowhere further out on the stack that ends with the
/// caller.
fn is_outermost(
    profile: &Profile,
    of_frames: &[u32],
    caller: ContextId,
    (from, to): (u32, u32),
) -> bool {
    let mut inner = None;
    for frame in profile.contexts.frames(caller) {
        let label = of_frames[frame.index()];
        if label == from && inner == Some(to) {
            return false;
        }
        inner = Some(label);
    }
    true
}

fn clean(text: &str) -> String {
    text.replace(char::is_control, " ")
}
