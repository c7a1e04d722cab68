//! The report as one JSON object. A promise to scripts: fields are added, never renamed.

use super::{Report, labels_like};
use crate::term;
use anyhow::Result;
use serde_json::{Map, Value, json};
use tare_analysis::{
    Bounds, Collections, Drawn, FindingKind, NodeId, TargetError, Tree, neighbours,
};
use tare_profile::facts::{Datum, Fact, FactRow, Facts};
use tare_profile::{Estimate, RunInfo, SeriesInfo, Unit};

/// What is told beside trees and lists of methods and threads.
pub fn beside(report: &Report<'_>) -> Map<String, Value> {
    let tree = &report.tree;
    let mut root = Map::new();
    root.insert("run".into(), run(&report.profile.run));
    let mut metric = metric(report.info());
    if let Some(error) = TargetError::of(report.profile, report.info()) {
        let ([least, most], typical) = (error.too_low, error.typical);
        metric["too_low_by_factor"] = json!({ "least": least, "most": most, "typical": typical });
    }
    root.insert("metric".into(), metric);
    root.insert("total".into(), tree.sum(0).into());
    let findings = report.findings.iter().map(|finding| {
        let kind = match finding.kind {
            FindingKind::Dominates => "dominates",
            FindingKind::Lost => "lost",
            FindingKind::Trust => "trust",
        };
        json!({ "kind": kind, "text": finding.text })
    });
    root.insert("findings".into(), findings.collect());
    if let Some(Collections { count, total, longest }) = Collections::of(report.profile) {
        let sum = json!({ "count": count, "total_ns": total, "longest_ns": longest });
        root.insert("collections".into(), sum);
    }
    if let Some(pauses) = &report.pauses {
        root.insert("pauses".into(), super::pauses::json(pauses));
    }
    for (key, value) in super::comings::json(report).into_iter().flatten() {
        root.insert(key.into(), value);
    }
    root.insert("grouped_by".into(), report.args.view.by().name().into());
    if let Some(memory) = &report.memory {
        root.insert("memory".into(), super::sites::json(memory));
    }
    if let Some(locks) = &report.locks {
        root.insert("locks".into(), super::locks::json(locks));
    }
    if let Some(classes) = &report.classes {
        root.insert("classes".into(), super::classes::json(classes));
    }
    if let Some(refs) = &report.jni_refs {
        root.insert("jni_refs".into(), super::jni_refs::json(refs));
    }
    if let Some(climb) = &report.climb {
        root.insert("climb".into(), super::climb::json(report.profile, climb));
    }
    if !report.slowest.is_empty() {
        let slowest = super::slowest::json(report.profile, &report.slowest);
        root.insert("slowest".into(), slowest);
    }
    if !report.lengths.is_empty() {
        let lengths = super::lengths::json(report.profile, &report.lengths);
        root.insert("call_lengths".into(), lengths);
    }
    root.insert("regions".into(), super::regions::json(report));
    root
}

pub fn print(report: &Report<'_>) -> Result<()> {
    let tree = &report.tree;
    let mut root = beside(report);
    let hot = report.hot.iter().map(|hot| {
        let mut row = json!({
            "name": tree.label(hot.label).text,
            "self": hot.own[0],
            "total": hot.total[0],
            "self_share": tree.share(hot.own[0]),
            "total_share": tree.share(hot.total[0]),
        });
        if tree.label(hot.label).is_class() {
            row["is_class"] = true.into();
        }
        if let Some(calls) = hot.own.get(1) {
            row["invocations"] = (*calls).into();
        }
        if let Some(bounds) = report.bounds {
            for (name, of) in [("self", &hot.own), ("total", &hot.total)] {
                add_bounds(&mut row, name, bounds, |metric| of[metric]);
            }
        }
        if let Some(drawn) = report.drawn {
            row["self_plus_minus"] = Drawn::half(hot.own[drawn.own]).into();
            row["total_plus_minus"] = Drawn::half(hot.total[drawn.total]).into();
        }
        row
    });
    root.insert("methods".into(), hot.collect());
    let threads = report.threads.iter().map(|share| {
        let thread = report.profile.threads.get(share.thread);
        json!({
            "name": report.profile.thread_name(share.thread),
            "java_id": thread.java_id,
            "os_id": thread.os_id,
            "value": share.value,
            "top": share.top.as_ref().map(|(label, own)| json!({ "name": label.text, "self": own })),
        })
    });
    root.insert("threads".into(), threads.collect());
    if let Some(text) = &report.args.method {
        root.insert("around".into(), around(report, text)?);
    }
    root.insert(
        "tree".into(),
        nodes(&report.shown_tree(tree, report.args.view.min_share.unwrap_or(0.0)), report.bounds),
    );
    term::json(&Value::Object(root))
}

