//! A flame graph in one HTML file that needs nothing else: markup and style are in `assets/`, the
//! program is that of the page of `tare view`, the data stand in the page as compact numbers.
//!
//! A page must open quickly however large the recording is. So threads of one name are one, the
//! smallest of very many share one, and past a budget of nodes the smallest subtrees become a
//! `[pruned]` node each: far below a pixel, with their values kept. Totals stay what they are.

use crate::error::WriteError;
use crate::json;
use crate::merged::{self, Label, Labels, Merged};
use crate::select::series_name;
use crate::{Options, Scatter};
use std::collections::HashMap;
use std::io::Write;
use tare_profile::{ContextId, FrameId, MethodKind, Profile, Series, SeriesId, Unit, ValueKind};

/// Nodes of a page. A browser takes a fraction of a second for as many.
const NODE_BUDGET: usize = 200_000;
/// Names of threads in the menu; those of the smallest threads beyond share one.
const THREAD_BUDGET: usize = 100;

const MARKUP: &str = include_str!("../assets/flamegraph.html");
const STYLE: &str = include_str!("../assets/flamegraph.css");
/// What draws it is the program of the page of `tare view`; the last is what is around it here.
const PROGRAMS: [&str; 3] = [
    include_str!("../../view/assets/palette.js"),
    include_str!("../../view/assets/flame.js"),
    include_str!("../assets/flamegraph.js"),
];

/// The values of the threads of one name: node and value, by node.
#[derive(Default)]
struct Group {
    name: String,
    values: HashMap<ContextId, i64>,
    base: HashMap<ContextId, i64>,
}

impl Group {
    fn total(&self) -> i64 {
        self.values.values().fold(0, |sum, value| sum.saturating_add(*value))
    }
}

/// One series, thread by thread.
struct View<'p> {
    series: &'p Series,
    groups: Vec<Group>,
    has_base: bool,
}

pub fn write(
    profile: &Profile,
    first: SeriesId,
    options: Options<'_>,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    write_within(NODE_BUDGET, profile, first, options, out)
}

