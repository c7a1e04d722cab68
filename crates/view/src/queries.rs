//! The questions of the page, and their answers. API.md says what each has.

mod code;
mod lists;
mod timeline;

use crate::flame::{self, Window};
use crate::graph::{Asked, Graph};
use crate::http::{Answer, Request, pairs};
use crate::prepared::{Cache, Compared, Prepared, Side};
use crate::source::{Against, Problem, Shown, Source, Wish};
use crate::view::View;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::sync::Arc;
use tare_analysis::{Diff, Hot, NodeId, Noise};
use tare_profile::{SeriesInfo, Unit};

/// A question: its parameters, and the view among them.
pub struct Question<'a> {
    pub source: &'a dyn Source,
    pub cache: &'a Cache,
    pub epoch: u64,
    pub view: View,
    parameters: Vec<(String, String)>,
}

/// The sections of a report that have a path of their own, and how to record what they tell.
pub const SECTIONS: [&str; 7] =
    ["locks", "memory", "classes", "pauses", "jni_refs", "regions", "climb"];

pub fn answer(source: &dyn Source, cache: &Cache, request: &Request) -> Answer {
    match asked(source, cache, request) {
        Ok(answer) => answer,
        Err(Problem { status, text, remedy }) => Answer::error(status, &text, remedy.as_deref()),
    }
}

/// What was posted: something that is to be done in the JVM.
pub fn posted(source: &dyn Source, request: &Request) -> Answer {
    let done = match request.path.as_str() {
        "/api/live" => Wish::of(&request.body).and_then(|wish| source.wish(&wish)),
        _ => Err(Problem::new(405, "nothing is posted to this path")),
    };
    match done {
        Ok(()) => Answer::json(&live(source)),
        Err(Problem { status, text, remedy }) => Answer::error(status, &text, remedy.as_deref()),
    }
}

fn live(source: &dyn Source) -> Value {
    json!({ "parts": source.parts(), "exactly": source.exactly() })
}

fn asked(source: &dyn Source, cache: &Cache, request: &Request) -> Result<Answer, Problem> {
    let parameters = pairs(&request.query).map_err(|refused| Problem::new(refused.0, refused.1))?;
    let view = View::of(&parameters);
    let epoch = source.state().epoch;
    let question = Question { source, cache, epoch, view, parameters };
    let name = request.path.strip_prefix("/api/").unwrap_or_default();
    if let Some(section) = name.strip_prefix("section/") {
        return Ok(Answer::json(&question.section(section)?));
    }
    if let Some(heap) = name.strip_prefix("heap/") {
        return Ok(Answer::json(&source.heap(heap, question.get("what"))?));
    }
    let value = match name {
        "run" => question.run()?,
        "overview" => question.overview()?,
        "timeline" => timeline::answer(&question)?,
        "flame" => return question.flame(),
        "diff" => question.diff()?,
        "diff/flame" => return question.diff_flame(),
        "node" => question.node()?,
        "tree" => lists::tree(&question)?,
        "methods" => lists::methods(&question)?,
        "around" => lists::around(&question)?,
        "threads" => lists::threads(&question)?,
        "source" => code::answer(&question)?,
        "export" => return question.export(),
        "live" => live(source),
        "exactly" => source.exact_figures()?,
        _ => return Err(Problem::new(404, format!("there is no question {name:?}"))),
    };
    Ok(Answer::json(&value))
}

