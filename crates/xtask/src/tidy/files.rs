//! What a file may hold: no binaries, no left-over marks, no paths of one machine, and an opening
//! that says what the file is for.

use super::SourceFile;

/// Files that may be longer than [`LONGEST`] lines, each with the reason. An entry goes when its
/// file has become shorter.
const LONG_FILES: &[(&str, &str)] = &[
    ("crates/analysis/src/join.rs", "one derivation, 500 lines of it, and its tests"),
    ("crates/callgraph/tests/reach.rs", "a list of small programs and what each reaches"),
    ("crates/classfile/src/opcode.rs", "a table: one line for each opcode"),
    ("crates/tare/tests/profiles.rs", "a list of commands and what each prints"),
];

/// As the style guide asks; a table is a reason to be longer.
const LONGEST: usize = 500;

/// Where `unsafe` may stand, because C must be called; crates that have no such place forbid it.
const UNSAFE_PLACES: &[&str] = &[
    // The JVM's own interface, and what must not go through Rust's runtime.
    "crates/agent/src/",
    // The loader's list of modules, reads of the own stack, and values for signal handlers.
    "crates/unwind/src/memory.rs",
    "crates/unwind/src/modules.rs",
    "crates/unwind/src/published.rs",
    // Signal handlers on real stacks, and a JVM in their own process.
    "crates/unwind/tests/",
    "crates/unwind/examples/",
    // The independent witness of the bytecode counts is a JVMTI agent too.
    "crates/step-counter/src/",
    "crates/test-natives/src/",
    // Ask the kernel for a perf event and a timer, for which there is no safe call, and a child
    // whether that can be done.
    "crates/perf-events/src/lib.rs",
    "crates/tare/src/doctor/machine.rs",
    "crates/session/src/perf.rs",
    // Asks who is at the other end of a socket; the safe call cannot tell of a process without pid.
    "crates/session/src/command_socket/peer.rs",
    // An allocator that counts.
    "crates/fuzz-targets/src/memory.rs",
    // Puts a program under a filter of system calls.
    "crates/jvm-tests/src/bin/filtered.rs",
];

/// In two halves, like the marks below.
const UNSAFE: &[&str] =
    &[concat!("uns", "afe {"), concat!("uns", "afe fn"), concat!("uns", "afe impl")];

/// Whoever prints knows its terminal: the tool, what is for developers, and tests.
const PRINTERS: &[&str] = &[
    "tare",
    "xtask",
    "bench",
    "toolbox",
    "jvm-tests",
    "step-counter",
    "test-natives",
    "fuzz-targets",
];

/// In two halves, like the marks below.
const PRINTS: &[&str] = &[
    concat!("print", "ln!("),
    concat!("print", "!("),
    concat!("out", "ln!("),
    concat!("err", "ln!("),
    concat!("io::std", "out("),
    concat!("io::std", "err("),
];

/// What is built does not belong into git, whatever .gitignore says.
const BUILT: &[&str] = &[".class", ".jar", ".so", ".a", ".o", ".rlib", ".whl", ".zip", ".gz"];

/// Pictures for pages, which take a browser to make. Small: they stay in git for good.
const PICTURES: &str = "docs/images/";
const LARGEST_PICTURE: usize = 64 << 10;

/// Written in two halves, so that this file passes its own check.
const LEFT_OVER: &[&str] =
    &[concat!("to", "do!("), concat!("unimple", "mented!("), concat!("db", "g!(")];

pub fn check(sources: &[SourceFile], machine_paths: &[String]) -> Vec<String> {
    sources.iter().flat_map(|source| check_file(source, machine_paths)).collect()
}

/// Entries of the table of long files that nothing needs any more.
pub fn check_long_files(sources: &[SourceFile]) -> Vec<String> {
    LONG_FILES.iter().filter_map(|(path, _)| idle_entry(sources, path)).collect()
}

fn idle_entry(sources: &[SourceFile], path: &str) -> Option<String> {
    let file = sources.iter().find(|source| source.path == path);
    let lines = file.map(|file| String::from_utf8_lossy(&file.bytes).lines().count());
    let state = match lines {
        Some(lines) if lines > LONGEST => return None,
        Some(lines) => format!("has only {lines} lines"),
        None => "is not there".to_owned(),
    };
    Some(format!("{path} is listed as a long file and {state} (xtask, tidy/files.rs)"))
}