fn write_within(
    budget: usize,
    profile: &Profile,
    first: SeriesId,
    options: Options<'_>,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let Options { title, baseline, scatter, opens, .. } = options;
    let mut labels = match baseline {
        Some(_) => Labels::of_two_runs(),
        None => Labels::default(),
    };
    let mut merged = Merged::default();
    let mut views = views(profile, first, baseline, &mut labels, &mut merged);
    let pruned = prune(budget, &mut merged, &mut labels, &mut views);
    let title = match (title, profile.run.main_class.as_str()) {
        ("", "") => "Flame graph",
        ("", name) => name,
        (title, _) => title,
    };
    let mut notes = notes(profile);
    if pruned > 0 {
        notes.push(format!("{pruned} tiny frames are summed up as [pruned]"));
    }

    write!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")?;
    // Nothing is loaded from anywhere, and nothing can be.
    write!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ")?;
    writeln!(out, "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">")?;
    writeln!(out, "<meta name=\"generator\" content=\"tare {}\">", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width\">")?;
    write!(out, "<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n", escape(title))?;
    write!(out, "<body>\n{MARKUP}<script type=\"application/json\" id=\"data\">{{\"title\":")?;
    text(out, title)?;
    write!(out, ",\"labels\":")?;
    json::list(out, &labels.rows, |out, label| text(out, &label.text))?;
    let kinds: String = labels.rows.iter().map(|label| kind_digit(label.kind)).collect();
    write!(out, ",\"kinds\":\"{kinds}\",\"count\":{},\"nodes\":\"", merged.nodes.len())?;
    let mut numbers = Numbers::default();
    for (id, parent, label) in merged.nodes.iter() {
        numbers.push(u64::from(id.raw() - parent.raw()));
        numbers.push(u64::from(label.raw()));
    }
    write!(out, "{}\",\"series\":", numbers.base64())?;
    json::list(out, views.iter().enumerate(), |out, (number, view)| {
        let info = view.series.info();
        let (unit, one, many) = match (&info.kind, info.kind.unit()) {
            (_, Unit::Bytes) => ("bytes", "", ""),
            (_, Unit::Nanoseconds) => ("ns", "", ""),
            (ValueKind::Samples, _) => ("count", "sample", "samples"),
            (ValueKind::AllocatedObjects | ValueKind::LiveObjects, _) => {
                ("count", "object", "objects")
            }
            (ValueKind::Contentions, _) => ("count", "wait", "waits"),
            (kind, _) => ("count", kind.name(), kind.name()),
        };
        write!(out, "{{\"name\":")?;
        text(out, &series_name(info))?;
        write!(out, ",\"unit\":\"{unit}\",\"one\":")?;
        text(out, one)?;
        write!(out, ",\"many\":")?;
        text(out, many)?;
        if let Some(Scatter { variances: [base, now], deviations }) =
            scatter.filter(|_| number == 0 && view.has_base)
        {
            write!(out, ",\"scatter\":[{base:e},{now:e},{deviations}]")?;
        }
        let memory = match info.kind {
            ValueKind::AllocatedBytes => "allocated bytes",
            ValueKind::AllocatedObjects => "allocated objects",
            ValueKind::LiveBytes => "live bytes",
            ValueKind::LiveObjects => "live objects",
            _ => "",
        };
        if !memory.is_empty() {
            write!(out, ",\"memory\":\"{memory}\"")?;
        }
        let stands = match (info.name.as_str(), &info.kind) {
            ("lock", ValueKind::BlockedTime) => "waiters",
            ("owners", ValueKind::BlockedTime) => "owners",
            _ => "",
        };
        if !stands.is_empty() {
            write!(out, ",\"stands\":\"{stands}\"")?;
        }
        write!(out, ",\"base\":{},\"groups\":", view.has_base)?;
        json::list(out, &view.groups, |out, group| {
            write!(out, "{{\"name\":")?;
            text(out, &group.name)?;
            write!(out, ",\"total\":{},\"values\":\"{}\"", group.total(), sparse(&group.values))?;
            write!(out, ",\"base\":\"{}\"}}", sparse(&group.base))
        })?;
        write!(out, "}}")
    })?;
    write!(out, ",\"notes\":")?;
    json::list(out, notes, |out, note| text(out, &note))?;
    write!(out, ",\"facts\":")?;
    json::list(out, facts(profile), |out, (key, value)| {
        json::list(out, [key, &value], |out, part| text(out, part))
    })?;
    write!(out, ",\"opens\":")?;
    text(out, opens.state)?;
    write!(out, ",\"zoom\":")?;
    json::list(out, opens.zoom, |out, name| text(out, name))?;
    write!(out, "}}</script>\n<script>\n")?;
    // One file has no modules.
    for line in PROGRAMS.iter().flat_map(|program| program.lines()) {
        if !line.starts_with("import ") && !line.trim_start().starts_with("//") {
            writeln!(out, "{}", line.strip_prefix("export ").unwrap_or(line))?;
        }
    }
    write!(out, "</script>\n</body>\n</html>\n")?;
    Ok(())
}

/// All series that have rows, the wanted one first, with the baseline's values where it has the
/// same.
fn views<'p>(
    profile: &'p Profile,
    first: SeriesId,
    baseline: Option<&Profile>,
    labels: &mut Labels,
    merged: &mut Merged,
) -> Vec<View<'p>> {
    let mut all: Vec<(SeriesId, &Series)> =
        profile.all_series().filter(|(_, series)| !series.is_empty()).collect();
    all.sort_by_key(|(id, _)| (*id != first, *id));
    let series: Vec<&Series> = all.into_iter().map(|(_, series)| series).collect();
    let of_frames = labels.of_frames(profile);
    let node_of = merged.add(profile, &of_frames, &merged::used(profile, series.iter().copied()));
    let base = baseline.map(|baseline| {
        let partners: Vec<Option<&Series>> =
            series.iter().map(|series| partner(series, baseline)).collect();
        let of_frames = labels.of_frames(baseline);
        let used = merged::used(baseline, partners.iter().copied().flatten());
        (baseline, merged.add(baseline, &of_frames, &used), partners)
    });
    let mut views = Vec::new();
    for (number, series) in series.into_iter().enumerate() {
        let mut groups: HashMap<String, Group> = HashMap::new();
        add(profile, series, &node_of, &mut groups, |group| &mut group.values);
        let mut has_base = false;
        if let Some((baseline, node_of, partners)) = &base
            && let Some(partner) = partners[number]
        {
            add(baseline, partner, node_of, &mut groups, |group| &mut group.base);
            has_base = true;
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by(|a, b| b.total().cmp(&a.total()).then_with(|| a.name.cmp(&b.name)));
        let rest = groups.split_off(groups.len().min(THREAD_BUDGET));
        if !rest.is_empty() {
            let mut other =
                Group { name: format!("[{} other threads]", rest.len()), ..Group::default() };
            for group in rest {
                group
                    .values
                    .into_iter()
                    .for_each(|(k, v)| *other.values.entry(k).or_default() += v);
                group.base.into_iter().for_each(|(k, v)| *other.base.entry(k).or_default() += v);
            }
            groups.push(other);
        }
        views.push(View { series, groups, has_base });
    }
    views
}

