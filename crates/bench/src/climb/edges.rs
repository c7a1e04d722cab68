//! Calls from one method to another, as climbs and as an exact recording tell them, and whether the
//! heaviest are the same.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// Edges that are compared.
const EDGES: usize = 10;

/// Calls by caller and callee.
pub type Edges = BTreeMap<(String, String), f64>;

/// Without what tells overloads apart.
fn bare(name: &str) -> String {
    name.split_once('(').map_or(name, |(name, _)| name).to_owned()
}

/// Calls a second into each method that had a hook, on average over the climbs in which it had one.
pub fn edges_of_climbs(climbs: &[Value]) -> Edges {
    let mut all: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for (edge, rate) in climbs.iter().flat_map(edges_of_climb) {
        all.entry(edge).or_default().push(rate);
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    all.into_iter().map(|(edge, rates)| (edge, mean(&rates))).collect()
}

/// The same of one.
fn edges_of_climb(climb: &Value) -> Edges {
    let mut edges = Edges::new();
    for method in climb["methods"].as_array().into_iter().flatten() {
        let hook = &method["hook"];
        let calls = hook["calls"].as_f64().unwrap_or(0.0);
        let rate = hook["calls_per_second"].as_f64().unwrap_or(0.0);
        if calls == 0.0 {
            continue;
        }
        for caller in method["callers"].as_array().into_iter().flatten() {
            let names = caller["method"].as_str().zip(method["method"].as_str());
            let Some((from, to)) = names else { continue };
            let by_caller = caller["calls"].as_f64().unwrap_or(0.0);
            *edges.entry((bare(from), bare(to))).or_default() += rate * by_caller / calls;
        }
    }
    edges
}

/// Calls from each method to each other, in the tree of an exact recording.
pub fn edges_of_tree(report: &Value) -> Result<Edges> {
    let nodes = report["tree"].as_array().context("a tree")?;
    let mut edges = Edges::new();
    for node in nodes {
        let parent = node["parent"].as_u64().and_then(|at| nodes.get(usize::try_from(at).ok()?));
        let names = parent.and_then(|parent| parent["name"].as_str()).zip(node["name"].as_str());
        let Some((from, to)) = names else { continue };
        let calls = node["invocations"].as_f64().unwrap_or(0.0);
        *edges.entry((bare(from), bare(to))).or_default() += calls;
    }
    Ok(edges)
}

/// How many of the climb's heaviest edges are among those of the exact recording, and of how many.
/// Of both only what both can know: methods that had a hook, and callers that were woven.
pub fn agreement(climb: &Edges, exact: &Edges) -> (usize, usize) {
    let woven = |name: &String| exact.keys().any(|(from, to)| from == name || to == name);
    let hooked = |name: &String| climb.keys().any(|(_, to)| to == name);
    let heaviest = |edges: &Edges| {
        let known = edges.iter().filter(|((from, to), _)| woven(from) && woven(to) && hooked(to));
        let mut known: Vec<_> = known.filter(|((from, to), _)| from != to).collect();
        known.sort_by(|a, b| b.1.total_cmp(a.1));
        known.into_iter().take(EDGES).map(|(edge, _)| edge.clone()).collect::<Vec<_>>()
    };
    let (ours, theirs) = (heaviest(climb), heaviest(exact));
    for (from, to) in ours.iter().filter(|edge| !theirs.contains(edge)) {
        eprintln!("  {from} to {to} is not among the heaviest of the exact recording");
    }
    (ours.iter().filter(|edge| theirs.contains(edge)).count(), ours.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edge(from: &str, to: &str) -> (String, String) {
        (from.to_owned(), to.to_owned())
    }

    #[test]
    fn edges_agree_where_both_know_the_methods() {
        let climb = json!({ "methods": [
            { "method": "a.B.leaf(I)V", "hook": { "calls": 100, "calls_per_second": 50.0 }, "callers": [
                { "method": "a.B.one()V", "calls": 70 },
                { "method": "a.B.two()V", "calls": 30 },
                { "method": "java.util.List.forEach()V", "calls": 5 },
            ] },
            { "method": "a.B.cold()V", "callers": [{ "method": "a.B.one()V", "calls": 1 }] },
        ] });
        let climb = edges_of_climbs(&[climb.clone(), climb]);
        assert_eq!(climb[&edge("a.B.one", "a.B.leaf")], 35.0);
        let tree = json!({ "tree": [
            { "parent": null, "name": "all" },
            { "parent": 0, "name": "a.B.one", "invocations": 1 },
            { "parent": 1, "name": "a.B.leaf", "invocations": 700 },
            { "parent": 0, "name": "a.B.three", "invocations": 1 },
            { "parent": 3, "name": "a.B.leaf", "invocations": 300 },
        ] });
        let exact = edges_of_tree(&tree).unwrap();
        assert_eq!(exact[&edge("a.B.one", "a.B.leaf")], 700.0);
        // Of two callers one is known to both; the JDK was not woven.
        assert_eq!(agreement(&climb, &exact), (1, 1));
    }
}
