//! speedscope's own format: one profile per series and thread, in the order of time where there is
//! one.

use crate::by_thread::{self, Sample};
use crate::error::WriteError;
use crate::json;
use crate::merged::{self, Labels, Merged};
use crate::select::series_name;
use std::io::Write;
use tare_profile::{Profile, Series, SeriesId, TimeAxis, Unit};

/// Threads of one series that get a profile of their own. A program with a million virtual threads
/// has a million rows in a menu otherwise.
const MAX_THREADS: usize = 200;

pub fn write(
    profile: &Profile,
    first: SeriesId,
    title: &str,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let mut all: Vec<(SeriesId, &Series)> =
        profile.all_series().filter(|(_, series)| !series.is_empty()).collect();
    all.sort_by_key(|(id, _)| (*id != first, *id));
    let mut labels = Labels::default();
    let of_frames = labels.of_frames(profile);
    let mut merged = Merged::default();
    let used = merged::used(profile, all.iter().map(|(_, series)| *series));
    let node_of = merged.add(profile, &of_frames, &used);

    write!(out, "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",")?;
    write!(out, "\"exporter\":\"tare {}\",\"name\":", env!("CARGO_PKG_VERSION"))?;
    json::text(out, title)?;
    write!(out, ",\"activeProfileIndex\":0,\"shared\":{{\"frames\":")?;
    json::list(out, &labels.rows, |out, label| {
        write!(out, "{{\"name\":")?;
        json::text(out, &label.text)?;
        write!(out, "}}")
    })?;
    write!(out, "}},\"profiles\":[")?;
    let mut separator = "";
    for (_, series) in all {
        for (name, mut samples) in threads(profile, series) {
            for sample in &mut samples {
                sample.context = node_of[sample.context.index()];
            }
            // Runs of the same stack are one bar.
            samples.dedup_by(|next, kept| {
                let same = next.context == kept.context;
                if same {
                    kept.value = kept.value.saturating_add(next.value);
                }
                same
            });
            write!(out, "{separator}")?;
            separator = ",";
            write_profile(&name, series, &samples, &merged, out)?;
        }
    }
    write!(out, "]}}")?;
    Ok(())
}

/// The threads of a series with their names; many small ones share one.
fn threads(profile: &Profile, series: &Series) -> Vec<(String, Vec<Sample>)> {
    let name = series_name(series.info());
    let mut threads = by_thread::split(series);
    let rest = threads.split_off(threads.len().min(MAX_THREADS));
    let mut out: Vec<_> = threads
        .into_iter()
        .map(|thread| (format!("{} · {name}", profile.thread_name(thread.thread)), thread.samples))
        .collect();
    if !rest.is_empty() {
        let title = format!("{} other threads · {name}", rest.len());
        let mut samples: Vec<Sample> = rest.into_iter().flat_map(|thread| thread.samples).collect();
        samples.sort_by_key(|sample| (sample.time, sample.context));
        out.push((title, samples));
    }
    out
}

fn write_profile(
    name: &str,
    series: &Series,
    samples: &[Sample],
    merged: &Merged,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let unit = match series.info().kind.unit() {
        Unit::Count => "none",
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
    };
    let total = samples.iter().fold(0_i64, |sum, sample| sum.saturating_add(sample.value));
    // An order that is not one of time would look like one in the first of its views.
    let note = if series.info().time == TimeAxis::Exact { "" } else { " (no times)" };
    write!(out, "{{\"type\":\"sampled\",\"name\":")?;
    json::text(out, &format!("{name}{note}"))?;
    write!(out, ",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{total},\"samples\":")?;
    let mut path = Vec::new();
    json::list(out, samples, |out, sample| {
        merged::path(&merged.nodes, sample.context, &mut path);
        json::list(out, &path, |out, label| write!(out, "{label}"))
    })?;
    write!(out, ",")?;
    json::column(out, "weights", samples.iter().map(|sample| sample.value))?;
    write!(out, "}}")?;
    Ok(())
}
