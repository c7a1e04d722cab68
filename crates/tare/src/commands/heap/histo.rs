//! Tables of classes, loaders and packages.

use super::Asked;
use super::names::{bytes, number};
use crate::cli::HistoBy;
use crate::figures::{fit, percent};
use crate::term::{self, DIM};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use tare_heapdump::Level;
use tare_heapdump::analyses::histogram::{By, Row};

pub fn run(asked: &Asked<'_>, by: HistoBy) -> Result<()> {
    let by = match by {
        HistoBy::Class => By::Class,
        HistoBy::Loader => By::Loader,
        HistoBy::Package => By::Package,
    };
    let rows = asked.heap.histogram(by);
    if asked.args.json {
        let most = asked.args.limit.unwrap_or(rows.len());
        return term::json(&self::json(&rows[..rows.len().min(most)]));
    }
    let mut out = Vec::new();
    print(asked, &mut out, &rows, asked.rows())?;
    term::show(&out, false)
}

pub fn print(asked: &Asked<'_>, out: &mut impl Write, rows: &[Row], most: usize) -> Result<()> {
    let total = asked.heap.sum(Level::Strong).bytes.max(1);
    writeln!(out, "{DIM}  retained      bytes    share      objects  {DIM:#}")?;
    for row in rows.iter().take(most) {
        let share = percent(row.held.bytes as f64 / total as f64);
        let name = fit(&row.name, asked.width.saturating_sub(46).max(20));
        let (retained, held) = (bytes(row.retained), bytes(row.held.bytes));
        writeln!(
            out,
            "{retained:>10} {held:>10}  {share} {:>12}  {name}",
            number(row.held.objects)
        )?;
    }
    if rows.len() > most {
        let rest = number((rows.len() - most) as u64);
        writeln!(out, "{DIM}{rest} more; -n {} shows all{DIM:#}", rows.len())?;
    }
    Ok(())
}

pub fn json(rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({
            "name": row.name,
            "objects": row.held.objects,
            "bytes": row.held.bytes,
            "retained": row.retained,
            "all_objects": row.all.objects,
            "all_bytes": row.all.bytes,
        })
    };
    rows.iter().map(row).collect()
}
