//! Command lines in the documentation are ones that the tool understands: those in blocks as a
//! whole, those in the midst of a sentence by their verb and flags, and flags that stand alone.
//! Those of `cargo xtask` are looked up in its help and its sources. Only compiled for tests.

use crate::cli::Cli;
use clap::{Command, CommandFactory, Parser};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A command line of a document, with where it stands.
struct Line {
    place: String,
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// In a block, with everything that it needs.
    Whole,
    /// A part of a sentence.
    Part,
    /// Of `cargo xtask`.
    Xtask,
    /// A flag that stands alone.
    Flag,
}

/// Flags in documents that are of other programs.
const FOREIGN: [&str; 4] = ["token", "add-modules", "patch-module", "no-default-features"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a directory with one of these endings.
fn below(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let of = |path: PathBuf| match path.is_dir() {
        true => below(&path, ending),
        false => {
            Some(path).filter(|p| p.extension().is_some_and(|e| e == ending)).into_iter().collect()
        }
    };
    paths.flat_map(of).collect()
}

fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut found = below(&root.join("docs"), "md");
    found.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    let names =
        ["README.md", "demo/README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
    found.extend(names.map(|name| root.join(name)));
    found.extend(below(&root.join("api"), "java"));
    found.sort();
    found
}

/// The command lines of a text in Markdown.
fn lines(name: &str, text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (number, line) in (1..).zip(text.lines()) {
        let mut add = |text: &str, kind| {
            let (place, text) = (format!("{name}:{number}"), text.to_owned());
            found.push(Line { place, text, kind });
        };
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let line = line.trim_start();
            let line = line.strip_prefix("$ ").or(line.strip_prefix("run: ")).unwrap_or(line);
            if line == "tare" || line.starts_with("tare ") {
                add(line, Kind::Whole);
            } else if line.starts_with("cargo xtask ") {
                add(line, Kind::Xtask);
            }
        } else {
            // Java's comments have {@code …} for it.
            let java = line.split("{@code ").skip(1).filter_map(|rest| rest.split('}').next());
            for span in line.split('`').skip(1).step_by(2).chain(java) {
                match span {
                    _ if span.starts_with("tare ") => add(span, Kind::Part),
                    _ if span.starts_with("cargo xtask ") => add(span, Kind::Xtask),
                    _ if span.starts_with("--") => add(span, Kind::Flag),
                    _ => {}
                }
            }
        }
    }
    found
}

/// The words of a line up to what follows it: another command, or an explanation after some spaces.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                if line[at..].starts_with("  ")
                    || [" && ", " | ", " > ", " # "].iter().any(|end| line[at..].starts_with(end))
                {
                    return words;
                }
            }
            _ => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// What is wrong with the verb and the flags of a line that need not be whole.
fn unknown(cli: &Command, words: &[String]) -> Option<String> {
    let mut command = cli;
    for word in words.iter().skip(1).take_while(|word| *word != "--") {
        if let Some(flag) = word.strip_prefix("--") {
            let flag = flag.split_once('=').map_or(flag, |(flag, _)| flag);
            let flag = flag.split('|').next().unwrap_or(flag);
            let has = |command: &Command| {
                command.get_arguments().any(|argument| {
                    argument.get_long() == Some(flag)
                        || argument.get_all_aliases().is_some_and(|all| all.contains(&flag))
                })
            };
            if !["help", "version"].contains(&flag) && !has(command) && !has(cli) {
                return Some(format!("{} has no --{flag}", command.get_name()));
            }
        } else if let Some(verb) = command.find_subcommand(word) {
            command = verb;
        } else if std::ptr::eq(command, cli) && words.len() > 1 {
            return Some(format!("there is no `tare {word}`"));
        }
    }
    None
}

/// Whether a verb, or one below it, has such a flag.
fn has_flag(command: &Command, flag: &str) -> bool {
    let has = |argument: &clap::Arg| {
        argument.get_long() == Some(flag)
            || argument.get_all_aliases().is_some_and(|all| all.contains(&flag))
    };
    command.get_arguments().any(has) || command.get_subcommands().any(|verb| has_flag(verb, flag))
}

/// The sources of `cargo xtask` and of the benchmarks, which read its command lines.
fn xtask() -> &'static str {
    static SOURCES: OnceLock<String> = OnceLock::new();
    SOURCES
        .get_or_init(|| ["crates/xtask/src", "crates/bench/src"].map(|d| sources(d, "rs")).concat())
}

