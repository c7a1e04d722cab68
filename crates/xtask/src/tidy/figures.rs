//! What the README says of cost is in a page that a benchmark wrote.

use super::SourceFile;
use std::collections::BTreeSet;

const README: &str = "README.md";
const PAGES: &str = "docs/measured/";

/// Figures are written as ratios, `2.22×`.
const TIMES: char = '×';

pub fn check(sources: &[SourceFile]) -> Vec<String> {
    let text = |wanted: &dyn Fn(&str) -> bool| -> String {
        let files = sources.iter().filter(|file| wanted(&file.path));
        files.map(|file| String::from_utf8_lossy(&file.bytes)).collect::<Vec<_>>().join("\n")
    };
    let (readme, pages) = (text(&|path| path == README), text(&|path| path.starts_with(PAGES)));
    let known: BTreeSet<&str> = pages.split(|c: char| !is_of_a_number(c)).collect();
    readme
        .match_indices(TIMES)
        .filter_map(|(at, _)| readme[..at].rsplit(|c: char| !is_of_a_number(c)).next())
        .filter(|figure| !figure.is_empty() && !known.contains(figure))
        .map(|figure| format!("{README}: {figure}{TIMES} is in no page of {PAGES}"))
        .collect()
}

fn is_of_a_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(readme: &str, page: &str) -> Vec<String> {
        let file = |path: &str, text: &str| SourceFile {
            path: path.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        check(&[file(README, readme), file("docs/measured/cost.md", page)])
    }

    #[test]
    fn a_figure_that_no_benchmark_made_is_found() {
        let page = "| count | 2.22 | 12.5 |";
        assert!(problems("costs 2.22× or 12.5× of it", page).is_empty());
        assert!(problems("no figures, 200 cycles", page).is_empty());
        assert_eq!(problems("costs 2.2× and 2.22×", page).len(), 1);
        assert_eq!(problems("costs 1.5×", "").len(), 1);
    }
}