impl Question<'_> {
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A number among the parameters, within bounds.
    pub fn number(&self, key: &str, otherwise: usize, most: usize) -> Result<usize, Problem> {
        let Some(text) = self.get(key) else { return Ok(otherwise.min(most)) };
        let number = text.parse::<usize>();
        number
            .map(|number| number.min(most))
            .map_err(|_| Problem::new(400, format!("{key} is a number, and not {text:?}")))
    }

    fn share(&self, key: &str, otherwise: f64) -> Result<f64, Problem> {
        let Some(text) = self.get(key) else { return Ok(otherwise) };
        let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        share
            .ok_or_else(|| Problem::new(400, format!("{key} is between 0 and 1, and not {text:?}")))
    }

    pub fn prepared(&self) -> Result<Arc<Prepared>, Problem> {
        self.cache.prepared(self.source, self.epoch, &self.view)
    }

    /// Which node is asked for.
    pub fn asked(&self) -> Result<Asked<'_>, Problem> {
        Ok(match (self.get("path"), self.get("node"), self.get("tree")) {
            (Some(path), ..) => Asked::Path(path),
            (None, Some(_), Some(tree)) => Asked::Number(self.number("node", 0, usize::MAX)?, tree),
            _ => Asked::Root,
        })
    }

    /// The tree that is asked for: the one that is named if it is still there, or half of a
    /// sandwich, or the view's.
    pub fn graph(&self) -> Result<Arc<Graph>, Problem> {
        if let Some(graph) = self.get("tree").and_then(|tree| self.cache.graph(tree)) {
            return Ok(graph);
        }
        let prepared = self.prepared()?;
        let Some(method) = self.get("method") else { return Ok(Arc::clone(&prepared.graph)) };
        let side = match self.get("side") {
            Some("callers") => Side::Callers,
            Some("callees") => Side::Callees,
            _ => return Err(Problem::new(400, "side is callers or callees")),
        };
        let label = prepared.graph.label(method).ok_or_else(|| no_method(method))?;
        self.cache.half(&prepared, self.epoch, &self.view, label, side)
    }

    fn run(&self) -> Result<Value, Problem> {
        let mut run = self.source.run()?;
        let state = self.source.state();
        run["source"] = state.kind.name().into();
        run["epoch"] = state.epoch.into();
        run["duration_ns"] = state.duration.into();
        run["sentence"] = state.sentence.into();
        run["command"] = self.source.command().into();
        run["exports"] = self.source.exports();
        run["parts"] = self.source.parts();
        Ok(run)
    }

    fn overview(&self) -> Result<Value, Problem> {
        let document = self.cache.document(self.source, self.epoch, &self.view)?;
        let prepared = self.prepared()?;
        let part = |key: &str| document.get(key).cloned().unwrap_or(Value::Null);
        Ok(json!({
            "epoch": self.epoch,
            "metric": part("metric"),
            "unit": self.unit(&prepared),
            "total": prepared.graph.tree.sum(0),
            "headline": part("headline"),
            "findings": findings(&document["findings"], &prepared, &self.view),
            "looked_for": part("looked_for"),
            "methods": lists::method_rows(&prepared, prepared.hot().iter().take(5)),
            "threads": lists::thread_rows(&prepared, 5)?,
            "collections": part("collections"),
            "losses": document["run"]["losses"],
        }))
    }

    fn section(&self, name: &str) -> Result<Value, Problem> {
        if !SECTIONS.contains(&name) {
            return Err(Problem::new(404, format!("there is no section {name:?}")));
        }
        let document = self.cache.document(self.source, self.epoch, &self.view)?;
        let section = document.get(name).filter(|section| !is_empty(section));
        let how = document["how"].get(name).filter(|_| section.is_none());
        Ok(json!({ "epoch": self.epoch, "section": section, "how": how }))
    }

    fn against(&self) -> Result<Against, Problem> {
        match self.get("against") {
            Some("file") => Ok(Against::File),
            Some(time) => Ok(Against::Time(time.to_owned())),
            None => Err(Problem::new(400, "it is not said what to compare with")),
        }
    }

    fn compared(&self) -> Result<Arc<Compared>, Problem> {
        let against = self.against()?;
        self.cache.compared(self.source, self.epoch, &self.view, against)
    }

    fn diff(&self) -> Result<Value, Problem> {
        let compared = self.compared()?;
        let diff = &compared.diff;
        let [old, new] = diff.sums;
        let changes = diff.methods.iter().filter(|change| change.own != [0; 2]);
        let rows = changes.take(lists::MOST).map(|change| {
            let doubt = match diff.may_be_chance(change.own, change.doubt.own) {
                Some(true) => Some("within the samples' noise"),
                Some(false) => None,
                None => Some("another run of the same may differ as much"),
            };
            json!({
                "name": change.label,
                "old": change.own[0],
                "new": change.own[1],
                "change": diff.delta(change.own).round() as i64,
                "doubt": doubt,
            })
        });
        let growth = match old {
            0 => "there was nothing before".to_owned(),
            _ => format!("{:+.1} %", 100.0 * (new - old) as f64 / old as f64),
        };
        let is_chance = diff.noise == Noise::Samples && ((new - old) as f64).abs() <= diff.doubt;
        let growth = growth + if is_chance { ", which may be chance" } else { "" };
        let alike =
            format!("{:.1} % of both is the same, context by context", 100.0 * diff.overlap);
        Ok(json!({
            "epoch": self.epoch,
            "unit": compared.unit,
            "old": old,
            "new": new,
            "growth": format!("the whole: {growth}; {alike}"),
            "changes": rows.collect::<Value>(),
        }))
    }

    fn diff_flame(&self) -> Result<Answer, Problem> {
        let compared = self.compared()?;
        let Diff { sums, scatter: [old, new], deviations, noise, .. } = &compared.diff;
        let mut head = json!({ "epoch": self.epoch, "unit": compared.unit, "wholes": sums });
        if *noise == Noise::Samples {
            head["scatter"] = json!([old, new, deviations]);
        }
        self.picture(&compared.graph, head)
    }

    fn flame(&self) -> Result<Answer, Problem> {
        let graph = self.graph()?;
        let unit = self.unit(&*self.prepared()?);
        self.picture(&graph, json!({ "epoch": self.epoch, "unit": unit }))
    }

    fn picture(&self, graph: &Graph, head: Value) -> Result<Answer, Problem> {
        let found = graph.node(&self.asked()?)?;
        let (from, to) = (self.share("from", 0.0)?, self.share("to", 1.0)?);
        if from >= to {
            return Err(Problem::new(400, "the part that is asked for ends before it begins"));
        }
        let window = Window {
            node: found.unwrap_or(NodeId::ROOT),
            found: found.is_some(),
            width: self.number("width", 1200, 100_000)?.max(1) as f64,
            from,
            to,
            rows: self.number("rows", 200, 1000)?.max(1),
            search: self.get("q").map(str::to_owned),
        };
        let body = flame::answer(graph, &window, head);
        Ok(Answer::new("application/octet-stream", body))
    }

    fn node(&self) -> Result<Value, Problem> {
        let graph = self.graph()?;
        let node = graph.node(&self.asked()?)?;
        let node = node.ok_or_else(|| Problem::new(404, "that stack is not there any more"))?;
        let prepared = self.prepared()?;
        let tree = &graph.tree;
        let label = tree.label_of(node);
        let above = graph.above(node);
        let share = |value: i64, of: i64| if of == 0 { 0.0 } else { value as f64 / of as f64 };
        let (own, total) = (tree.own(0, node), tree.total(0, node));
        let parent = above.last().map_or(total, |parent| tree.total(0, *parent));
        let profile = &prepared.loaded.profile;
        let method = label.method.map(|method| profile.methods.get(method));
        let text = |id| Some(profile.strings.get(id)).filter(|text| !text.is_empty());
        Ok(json!({
            "epoch": self.epoch,
            "tree": graph.key,
            "node": node.index(),
            "path": graph.path(node),
            "text": label.text,
            "kind": graph.kind(tree.label_id(node)).to_string(),
            "own": own,
            "total": total,
            "unit": self.unit(&prepared),
            "own_interval": prepared.interval(|metric| tree.own(metric, node)),
            "total_interval": prepared.interval(|metric| tree.total(metric, node)),
            "calls": prepared.has_calls().then(|| tree.own(1, node)),
            "share_own": tree.share(own),
            "share_total": tree.share(total),
            "share_parent": share(total, parent),
            "folded": tree.folded(node),
            "times": tree.times(node),
            "class": method.and_then(|method| text(method.class)),
            "file": method.and_then(|method| text(method.file)),
            "line": label.line,
            "children": graph.children().of(node).len(),
            "parents": above.iter().map(|node| json!({
                "node": node.index(), "path": graph.path(*node), "text": tree.label_of(*node).text,
            })).collect::<Value>(),
        }))
    }

    /// What the page shows of the view: the frame that fills the width, and what is looked for.
    fn shown(&self) -> Result<Shown, Problem> {
        let path = self.get("path").filter(|_| self.get("against").is_none());
        let found = match path {
            Some(path) => {
                let prepared = self.prepared()?;
                let graph = &prepared.graph;
                let way = graph.find(path).map(|node| graph.above(node).into_iter().chain([node]));
                let text = |node: NodeId| graph.tree.label_of(node).text.clone();
                way.map(|way| way.skip(1).map(text).collect())
            }
            None => None,
        };
        let flag = |key: &str| self.get(key).is_some();
        let mut state = if flag("flip") { "root=bottom&" } else { "" }.to_owned();
        if let Some(search) = self.get("q") {
            state += &format!("search={}", encoded(search));
        }
        let against = self.get("against").map(|_| self.against()).transpose()?;
        Ok(Shown { zoom: found.unwrap_or_default(), state, against })
    }

    fn export(&self) -> Result<Answer, Problem> {
        let format =
            self.get("format").ok_or_else(|| Problem::new(400, "no format was asked for"))?;
        let export = self.source.export(&self.view, format, &self.shown()?)?;
        let name: String = export
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
            .collect();
        let mut answer = Answer::new("application/octet-stream", export.bytes);
        answer.headers.push(format!("Content-Disposition: attachment; filename=\"{name}\""));
        Ok(answer)
    }

    pub fn unit(&self, prepared: &Prepared) -> &'static str {
        let loaded = &prepared.loaded;
        unit(loaded.profile.series(loaded.metrics[0]).info())
    }
}

