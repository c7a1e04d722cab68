//! One object: what is in it, who refers to it, and why it is still there.

use super::Asked;
use super::names::{by_text, bytes, find, number, object, object_json};
use super::suspects::{path_json, print_path};
use crate::term::{self, BOLD, DIM, plain};
use anyhow::Result;
use serde_json::{Value as Json, json};
use std::io::Write;
use tare_heapdump::{FieldValue, Inside, Node, Value};

/// Elements of an array, and referrers, that are shown.
const ELEMENTS: u32 = 20;
const REFERRERS: usize = 10;

pub fn run(asked: &Asked<'_>, text: &str) -> Result<()> {
    let heap = asked.heap;
    let node = find(asked, text)?;
    let most = asked.args.limit.map_or(ELEMENTS, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let inside = heap.inside(node, 0, most)?;
    let referrers = heap.referrers(node);
    let path = heap.path(node)?;
    if asked.args.json {
        let mut all = object_json(heap, node)?;
        all["reachable"] = format!("{:?}", heap.level(node)).to_lowercase().into();
        all["inside"] = inside_json(asked, &inside)?;
        let of = |from: &Node| -> Result<Json> {
            let mut value = object_json(heap, *from)?;
            value["by"] = by_text(&heap.how(*from, node)?).into();
            Ok(value)
        };
        let shown = referrers.iter().take(asked.rows()).map(of);
        all["referrers"] = shown.collect::<Result<Vec<Json>>>()?.into();
        all["path"] = path.map(|path| path_json(heap, &path)).transpose()?.into();
        return term::json(&all);
    }
    let mut out = Vec::new();
    writeln!(out, "{BOLD}{}{BOLD:#}", object(heap, node, asked.width)?)?;
    let (own, retained) = (bytes(heap.size(node)), bytes(heap.retained(node)));
    let level = heap.level(node).name();
    writeln!(out, "  {own} itself, {retained} retained, {level} reachable")?;
    print_inside(asked, &mut out, &inside)?;
    if !referrers.is_empty() {
        writeln!(out, "\n{BOLD}Who refers to it{BOLD:#}")?;
    }
    for from in referrers.iter().take(REFERRERS) {
        let by = by_text(&heap.how(*from, node)?);
        let name = object(heap, *from, asked.width.saturating_sub(by.chars().count() + 4))?;
        writeln!(out, "  {name} {DIM}{}{DIM:#}", plain(&by))?;
    }
    if referrers.len() > REFERRERS {
        let more = number((referrers.len() - REFERRERS) as u64);
        writeln!(out, "  {DIM}{more} more{DIM:#}")?;
    }
    if let Some(path) = path {
        writeln!(out, "\n{BOLD}Why it is still there{BOLD:#}")?;
        print_path(asked, &mut out, &path, 2)?;
    }
    term::show(&out, false)
}

fn print_inside(asked: &Asked<'_>, out: &mut impl Write, inside: &Inside) -> Result<()> {
    match inside {
        Inside::Fields(fields) => {
            let longest = fields.iter().map(|field| field.name.chars().count()).max();
            let width = longest.unwrap_or(0).min(32);
            for field in fields {
                let kind = if field.is_static { "static " } else { "" };
                let value = value_text(asked, &field.value, asked.width.saturating_sub(width + 6))?;
                writeln!(out, "  {DIM}{kind}{:<width$}{DIM:#}  {value}", plain(&field.name))?;
            }
        }
        Inside::Elements(length, values) => {
            for (at, value) in values.iter().enumerate() {
                let value = value_text(asked, value, asked.width.saturating_sub(14))?;
                writeln!(out, "  {DIM}[{at}]{DIM:#}  {value}")?;
            }
            if (values.len() as u64) < u64::from(*length) {
                let more = number(u64::from(*length) - values.len() as u64);
                writeln!(out, "  {DIM}{more} more elements; -n shows more{DIM:#}")?;
            }
        }
    }
    Ok(())
}

fn value_text(asked: &Asked<'_>, value: &Value, width: usize) -> Result<String> {
    Ok(match value {
        Value::Object(node) => {
            let retained = bytes(asked.heap.retained(*node));
            format!("{}, {retained}", object(asked.heap, *node, width.saturating_sub(10))?)
        }
        value => value.to_string(),
    })
}

fn inside_json(asked: &Asked<'_>, inside: &Inside) -> Result<Json> {
    let value = |value: &Value| -> Result<Json> {
        Ok(match value {
            Value::Null => Json::Null,
            Value::Object(node) => object_json(asked.heap, *node)?,
            Value::Boolean(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Double(value) => (*value).into(),
            Value::Char(_) | Value::Missing(_) => value.to_string().into(),
            value => value.int().into(),
        })
    };
    Ok(match inside {
        Inside::Fields(fields) => {
            let field = |field: &FieldValue| -> Result<Json> {
                Ok(json!({
                    "name": field.name,
                    "declared_by": asked.heap.classes().get(field.owner).name,
                    "static": field.is_static,
                    "type": field.kind.name(),
                    "value": value(&field.value)?,
                }))
            };
            json!({ "fields": fields.iter().map(field).collect::<Result<Vec<Json>>>()? })
        }
        Inside::Elements(length, values) => {
            let values: Vec<Json> = values.iter().map(value).collect::<Result<_>>()?;
            json!({ "length": length, "elements": values })
        }
    })
}
