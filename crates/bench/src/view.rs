//! `cargo xtask bench view`: how long the page of a recording of five million contexts takes to open,
//! what its server and its answers weigh, how it pans, and how soon the page of a JVM shows what
//! happened in it. Tests of `tare-cli` do it in a real browser and print figures; this has them
//! built as users get it, and makes the page of what they print.

use super::options::Options;
use super::stats::median;
use super::{machine, write};
use anyhow::{Result, bail};
use std::fmt::Write as _;
use tare_toolbox::setup;
use tare_toolbox::shell::{self, Workspace};

const HELP: &str = "\
Opens a recording of five million contexts in a real Chromium, and the page of a running JVM; prints times and sizes.

Usage: cargo xtask bench view [OPTION]

Options:
  --quick         a smoke test: only the page of the JVM
  --write-docs    write docs/measured/view.md
";

const PAGE: &str = "docs/measured/view.md";

/// What is measured: its name among the figures, what it is, its unit, and what is aimed at.
const FIGURES: [(&str, &str, &str, Option<f64>); 18] = [
    ("file-mb", "the file", "MB", None),
    ("link-ms", "from the command to the link", "ms", None),
    ("paint-ms", "from the command to the painted graph", "ms", Some(1000.0)),
    ("server-mb", "memory of the server, at most", "MB", Some(450.0)),
    ("window-ms", "answer for a window of 1920 pixels", "ms", Some(20.0)),
    ("window-kb", "its size", "kB", Some(200.0)),
    ("zoomed-ms", "answer for three windows of a part", "ms", Some(20.0)),
    ("zoomed-kb", "its size", "kB", Some(200.0)),
    ("search-ms", "answer with a search", "ms", Some(20.0)),
    ("search-kb", "its size", "kB", Some(200.0)),
    ("frame-ms", "from frame to frame, panning 230,000 stack frames in sight", "ms", Some(16.7)),
    ("frame-95-ms", "the same, 95 % within", "ms", None),
    ("frame-script-ms", "of it the page's own program", "ms", None),
    ("frame-script-95-ms", "the same, 95 % within", "ms", None),
    ("pixel-ms", "from a collection in the JVM to its bar", "ms", Some(1500.0)),
    ("pixel-most-ms", "the same, the longest", "ms", None),
    ("agent-percent", "of a core for it, inside the JVM", "%", Some(3.0)),
    ("server-percent", "of a core for it, the server", "%", Some(3.0)),
];

pub fn run(words: &[&str]) -> Result<()> {
    let Some(options) = Options::read(words, HELP, 0)? else { return Ok(()) };
    if !options.rest.is_empty() {
        bail!("{} is no option\n\n{HELP}", options.rest.join(" "));
    }
    let workspace = Workspace::open()?;
    let test = ["test", "--release", "-p", "tare-cli", "--test", "view"];
    // The tool finds the agent beside itself.
    workspace.release()?;
    let java = setup::compiler()?.home.join("bin/java");
    let large = (!options.quick).then_some("five_million_contexts");
    let mut figures = Vec::new();
    for name in large.into_iter().chain(["from_event_to_pixel"]) {
        let mut command = workspace.cargo(&test);
        command.args([name, "--", "--ignored", "--nocapture"]).env("TARE_BENCH_JAVA", &java);
        figures.extend(told(&shell::output(&mut command)?));
    }
    if figures.is_empty() {
        bail!("the tests told no figure");
    }
    let text = table(&figures);
    println!("\n{text}");
    if options.write_docs {
        let revision = workspace.revision().unwrap_or_default();
        let head = head(&super::command(&[&["view"], words].concat()));
        let page = format!("{head}\nCommit {revision}; {}.\n\n{text}", machine::describe());
        write(&workspace.root.join(PAGE), &page)?;
    }
    Ok(())
}

/// The figures that a test has printed.
fn told(output: &str) -> Vec<(String, f64)> {
    let lines = output.lines().filter_map(|line| {
        let (_, rest) = line.split_once("figure ")?;
        let (name, value) = rest.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    });
    lines.collect()
}

fn table(figures: &[(String, f64)]) -> String {
    let mut text = "| | median | goal |\n|---|--:|--:|\n".to_owned();
    for (name, what, unit, goal) in FIGURES {
        let of = |wanted: &str| -> Vec<f64> {
            figures.iter().filter(|(name, _)| name == wanted).map(|(_, value)| *value).collect()
        };
        let value = match name {
            "pixel-most-ms" => of("pixel-ms").into_iter().reduce(f64::max),
            name => median(&of(name)),
        };
        let Some(value) = value else { continue };
        let digits = usize::from(value < 100.0);
        let goal = goal.map_or("–".to_owned(), |goal| format!("≤ {goal} {unit}"));
        let _ = writeln!(text, "| {what} | {value:.digits$} {unit} | {goal} |");
    }
    text
}

fn head(command: &str) -> String {
    format!(
        "# How quickly the page opens, moves and follows\n\n\
         This page is generated; `{command}` writes it anew. Do not edit it.\n\n\
         A recording of 5,000,000 contexts of 20,000 methods is opened with `tare view` three times, in a Chromium \
         without a window that runs already. Answers are asked nine times each, from within the page, so the browser's part is \
         in their times. Panning moves the page's flame graph with 108 rows of 2,130 frames in sight, on 3840 × 2160 pixels, \
         drawn without a graphics processor. The page of a JVM, which computes for three of ten milliseconds, shows its time \
         line: twelve times the heap is collected on demand, at a moment that differs against the page's ticks, and the page \
         is asked for each painted frame whether it counts one more. Processor time is that of all threads of ours.\n\n\
         Not compared: the Firefox Profiler and speedscope with the same file. An export to their formats that has all \
         contexts is a JSON text far beyond the 512 MB that a string in a browser can have.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_tests_print() {
        let told = told(
            "running 1 test\ntest view::x ... figure pixel-ms 812.5\nfigure pixel-ms 900.0\nok\n",
        );
        assert_eq!(told, [("pixel-ms".to_owned(), 812.5), ("pixel-ms".to_owned(), 900.0)]);
        let text = table(&told);
        assert!(text.contains("| the same, the longest | 900 ms | – |"), "{text}");
        assert!(text.contains("bar | 856 ms | ≤ 1500 ms |"), "{text}");
    }
}
