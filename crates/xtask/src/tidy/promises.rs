//! What SECURITY.md promises is held by tests that exist. Whether they hold it, they say themselves.

use super::SourceFile;

const PAGE: &str = "SECURITY.md";

/// The list of targets of fuzzing.
const TARGETS: &str = "crates/fuzz-targets/src/lib.rs";

pub fn check(sources: &[SourceFile]) -> Vec<String> {
    let Some(page) = sources.iter().find(|file| file.path == PAGE) else {
        return vec![format!("there is no {PAGE}")];
    };
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(String::from_utf8_lossy(&page.bytes).lines()) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", promise, tests, ""] = cells[..] else { continue };
        if promise == "promise" || promise.starts_with("---") {
            continue;
        }
        let mut names = tests.split('`').skip(1).step_by(2).peekable();
        if names.peek().is_none() {
            problems.push(format!("{PAGE}:{number} promises something and names no test"));
        }
        let missing = names.filter(|name| !exists(sources, name));
        problems
            .extend(missing.map(|name| format!("{PAGE}:{number} names {name}, which is no test")));
    }
    problems
}

fn exists(sources: &[SourceFile], name: &str) -> bool {
    let Some((place, test)) = name.split_once("::") else { return false };
    let held = |holds: &dyn Fn(&str) -> bool, text: &str| {
        let there = |file: &&SourceFile| holds(&file.path) && file.path.ends_with(".rs");
        let mut texts =
            sources.iter().filter(there).map(|file| String::from_utf8_lossy(&file.bytes));
        texts.any(|found| found.contains(text))
    };
    match (place, place.strip_prefix("tare-")) {
        ("fuzz", _) => held(&|path| path == TARGETS, &format!("\"{test}\",")),
        (_, Some(krate)) => {
            let folder = format!("crates/{krate}/");
            held(&|path| path.starts_with(&folder), &format!("fn {test}("))
        }
        _ => {
            let file = format!("crates/jvm-tests/tests/it/{place}.rs");
            // All tests of a file.
            let text = if test == "*" { String::new() } else { format!("fn {test}(") };
            held(&|path| path == file, &text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_without_a_test_are_found() {
        let file = |path: &str, text: &str| SourceFile {
            path: path.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let problems = |cell: &str| {
            let page = format!("| promise | held by |\n|---|---|\n| It holds | {cell} |\n");
            let sources = [
                file(PAGE, &page),
                file(TARGETS, "target(\"jfr\", …)"),
                file("crates/jvm-tests/tests/it/ends.rs", "fn it_ends(jdk) {}"),
                file("crates/view/src/http.rs", "fn refused() {}"),
            ];
            check(&sources).join("\n")
        };
        for good in ["`fuzz::jfr`", "`ends::it_ends`, `ends::*`", "`tare-view::refused`"] {
            assert_eq!(problems(good), "", "{good}");
        }
        for bad in ["`fuzz::jf`", "`ends::ends`", "`tare-formats::refused`", "`other::*`", "`x`"] {
            assert!(problems(bad).contains("SECURITY.md:3 names"), "{bad}");
        }
        assert!(problems("nothing").contains("names no test"));
    }
}