fn check_file(source: &SourceFile, machine_paths: &[String]) -> Vec<String> {
    let path = &source.path;
    let mut problems = Vec::new();
    if path.starts_with(PICTURES) && path.ends_with(".png") {
        if source.bytes.len() > LARGEST_PICTURE {
            problems.push(format!("{path} has more than {} KiB", LARGEST_PICTURE >> 10));
        }
        return problems;
    }
    if BUILT.iter().any(|end| path.ends_with(end)) || source.bytes.contains(&0) {
        return vec![format!("{path} is a binary; generate it instead of storing it")];
    }
    let Ok(text) = std::str::from_utf8(&source.bytes) else {
        return vec![format!("{path} is not UTF-8 text")];
    };
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(found) = machine_paths.iter().find(|p| names_path(line, p)) {
            problems.push(format!("{path}:{number} names {found}, a path of one machine"));
        }
        if path.ends_with(".rs") {
            let allowed = UNSAFE_PLACES.iter().any(|place| path.starts_with(place));
            if !allowed && UNSAFE.iter().any(|word| line.contains(word)) {
                problems.push(format!(
                    "{path}:{number} has unsafe code in a place that is not listed for it \
                     (xtask, tidy/files.rs)"
                ));
            }
            for mark in LEFT_OVER.iter().filter(|mark| line.contains(**mark)) {
                problems.push(format!("{path}:{number} has a left-over {mark}…)"));
            }
        }
    }
    if path.ends_with(".rs") && !text.starts_with("//! ") {
        problems.push(format!("{path} does not open with `//! ` and what its job is"));
    }
    let lines = text.lines().count();
    let listed = LONG_FILES.iter().any(|(long, _)| long == path);
    if (path.ends_with(".rs") || path.ends_with(".java")) && lines > LONGEST && !listed {
        problems.push(format!(
            "{path} has {lines} lines; split it, or list it with a reason (xtask, tidy/files.rs)"
        ));
    }
    problems
}

/// Whether a line names a path itself, not merely one that contains it, as `/proc/1/root/tmp` does
/// for the home of root.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || "\"'`=(<:,".contains(c))
    })
}

/// Libraries tell their callers, and print nothing. Their tests may say what they do not cover.
pub fn check_printing(sources: &[SourceFile]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        let parts = source.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
        let Some((krate, file)) = parts.filter(|(_, file)| file.ends_with(".rs")) else { continue };
        if PRINTERS.contains(&krate) || file.ends_with("tests.rs") {
            continue;
        }
        let text = String::from_utf8_lossy(&source.bytes);
        let code = text.lines().take_while(|line| !line.contains("#[cfg(test)]"));
        for (number, line) in (1..).zip(code) {
            let is_comment = line.trim_start().starts_with("//");
            if !is_comment && PRINTS.iter().any(|word| line.contains(word)) {
                problems.push(format!(
                    "{}:{number} prints; only the front end does (xtask, tidy/files.rs)",
                    source.path
                ));
            }
        }
    }
    problems
}

