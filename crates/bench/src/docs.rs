//! A page in docs/measured/, written whole from one run: nothing in it is typed by hand.

use super::config::{ALL, Config, Jfr, Mode, PEERS};
use super::figures::{Row, groups};
use super::table::{LEGEND, markdown, number};
use super::workloads::Workload;

/// What is told of a run beside its figures.
pub struct About {
    /// Of the page.
    pub title: &'static str,
    pub machine: String,
    pub jdks: Vec<(u32, String)>,
    pub launches: u32,
    /// As it was typed.
    pub command: String,
    /// The commit that was measured, if it is known.
    pub revision: Option<String>,
    pub load: Option<f64>,
    pub notes: Vec<String>,
}

pub fn page(
    about: &About,
    workloads: &[&Workload],
    rows: &[Row],
    configs: &[Config],
    (title, beside): (&str, &[String]),
    means: &str,
) -> String {
    let mut text = format!(
        "# {}\n\n\
         This page is generated; `{}` writes it anew. Do not edit it.\n\n\
         - Machine: {}\n",
        about.title, about.command, about.machine,
    );
    for (major, version) in &about.jdks {
        text += &format!("- JDK {major}: {version}\n");
    }
    if let Some(revision) = &about.revision {
        text += &format!("- Tare: commit {revision}\n");
    }
    text += &format!("- JVM launches of each configuration: {}, in turns\n", about.launches);
    if let Some(load) = about.load {
        text += &format!("- Others that wanted a processor just before: {load:.1} on average\n");
    }
    for note in &about.notes {
        text += &format!("- {note}\n");
    }
    text += &format!("\n{LEGEND}\n");
    if configs == ALL {
        text += "![The steady state](../../bench/results.svg)\n";
    }
    if !means.is_empty() {
        text += &format!("\n## Over all of them\n{means}");
    }
    for workload in workloads {
        text += &format!("\n## {}\n\nThis is {}.\n", workload.name, workload.what);
        for (plain, same) in groups(rows) {
            if plain.workload == workload.name {
                text += &format!("\nJDK {}:\n\n{}", plain.jdk, markdown(plain, &same));
                if configs == PEERS {
                    text += &recorded(&same);
                }
            }
        }
    }
    if !beside.is_empty() {
        text += &format!("\n## {title}\n\n");
        beside.iter().for_each(|line| text += &format!("- {line}\n"));
    }
    text += "\n## Commands\n\nPATTERN is what a workload says of itself above.\n\n";
    text += "| configuration | command |\n|---|---|\n";
    for config in configs {
        text += &format!("| {} | `{}` |\n", config.name(), config.command("PATTERN"));
    }
    text
}

/// Around what the README quotes.
const MARKS: [&str; 2] = ["<!-- from docs/measured/cost.md -->\n", "<!-- to here -->\n"];

/// The README with this run's figures in the place that is marked for them.
pub fn quoted_in(readme: &str, rows: &[Row]) -> Option<String> {
    let (before, rest) = readme.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    Some([before, MARKS[0], &quoted(rows), MARKS[1], after].concat())
}

/// The newest JDK, and what most want to know.
fn quoted(rows: &[Row]) -> String {
    let configs = [
        Config::Launched(Mode::Count),
        Config::Launched(Mode::Time),
        Config::Launched(Mode::EveryTime),
        Config::Launched(Mode::Outside),
        Config::AsyncProfiler,
        Config::Jfr(Jfr::Profile),
        Config::Jfr(Jfr::MethodTiming),
    ];
    let jdk = rows.iter().map(|row| row.jdk).max().unwrap_or(0);
    let names: Vec<&str> = configs.iter().map(|config| config.name()).collect();
    let mut text = format!("| on JDK {jdk} | {} |\n", names.join(" | "));
    text += &format!("|---|{}\n", "--:|".repeat(configs.len()));
    for (plain, same) in groups(rows) {
        if plain.jdk != jdk {
            continue;
        }
        text += &format!("| {} |", plain.workload);
        for config in configs {
            let row = same.iter().find(|row| row.config == config);
            let steady = row.and_then(|row| row.figures(plain).steady);
            text += &steady.map_or(" – |".to_owned(), |r| format!(" {}× |", number(r.value)));
        }
        text += "\n";
    }
    text
}

/// What each profiler has of the program in its last launch: one that sees less is quicker.
fn recorded(rows: &[&Row]) -> String {
    let line = |row: &&Row| {
        let launch = row.launches.last()?;
        let recorded = launch.recorded.as_deref().unwrap_or("nothing");
        let warm_up = launch.warm_up.map(|n| format!("; steady after {n} iterations"));
        Some(format!("- {}: {recorded}{}\n", row.config.name(), warm_up.unwrap_or_default()))
    };
    format!("\nRecorded:\n\n{}", rows.iter().filter_map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::row;
    use crate::program::Amount;

    #[test]
    fn the_page_names_machine_versions_commands_and_figures() {
        let workload = Workload {
            name: "fib",
            include: "bench.Fib",
            root: "bench.Fib.iterate".to_owned(),
            what: "a test".to_owned(),
            class_path: Vec::new(),
            arguments: Vec::new(),
            options: Vec::new(),
            needs_compiler: false,
            since: 0,
            warm_up: Amount { iterations: 1, seconds: 0.0 },
            settles_within: 0.0,
            measured: Amount { iterations: 1, seconds: 0.0 },
        };
        let about = About {
            title: "What it costs",
            machine: "one processor".to_owned(),
            jdks: vec![(17, "17.0.1".to_owned())],
            launches: 3,
            command: "cargo xtask bench --write-docs".to_owned(),
            revision: Some("abc1234".to_owned()),
            load: Some(0.25),
            notes: vec!["NOT COVERED: a peer".to_owned()],
        };
        let rows = [row(Config::Plain, &[10.0]), row(Config::Launched(Mode::Count), &[21.0])];
        let page =
            page(&about, &[&workload], &rows, &ALL, ("Beside", &["a: all of it".to_owned()]), "");
        for part in [
            "# What it costs\n",
            "one processor",
            "commit abc1234",
            "JDK 17: 17.0.1",
            "`cargo xtask bench --write-docs`",
            "NOT COVERED: a peer",
            "This is a test.",
            "- a: all of it",
            "| count, launched | 2.10 |",
            "tare record --exact --include PATTERN --count -- java",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
    }
    #[test]
    fn the_readme_quotes_what_was_measured() {
        let rows = [row(Config::Plain, &[10.0]), row(Config::Launched(Mode::Count), &[21.0])];
        let readme = format!("before\n{}old\n{}after\n", MARKS[0], MARKS[1]);
        let new = quoted_in(&readme, &rows).unwrap();
        assert!(new.starts_with("before\n") && new.ends_with("after\n"), "{new}");
        assert!(new.contains("| fib | 2.10× | – |") && !new.contains("old"), "{new}");
        assert_eq!(quoted_in("no marks", &rows), None);
    }
}