/// Bounds are promised of samples only. What the probes' calibration leaves open is a range in
/// which the truth need not be, and has a name that says so.
fn add_bounds(row: &mut Value, name: &str, bounds: Bounds, of: impl Fn(usize) -> i64) {
    let (lower, upper) = bounds.interval(&of);
    if bounds.joined.is_some() {
        row[format!("{name}_lower")] = lower.into();
        row[format!("{name}_upper")] = upper.into();
    } else {
        row[format!("{name}_calibration_range")] = json!([lower, upper]);
    }
    row[format!("{name}_measured")] = of(bounds.measured).into();
}

/// Flat, with the numbers of parents: a deep stack must not overflow anybody's parser.
fn nodes(tree: &Tree, bounds: Option<Bounds>) -> Value {
    let nodes = tree.nodes().map(|node| {
        let mut row = json!({
            "parent": tree.parent(node).map(NodeId::index),
            "name": tree.label_of(node).text,
            "self": tree.own(0, node),
            "total": tree.total(0, node),
        });
        if tree.metrics() > 1 {
            row["invocations"] = tree.own(1, node).into();
        }
        if let Some(bounds) = bounds {
            add_bounds(&mut row, "self", bounds, |metric| tree.own(metric, node));
        }
        if tree.folded(node) > 0 {
            row["folded"] = tree.folded(node).into();
        }
        row
    });
    nodes.collect()
}

fn around(report: &Report<'_>, text: &str) -> Result<Value> {
    let tree = &report.tree;
    let labels = labels_like(tree, &report.hot, text)?;
    let methods = labels.into_iter().map(|label| {
        let around = neighbours(tree, label);
        let list = |list: &[(tare_analysis::LabelId, i64)]| {
            let rows = list.iter();
            let rows =
                rows.map(|(l, value)| json!({ "name": tree.label(*l).text, "total": value }));
            rows.collect::<Value>()
        };
        json!({
            "name": tree.label(label).text,
            "self": around.own,
            "total": around.total,
            "callers": list(&around.callers),
            "callees": list(&around.callees),
        })
    });
    Ok(methods.collect())
}

pub fn run(run: &RunInfo) -> Value {
    let losses = run.losses.iter().map(|loss| {
        let kind = loss.kind.name();
        json!({ "kind": kind, "name": loss.name, "count": loss.count, "reason": loss.reason })
    });
    let options: Map<String, Value> =
        run.options.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    json!({
        "tool": run.tool,
        "command_line": run.command_line,
        "main_class": run.main_class,
        "pid": run.pid,
        "jdk": run.jdk,
        "vm": run.vm,
        "flags": run.flags,
        "host": run.host,
        "os": run.os,
        "cpus": run.cpus,
        "options": options,
        "facts": facts(&run.facts),
        "started_unix_ns": run.started,
        "duration_ns": run.duration,
        "losses": losses.collect::<Value>(),
    })
}

/// Durations are in nanoseconds. Tables are lists of objects.
fn facts(facts: &Facts) -> Value {
    let value = |datum: &Datum| match datum {
        Datum::Integer(value, _) => json!(value),
        Datum::Real(value) => json!(value),
        Datum::Text(text) => json!(text),
    };
    let object = |row: &FactRow| -> Value {
        row.iter().map(|(field, datum)| (field.clone(), value(datum))).collect()
    };
    let facts = facts.iter().map(|(key, fact)| {
        let value = match fact {
            Fact::One(datum) => value(datum),
            Fact::Rows(rows) => rows.iter().map(object).collect(),
        };
        (key.to_owned(), value)
    });
    facts.collect()
}

pub fn metric(info: &SeriesInfo) -> Value {
    let unit = match info.kind.unit() {
        Unit::Count => "count",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
    };
    let estimate = match info.estimate {
        Estimate::Measured => "measured",
        Estimate::Compensated => "compensated",
        Estimate::Lower => "lower",
        Estimate::Upper => "upper",
    };
    json!({
        "name": info.name,
        "kind": info.kind.name(),
        "unit": unit,
        "estimate": estimate,
        "period": info.period,
    })
}
