//! Pages in Markdown: links lead somewhere, and prose is wrapped.
//!
//! Which commands they show is left to a test of `tare-cli`, which knows the flags.

use super::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// Pages outside docs/ that are wrapped as well.
const WRAPPED: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];

/// The longest line of prose, in characters.
const WIDTH: usize = 100;

pub fn check(sources: &[SourceFile]) -> Vec<String> {
    let all: BTreeSet<&str> = sources.iter().map(|file| file.path.as_str()).collect();
    let pages: BTreeMap<&str, String> = sources
        .iter()
        .filter(|file| file.path.ends_with(".md"))
        .map(|file| (file.path.as_str(), String::from_utf8_lossy(&file.bytes).into_owned()))
        .collect();
    let mut problems = Vec::new();
    for (path, text) in &pages {
        for link in links(text) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if target.is_empty() { (*path).to_owned() } else { beside(path, target) };
            let known = all.contains(target.as_str())
                || all.iter().any(|file| file.starts_with(&format!("{target}/")));
            let anchored = anchor.is_empty()
                || pages.get(target.as_str()).is_none_or(|page| has_anchor(page, anchor));
            if !known || !anchored {
                problems.push(format!("{path} links to {link}, which is not there"));
            }
        }
        if path.starts_with("docs/") || WRAPPED.contains(path) {
            let lines = long_lines(text);
            problems.extend(lines.map(|n| format!("{path}:{n} has more than {WIDTH} characters")));
        }
    }
    problems
}

/// What links of a page lead to, but for the web.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let ends = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    ends.filter(|link| !link.contains("://") && !link.contains(char::is_whitespace))
}

/// The path of a link, which is relative to its page.
fn beside(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            ".." => _ = parts.pop(),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Headings are linked to by their words in small letters, with dashes between.
fn has_anchor(page: &str, anchor: &str) -> bool {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| slug(line.trim_start_matches('#').trim())).any(|slug| slug == anchor)
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The numbers of lines that are too long, of what is neither a table nor code.
fn long_lines(page: &str) -> impl Iterator<Item = usize> {
    let mut in_code = false;
    (1..).zip(page.lines()).filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        // A single word, such as a method's whole name, has no place to be parted at.
        let parted = line.split_whitespace().count() > 1;
        let prose = parted && !fence && !in_code && !line.starts_with('|');
        (prose && line.chars().count() > WIDTH).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(pages: &[(&str, &str)]) -> String {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: (*path).to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        check(&pages.iter().map(file).collect::<Vec<_>>()).join("\n")
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let other = ("docs/guide/b.md", "# What `--root` reaches\n");
        let page = |link: &str| format!("see [b]({link})\n");
        for good in
            ["../guide/b.md", "../guide/b.md#what---root-reaches", "#x", "https://a.b/c", ".."]
        {
            let text = format!("# X\n{}", page(good));
            assert_eq!(problems(&[("docs/a/a.md", &text), other]), "", "{good}");
        }
        for bad in ["b.md", "../guide/b.md#what-roots-reach", "../c"] {
            let found = problems(&[("docs/a/a.md", &page(bad)), other]);
            assert!(found.contains(&format!("links to {bad},")), "{bad}: {found}");
        }
    }

    #[test]
    fn prose_is_wrapped_in_docs() {
        let long = "word ".repeat(21);
        let code = format!("```\n{long}\n```\n| {long} |\n");
        assert_eq!(problems(&[("docs/a.md", &code), ("CHANGELOG.md", &long)]), "");
        let found = problems(&[("docs/a.md", &format!("{code}\n{long}"))]);
        assert_eq!(found, "docs/a.md:6 has more than 100 characters");
    }
}