pub fn unit(info: &SeriesInfo) -> &'static str {
    match info.kind.unit() {
        Unit::Count => "count",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
    }
}

pub fn no_method(name: &str) -> Problem {
    let text = format!("no method of this view is called {name:?}");
    Problem {
        remedy: Some("look at all methods, or remove a filter".to_owned()),
        ..Problem::new(404, text)
    }
}

/// Findings, with where the page shows more of each, and the options of a command that does.
fn findings(found: &Value, prepared: &Prepared, view: &View) -> Value {
    /// A sentence names what is large, and not one of millions.
    const NAMED: usize = 200;
    let tree = &prepared.graph.tree;
    let mut largest: Vec<&Hot> = prepared.hot().iter().take(NAMED).collect();
    let mut by_total: Vec<&Hot> = prepared.hot().iter().collect();
    by_total.sort_by_key(|hot| Reverse(hot.total[0]));
    largest.extend(by_total.into_iter().take(NAMED));
    let mut findings = found.as_array().cloned().unwrap_or_default();
    for finding in &mut findings {
        let text = finding["text"].as_str().unwrap_or_default().to_owned();
        let names = |name: &str| {
            let border =
                |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '.' && c != '$');
            text.match_indices(name).any(|(at, found)| {
                border(text[..at].chars().next_back())
                    && border(text[at + found.len()..].chars().next())
            })
        };
        let labels = largest.iter().map(|hot| tree.label(hot.label));
        let method = labels
            .filter(|label| !label.is_special() && names(&label.text))
            .max_by_key(|label| label.text.len());
        let event = ["gc:", "safepoint:"].iter().any(|kind| text.contains(kind));
        let (show, options) = match method {
            Some(label) => {
                let name = &label.text;
                (
                    Some(format!("/sandwich?method={}", encoded(name))),
                    Some(vec!["--method".to_owned(), name.clone()]),
                )
            }
            None if event => (Some("/timeline".to_owned()), Some(vec!["--gc".to_owned()])),
            None => (None, None),
        };
        finding["show"] = show.into();
        finding["options"] = options.map(|options| [options, view.options()].concat()).into();
    }
    findings.into()
}

/// A text as it stands in a query.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}