/// Crates without C forbid `unsafe` in each of their roots.
pub fn check_crate_roots(sources: &[SourceFile]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        let root =
            ["/src/lib.rs", "/src/main.rs"].iter().find_map(|end| source.path.strip_suffix(end));
        let Some(krate) = root else { continue };
        let forbids = String::from_utf8_lossy(&source.bytes).contains("#![forbid(unsafe_code)]");
        let inside = format!("{krate}/");
        let exempt = UNSAFE_PLACES.iter().any(|place| place.starts_with(&inside));
        if !forbids && !exempt {
            problems.push(format!("{} does not say #![forbid(unsafe_code)]", source.path));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: impl Into<Vec<u8>>) -> SourceFile {
        SourceFile { path: path.to_owned(), bytes: text.into() }
    }

    fn problems(path: &str, text: impl Into<Vec<u8>>) -> String {
        check(&[file(path, text)], &["/srv/me/".into()]).join("\n")
    }

    #[test]
    fn a_good_file_passes() {
        let text =
            "//! Good.\nlet a = \"/proc/1/srv/me/x\"; let b = format!(\"/proc/{p}/srv/me/\");\n";
        assert_eq!(problems("crates/a/src/lib.rs", text), "");
        assert_eq!(problems("README.md", "See [me](x/srv/me/y) and `~/.cache`.\n"), "");
    }

    #[test]
    fn an_entry_for_a_file_that_shrank_is_found() {
        let long = file("a.rs", "\n".repeat(LONGEST + 1));
        let short = file("b.rs", "\n".repeat(LONGEST));
        let sources = [long, short];
        assert_eq!(idle_entry(&sources, "a.rs"), None);
        assert!(idle_entry(&sources, "b.rs").unwrap().contains("has only 500 lines"));
        assert!(idle_entry(&sources, "c.rs").unwrap().contains("is not there"));
    }

    #[test]
    fn bad_files_are_named_with_the_line() {
        let left_over = format!("//! Bad.\n\n    {}\n", LEFT_OVER[0]);
        let cases: &[(&str, Vec<u8>, &str)] = &[
            ("demo/Main.class", b"x".to_vec(), "is a binary"),
            ("x.bin", vec![1, 0, 2], "is a binary"),
            ("x.txt", vec![0xff], "is not UTF-8"),
            ("docs/images/x.png", vec![0; LARGEST_PICTURE + 1], "has more than 64 KiB"),
            ("docs/x.png", vec![0; 10], "is a binary"),
            ("a.rs", b"fn main() {}\n".to_vec(), "does not open with"),
            ("a.rs", left_over.into_bytes(), "a.rs:3 has a left-over"),
            (
                "crates/weaver/src/x.rs",
                format!("//! Bad.\n{} }}\n", UNSAFE[0]).into_bytes(),
                "x.rs:2 has unsafe code",
            ),
            ("a.md", b"one\nrun /srv/me/x\n".to_vec(), "a.md:2 names /srv/me/"),
            ("a.toml", b"path = \"/srv/me/x\"\n".to_vec(), "a.toml:1 names /srv/me/"),
            ("a.java", "\n".repeat(LONGEST + 1).into_bytes(), "has 501 lines"),
        ];
        for (path, bytes, expected) in cases {
            let found = problems(path, bytes.clone());
            assert!(found.contains(expected), "{expected} is not in {found:?}");
        }
        assert_eq!(problems("a.java", "\n".repeat(LONGEST)), "");
        assert_eq!(problems("docs/images/x.png", vec![0; 10]), "");
        let in_its_place = format!("//! Good.\n{} }}\n", UNSAFE[0]);
        assert_eq!(problems("crates/agent/src/x.rs", in_its_place), "");
    }

    #[test]
    fn libraries_do_not_print() {
        let check = |path: &str, text: &str| check_printing(&[file(path, text)]).join("\n");
        let prints = format!("//! x\nfn f() {{ e{}\"x\") }}\n", PRINTS[0]);
        assert!(check("crates/session/src/x.rs", &prints).contains("x.rs:2 prints"));
        for allowed in
            ["crates/tare/src/x.rs", "crates/session/tests/x.rs", "crates/a/src/tests.rs"]
        {
            assert_eq!(check(allowed, &prints), "", "{allowed}");
        }
        let tests = format!("//! x\n#[cfg(test)]\n{prints}");
        assert_eq!(check("crates/session/src/x.rs", &tests), "");
    }

    #[test]
    fn crates_without_c_forbid_unsafe() {
        let check = |path: &str, text: &str| check_crate_roots(&[file(path, text)]).len();
        assert_eq!(check("crates/attach/src/lib.rs", "//! x\n#![forbid(unsafe_code)]\n"), 0);
        assert_eq!(check("crates/attach/src/lib.rs", "//! x\n"), 1);
        assert_eq!(check("crates/attach/src/other.rs", "//! x\n"), 0);
        assert_eq!(check("crates/agent/src/lib.rs", "//! x\n"), 0);
    }
}
