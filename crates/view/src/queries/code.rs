//! The source of a method, or its bytecode, with figures beside the lines.

use super::{Question, no_method};
use crate::source::{CodeOf, Problem};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tare_profile::{Method, MethodKind, Profile};

/// Lines of one answer, and those before the method.
const LINES: usize = 1500;
const BEFORE: usize = 60;
const LONGEST_LINE: usize = 400;

pub fn answer(question: &Question<'_>) -> Result<Value, Problem> {
    let wanted = question.get("method").ok_or_else(|| Problem::new(400, "no method is named"))?;
    // The method of a name is the same however lines are grouped.
    let named =
        question.cache.prepared(question.source, question.epoch, &question.view.without("by"))?;
    let label = named.graph.label(wanted).ok_or_else(|| no_method(wanted))?;
    let profile = &named.loaded.profile;
    let method = named.graph.tree.label(label).method.map(|id| profile.methods.get(id));
    let method = method.filter(|method| method.kind == MethodKind::Java).ok_or_else(|| {
        Problem::new(404, format!("{wanted} is no method of Java, which alone have lines here"))
    })?;
    let asked = CodeOf {
        class: profile.strings.get(method.class).to_owned(),
        file: profile.strings.get(method.file).to_owned(),
        name: profile.strings.get(method.name).to_owned(),
        descriptor: profile.strings.get(method.descriptor).to_owned(),
    };
    let figures = figures(question, &asked)?;
    let own_lines: Vec<u32> = figures.iter().filter(|(_, f)| f.is_own).map(|(n, _)| *n).collect();
    let code = question.source.code(&asked)?;
    let begins = code.begins.or_else(|| {
        let line = method.line.or_else(|| own_lines.first().copied())?;
        code.lines.iter().position(|(number, _)| *number == Some(line))
    });
    let begins = begins.unwrap_or(0);
    let all = code.lines.len();
    let first = question.number("first", begins.saturating_sub(BEFORE), all)?;
    let lines = code.lines.iter().skip(first).take(LINES).map(|(number, text)| {
        let found = number.and_then(|number| figures.get(&number));
        let text: String = text.chars().take(LONGEST_LINE).collect();
        json!({
            "n": number,
            "text": text,
            "self": found.map(|figure| figure.own),
            "total": found.map(|figure| figure.total),
            "is_own": found.is_some_and(|figure| figure.is_own),
        })
    });
    Ok(json!({
        "epoch": question.epoch,
        "unit": question.unit(&named),
        "whole": named.graph.tree.sum(0),
        "name": wanted,
        "class": asked.class,
        "file": asked.file,
        "origin": code.origin,
        "is_source": code.is_source,
        "begins": begins,
        "first": first,
        "all": all,
        "lines": lines.collect::<Value>(),
        "unlined": figures.is_empty(),
    }))
}

/// What a line has.
#[derive(Default)]
struct Figure {
    own: i64,
    total: i64,
    /// It is of the method that is asked for, and not of another one of the file.
    is_own: bool,
}

/// Figures of all lines of a file, by their numbers.
fn figures(question: &Question<'_>, asked: &CodeOf) -> Result<BTreeMap<u32, Figure>, Problem> {
    let view = question.view.with("by", "line");
    let prepared = question.cache.prepared(question.source, question.epoch, &view)?;
    let (profile, tree) = (&prepared.loaded.profile, &prepared.graph.tree);
    let mut figures = BTreeMap::<u32, Figure>::new();
    for hot in prepared.hot() {
        let label = tree.label(hot.label);
        let Some((line, id)) = label.line.zip(label.method) else { continue };
        let method = profile.methods.get(id);
        if !is_of_file(profile, method, asked) {
            continue;
        }
        let figure = figures.entry(line).or_default();
        figure.own += hot.own[0];
        // A lambda has a method of its own on the line of the method that it is in, and mostly is
        // called from there.
        figure.total = figure.total.max(hot.total[0]);
        let text = |id| profile.strings.get(id);
        figure.is_own |= text(method.class) == asked.class && text(method.name) == asked.name;
    }
    Ok(figures)
}

fn is_of_file(profile: &Profile, method: &Method, asked: &CodeOf) -> bool {
    let file = profile.strings.get(method.file);
    method.kind == MethodKind::Java
        && file == asked.file
        && outer(profile.strings.get(method.class)) == outer(&asked.class)
}

/// The class whose file it is, as a rule: nested ones have a dollar sign.
fn outer(class: &str) -> &str {
    let simple = class.rfind('.').map_or(0, |dot| dot + 1);
    class[simple..].find('$').filter(|at| *at > 0).map_or(class, |at| &class[..simple + at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_classes_are_in_the_file_of_the_outer_one() {
        assert_eq!(outer("a.b.C$D$1"), "a.b.C");
        assert_eq!(outer("a.b.C"), "a.b.C");
        assert_eq!(outer("C$D"), "C");
        assert_eq!(outer("a.$C"), "a.$C");
    }
}