/// Those of the demo, which has flags of its own.
fn demo() -> &'static str {
    static SOURCES: OnceLock<String> = OnceLock::new();
    SOURCES.get_or_init(|| sources("demo/src", "java"))
}

fn sources(directory: &str, ending: &str) -> String {
    let files = below(&root().join(directory), ending);
    files.iter().map(|path| std::fs::read_to_string(path).expect("a source")).collect()
}

/// The name of a flag in a word; `None` if the word is none.
fn flag_of(word: &str) -> Option<&str> {
    let flag = word.strip_prefix("--").filter(|flag| !flag.is_empty())?;
    flag.split(['=', '|', ',', '…', '[']).next()
}

fn wrong_of_xtask(words: &[String]) -> Option<String> {
    let verb = words.get(2)?;
    let listed =
        |line: &str| line.strip_prefix("  ").is_some_and(|l| l.split(' ').next() == Some(verb));
    if !verb.starts_with('-') && !xtask().lines().any(listed) {
        return Some(format!("there is no `cargo xtask {verb}`"));
    }
    let flags = words.iter().filter_map(|word| flag_of(word)).filter(|flag| *flag != "help");
    let unknown = |flag: &&str| !xtask().contains(&format!("\"--{flag}\""));
    flags.into_iter().find(unknown).map(|flag| format!("cargo xtask has no --{flag}"))
}

fn wrong_alone(cli: &Command, words: &[String]) -> Option<String> {
    let flag = words.first().and_then(|word| flag_of(word))?;
    let known = has_flag(cli, flag)
        || ["help", "version"].contains(&flag)
        || FOREIGN.contains(&flag)
        || xtask().contains(&format!("\"--{flag}\""))
        || demo().contains(&format!("Switch(\"{flag}\""));
    (!known).then(|| format!("nothing has --{flag}"))
}

fn problem(line: &Line) -> Option<String> {
    let (cli, words) = (Cli::command(), words(&line.text));
    // Anything may stand for the rest of it.
    let rest = |word: &String| matches!(word.as_str(), "…" | "..." | "…`");
    let said = if line.kind == Kind::Xtask {
        wrong_of_xtask(&words)
    } else if line.kind == Kind::Flag {
        wrong_alone(&cli, &words)
    } else if line.kind == Kind::Whole && !words.iter().any(rest) {
        use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
        let error = Cli::try_parse_from(&words).err();
        let error = error.filter(|e| ![DisplayHelp, DisplayVersion].contains(&e.kind()));
        error.map(|error| error.to_string())
    } else {
        unknown(&cli, &words)
    };
    said.map(|said| format!("{}: {}\n{said}", line.place, line.text))
}

#[test]
fn command_lines_in_documents_are_understood() {
    let mut seen = 0;
    let mut problems = Vec::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a document");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let lines = lines(&name, &text);
        seen += lines.len();
        problems.extend(lines.iter().filter_map(problem));
    }
    assert!(seen > 100, "only {seen} command lines were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn examples_of_the_help_are_understood() {
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    let cli = Cli::command();
    for verb in cli.get_subcommands().chain([&cli]) {
        let help = verb.get_after_help().or(verb.get_after_long_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        for text in help.lines().filter_map(|line| line.strip_prefix("  tare ")) {
            let text = format!("tare {text}");
            let line = Line { place: verb.get_name().to_owned(), text, kind: Kind::Whole };
            problems.extend(problem(&line));
            seen.insert(line.text);
        }
    }
    assert!(seen.len() > 20, "only {seen:?}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn what_is_wrong_is_found() {
    let wrong = |text: &str| {
        let found = lines("x", text);
        assert_eq!(found.len(), 1, "{text}");
        problem(&found[0]).is_some()
    };
    for text in [
        "```\n$ tare status 4711      attach\n```",
        "```\ntare diff a b --threshold 5% && echo\n```",
        "as `tare record --exact --cpu` does",
        "```\ntare export x.tare -o x.html --title 'a  b'\n```",
        "```\ntare status 4711 # attach\n```",
        "as `cargo xtask test --times 10` does",
        "with `--include` and",
        " * {@code tare record --bytecodes --agent-jar FILE}.",
    ] {
        assert!(!wrong(text), "{text}");
    }
    for text in [
        "```\n$ tare stat 4711\n```",
        "```\ntare diff a\n```",
        "as `tare record --exactly` does",
        "as `tare overlap` does",
        "```\ncargo xtask benches\n```",
        "as `cargo xtask test --thymes 10` does",
        "with `--inclyude` and",
        " * {@code tare record --agent-jars FILE}.",
    ] {
        assert!(wrong(text), "{text}");
    }
}