/// The series of the baseline that measures the same: of the same name, or else of the same kind.
fn partner<'b>(series: &Series, baseline: &'b Profile) -> Option<&'b Series> {
    let filled = || baseline.all_series().map(|(_, other)| other).filter(|other| !other.is_empty());
    let (info, name) = (series.info(), series_name(series.info()));
    filled().find(|other| series_name(other.info()) == name).or_else(|| {
        filled()
            .find(|other| other.info().kind == info.kind && other.info().estimate == info.estimate)
    })
}

/// Adds a series up by thread name and node. What is not above zero has no width; writers get no
/// values below it (`settled`).
fn add(
    profile: &Profile,
    series: &Series,
    node_of: &[ContextId],
    groups: &mut HashMap<String, Group>,
    side: impl Fn(&mut Group) -> &mut HashMap<ContextId, i64>,
) {
    for (thread, node, value) in merged::sums(series, node_of) {
        let name = profile.thread_name(thread);
        let group = groups
            .entry(name)
            .or_insert_with_key(|name| Group { name: name.clone(), ..Group::default() });
        if value > 0 {
            let sum = side(group).entry(node).or_default();
            *sum = sum.saturating_add(value);
        }
    }
}

/// Cuts the tree down to a budget of nodes, and says how many went. A node stays for its share in
/// whichever thread it matters most.
fn prune(budget: usize, merged: &mut Merged, labels: &mut Labels, views: &mut [View<'_>]) -> usize {
    let count = merged.nodes.len();
    if count <= budget {
        return 0;
    }
    let mut shares = vec![0_f32; count];
    let mut totals = vec![0_i64; count];
    for values in views.iter().flat_map(|view| &view.groups).flat_map(|g| [&g.values, &g.base]) {
        totals.fill(0);
        for (node, value) in values {
            totals[node.index()] = *value;
        }
        for (id, parent, _) in merged.nodes.iter().rev() {
            totals[parent.index()] = totals[parent.index()].saturating_add(totals[id.index()]);
        }
        let whole = totals[0].max(1) as f32;
        for (share, total) in shares.iter_mut().zip(&totals) {
            *share = share.max(*total as f32 / whole);
        }
    }
    let mut order = shares.clone();
    let (_, least, _) = order.select_nth_unstable_by(budget, |a, b| b.total_cmp(a));
    let least = *least;
    // A parent's share is never below its child's, so what stays is a tree.
    let keeps = |node: ContextId| node == ContextId::ROOT || shares[node.index()] > least;
    let special = Label { text: "[pruned]".to_owned(), kind: MethodKind::Special };
    let special = FrameId::new(labels.intern(special));
    let mut kept = Merged::default();
    // Where each node went: itself, or the `[pruned]` of the nearest ancestor that stayed.
    let mut place = vec![ContextId::ROOT; count];
    let mut gone = 0;
    for (id, parent, label) in merged.nodes.iter() {
        place[id.index()] = match (keeps(id), keeps(parent)) {
            (true, _) => kept.nodes.child(place[parent.index()], label),
            (false, true) => kept.nodes.child(place[parent.index()], special),
            (false, false) => place[parent.index()],
        };
        gone += usize::from(!keeps(id));
    }
    for group in views.iter_mut().flat_map(|view| &mut view.groups) {
        for values in [&mut group.values, &mut group.base] {
            let mut moved = HashMap::new();
            for (node, value) in values.drain() {
                *moved.entry(place[node.index()]).or_default() += value;
            }
            *values = moved;
        }
    }
    *merged = kept;
    gone
}

fn kind_digit(kind: MethodKind) -> char {
    match kind {
        MethodKind::Java => '0',
        MethodKind::Native => '1',
        MethodKind::Kernel => '2',
        MethodKind::Class => '3',
        MethodKind::Special => '4',
    }
}

/// Values by node: the distance to the node before, and the value.
fn sparse(values: &HashMap<ContextId, i64>) -> String {
    let mut rows: Vec<_> = values.iter().collect();
    rows.sort_unstable();
    let mut numbers = Numbers::default();
    let mut last = 0;
    for (node, value) in rows {
        numbers.push(u64::from(node.raw() - last));
        numbers.push(u64::try_from(*value).unwrap_or(0));
        last = node.raw();
    }
    numbers.base64()
}

/// What a reader should know about the figures.
fn notes(profile: &Profile) -> Vec<String> {
    let losses = profile.run.losses.iter();
    losses
        .map(|loss| format!("{} {} {}: {}", loss.count, loss.name, loss.kind.name(), loss.reason))
        .collect()
}

fn facts(profile: &Profile) -> Vec<(&'static str, String)> {
    let run = &profile.run;
    let seconds = run.duration as f64 / 1e9;
    let all = [
        ("command", run.command_line.join(" ")),
        ("JDK", run.jdk.clone()),
        ("VM", run.vm.clone()),
        ("host", run.host.clone()),
        ("system", run.os.clone()),
        ("measured by", run.tool.clone()),
        ("measured for", if run.duration > 0 { format!("{seconds:.1} s") } else { String::new() }),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// A JSON text that cannot end the script element that it stands in.
fn text(out: &mut dyn Write, text: &str) -> std::io::Result<()> {
    let mut quoted = Vec::new();
    json::text(&mut quoted, text)?;
    for part in quoted.split_inclusive(|byte| *byte == b'<') {
        match part.strip_suffix(b"<") {
            Some(rest) => {
                out.write_all(rest)?;
                out.write_all(b"\\u003c")?;
            }
            None => out.write_all(part)?,
        }
    }
    Ok(())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Numbers of seven bits per byte, lowest first.
#[derive(Default)]
struct Numbers(Vec<u8>);

impl Numbers {
    fn push(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn base64(&self) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::with_capacity(self.0.len().div_ceil(3) * 4);
        for chunk in self.0.chunks(3) {
            let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
                << (8 * (3 - chunk.len()));
            for place in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
                out.push(if place > chunk.len() { '=' } else { char::from(digit) });
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_all_lengths() {
        let check = |bytes: &[u8], text| assert_eq!(Numbers(bytes.to_vec()).base64(), text);
        check(b"", "");
        check(b"f", "Zg==");
        check(b"fo", "Zm8=");
        check(b"foo", "Zm9v");
        check(&[0xff, 0xfe, 0xfd, 0xfc], "//79/A==");
    }

    #[test]
    fn names_cannot_end_the_script() {
        let mut out = Vec::new();
        text(&mut out, "</script><!--\"").unwrap();
        assert_eq!(out, br#""\u003c/script>\u003c!--\"""#);
    }

    #[test]
    fn pruning_keeps_the_totals_and_the_largest() {
        let stacks: String =
            (0..3000).map(|n| format!("a.B.c;x.Y.m{n};x.Y.k{n} {}\n", n + 1)).collect();
        let profile = crate::open_bytes(stacks.as_bytes()).unwrap();
        let mut labels = Labels::default();
        let mut merged = Merged::default();
        let mut views = views(&profile, SeriesId::new(0), None, &mut labels, &mut merged);
        let total = views[0].groups[0].total();
        let gone = prune(1000, &mut merged, &mut labels, &mut views);
        assert!(gone > 4000 && merged.nodes.len() <= 1002, "{gone} {}", merged.nodes.len());
        assert_eq!(views[0].groups[0].total(), total);
        let kept = |text: &str| {
            let label = labels.rows.iter().position(|label| label.text == text);
            merged.nodes.iter().any(|(_, _, frame)| Some(frame.index()) == label)
        };
        assert!(kept("x.Y.k2999") && kept("[pruned]") && !kept("x.Y.k0"));
    }
}
