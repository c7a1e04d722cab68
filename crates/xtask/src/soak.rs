//! `cargo xtask soak`: does sampling ever end a JVM? Programs are sampled every 50 µs from their
//! first instruction on, again and again. A crash that comes once in dozens of launches is found
//! here and not by a test of seconds.
//!
//! What counts as a failure: a program or `tare` that does not end well, and any crash report of
//! the JVM. Snapshots of the heap are in `snapshots`, looks at threads in `deadlocks`, attaching
//! and detaching in `cycles`; how the page
//! keeps the account of all runs is in `crate::ledger`.

mod cycles;
mod deadlocks;
mod running;
mod snapshots;

use crate::ledger::{Account, Row};
use anyhow::{Context, Result, anyhow, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tare_toolbox::jars::{fetch, jars_in};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::setup;
use tare_toolbox::shell::{self, Workspace};
use tare_toolbox::stages::Stages;

pub const HELP: &str = "\
Whether sampling or a heap snapshot ever ends a JVM, and whether a deadlock is ever told of that is none.

Usage: cargo xtask soak launches [N]   compile the demo's sources N times (500) on each JDK: start-up and class loading
       cargo xtask soak churn [MIN]    MIN minutes (60), divided among the JDKs: programs that load and unload classes,
                                       throw, deoptimise, overflow their stacks and start processes, a minute each,
                                       with every collector in turn
       cargo xtask soak snapshots [N]  take N heap snapshots (1000) of the same program on each JDK, with each collector
                                       in turn whose heap can be copied; fails if more than 0.1 % of them fail, if a
                                       program is hurt or if a copy is left
       cargo xtask soak deadlocks [N]  look N times (1000) at threads that nearly are in deadlocks, on each JDK, platform
                                       and virtual ones; fails if one is told of
       cargo xtask soak cycles [N]     N times (10000) into one JVM and out of it again, on each JDK; fails if memory,
                                       threads, descriptors or mappings grow, or anything of ours is left

Options:
  --jdk LIST        only these versions: 17,21,25
  --interval TIME   between two samples (50us)
  --tare FILE       this `tare`, with the agent beside it; none is built
  --write-docs      add the runs to the account in docs/measured/soak.md: what takes longer than a day's work can be
                    done in parts, as in `cargo xtask soak launches 50 --write-docs`

A failed run keeps its output and the JVM's crash report in target/soak, and the command fails at its end.
";

pub const ACCOUNT: Account = Account {
    page: "docs/measured/soak.md",
    head: "\
# What soaks found

`cargo xtask soak WHAT --write-docs` adds its runs to this page. Do not edit it.

A soak does the same thing again and again and looks for what comes once in dozens of times: a JVM
that crashes, a program whose own checks fail, a copy that is left, a deadlock that is none.
`cargo xtask soak --help` says what each does. Runs of all tests are added by `cargo xtask test
--times N --write-docs`, with `--beside N` those beside busy loops; what failed, the commit that
mends it tells.
",
    kinds: &["soak", "JDK", "every"],
    counts: &["runs"],
};

/// For runtimes without a compiler of their own.
const ECJ: &str = "org.eclipse.jdt:ecj:3.37.0";

/// The program of the churn and the snapshots.
const CHURN: &str = "targets/Soak.java";

const COLLECTORS: [&str; 5] = ["G1", "Serial", "Parallel", "Z", "Shenandoah"];

/// How long one program of the churn runs.
const EACH: Duration = Duration::from_secs(60);

struct Soak {
    tare: PathBuf,
    interval: String,
    work: PathBuf,
    root: PathBuf,
    javac: Jdk,
}

pub fn run(words: &[&str]) -> Result<()> {
    let (mut tare, mut interval, mut versions) = (None, "50us".to_owned(), None);
    let mut write_docs = false;
    let mut rest = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match *word {
            "--tare" => tare = Some(PathBuf::from(value()?)),
            "--write-docs" => write_docs = true,
            "--interval" => interval = (*value()?).to_owned(),
            "--jdk" => versions = Some(value()?.split(',').collect::<Vec<_>>()),
            other if other.starts_with('-') => bail!("unknown option {other}\n\n{HELP}"),
            other => rest.push(other),
        }
    }
    if write_docs && tare.is_some() {
        bail!("--write-docs notes the commit of what is built here: leave out --tare");
    }
    let workspace = Workspace::open()?;
    let ready = setup::prepare()?;
    let tare = match tare {
        Some(file) => {
            fs::canonicalize(&file).with_context(|| format!("there is no {}", file.display()))?
        }
        None => workspace.release()?.join("tare"),
    };
    let wanted = |major: u32| {
        versions.as_ref().is_none_or(|list| list.iter().any(|one| *one == major.to_string()))
    };
    let runtimes: Vec<Jdk> = ready.runtimes.into_iter().filter_map(|(_, jdk)| jdk.ok()).collect();
    let runtimes: Vec<&Jdk> = runtimes.iter().filter(|jdk| wanted(jdk.major)).collect();
    if runtimes.is_empty() {
        bail!("there is none of these JDKs");
    }
    let work = workspace.target.join("soak");
    let soak = Soak { tare, interval, work, root: workspace.root.clone(), javac: ready.javac };
    let (what, number) = match rest[..] {
        [what] => (what, None),
        [what, number] => {
            (what, Some(number.parse::<u32>().with_context(|| format!("{number} is no number"))?))
        }
        _ => bail!("say what to do\n\n{HELP}"),
    };
    let jdks = runtimes.len() as u32;
    type Work<'a> = Box<dyn Fn(&Jdk) -> Result<Outcome> + 'a>;
    let work: Work<'_> = match what {
        "launches" => Box::new(|jdk| soak.launches(jdk, number.unwrap_or(500))),
        "churn" => {
            let span = Duration::from_secs(60) * number.unwrap_or(60) / jdks;
            let soak = &soak;
            Box::new(move |jdk| soak.churn(jdk, span))
        }
        "snapshots" => Box::new(|jdk| snapshots::run(&soak, jdk, number.unwrap_or(1000))),
        "deadlocks" => Box::new(|jdk| deadlocks::run(&soak, jdk, number.unwrap_or(1000))),
        "cycles" => Box::new(|jdk| cycles::run(&soak, jdk, number.unwrap_or(10_000))),
        _ => bail!("say what to do\n\n{HELP}"),
    };
    let interval = match what {
        "launches" | "churn" => soak.interval.as_str(),
        _ => "–",
    };
    let mut stages = Stages::new();
    for jdk in runtimes {
        stages.run(&format!("{what}, JDK {}", jdk.version), || {
            let begun = Instant::now();
            let outcome = work(jdk)?;
            if write_docs {
                let kind = [what, &jdk.version, interval].map(str::to_owned);
                let row = Row {
                    kind: kind.into(),
                    commit: workspace.revision().context("no commit is known")?,
                    counts: vec![outcome.runs.into()],
                    seconds: begun.elapsed().as_secs(),
                    failed: outcome.failed.into(),
                };
                ACCOUNT.add(&workspace.root, row)?;
            }
            outcome.verdict
        });
    }
    stages.finish()
}

/// What came of a soak on one JDK.
struct Outcome {
    runs: u32,
    failed: u32,
    /// An error where it says that something is wrong.
    verdict: Result<()>,
}

impl Soak {
    /// A directory of its own for one JDK.
    fn directory(&self, name: &str, jdk: &Jdk) -> Result<PathBuf> {
        let directory = self.work.join(format!("{name}-{}", jdk.major));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory)?;
        Ok(directory)
    }

    /// `tare record … -- java`, in a directory where crash reports are found.
    fn record(&self, directory: &Path, jdk: &Jdk) -> Command {
        let mut command = Command::new(&self.tare);
        command
            .current_dir(directory)
            .args(["record", "--interval", &self.interval, "-o", "x.tare", "--"])
            .arg(jdk.home.join("bin/java"));
        command
    }

    fn launches(&self, jdk: &Jdk, times: u32) -> Result<Outcome> {
        let directory = self.directory("launches", jdk)?;
        let mut sources = Vec::new();
        find_sources(&self.root.join("demo"), &mut sources)?;
        let compiler = compiler(jdk)?;
        let mut tally = Tally::new(&directory);
        for number in 1..=times {
            let mut command = self.record(&directory, jdk);
            command.args(&compiler).arg("-d").arg(directory.join("classes")).args(&sources);
            tally.add(number, &mut command, None)?;
        }
        Ok(tally.close())
    }

    /// Compiles a program of the tests.
    fn compile(&self, directory: &Path, source: &str, release: u32) -> Result<PathBuf> {
        let classes = directory.join("classes");
        let source = self.root.join("crates/jvm-tests/java").join(source);
        let mut javac = Command::new(self.javac.home.join("bin/javac"));
        let release = release.to_string();
        shell::run(javac.args(["--release", &release, "-nowarn", "-d"]).arg(&classes).arg(source))?;
        Ok(classes)
    }

    fn churn(&self, jdk: &Jdk, span: Duration) -> Result<Outcome> {
        let directory = self.directory("churn", jdk)?;
        let classes = self.compile(&directory, CHURN, 17)?;
        let there: Vec<&str> =
            COLLECTORS.into_iter().filter(|name| has_collector(jdk, name)).collect();
        let mut tally = Tally::new(&directory);
        let until = Instant::now() + span;
        let mut number = 0;
        while Instant::now() < until {
            let collector = there[number as usize % there.len()];
            number += 1;
            let mut command = self.record(&directory, jdk);
            command.arg(format!("-XX:+Use{collector}GC")).args(["-Xmx256m", "-cp"]);
            command.arg(&classes).arg("Soak");
            let left = until.saturating_duration_since(Instant::now());
            tally.add(number, &mut command, Some(left.min(EACH)))?;
        }
        Ok(tally.close())
    }
}

/// The compiler of a JDK, or one that runs on a bare runtime.
fn compiler(jdk: &Jdk) -> Result<Vec<String>> {
    if jdk.javac {
        return Ok(["-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"]
            .map(Into::into)
            .into());
    }
    let place = fetch(&mut Stages::new(), "ecj", &[ECJ]).context("there is no compiler for it")?;
    let jar = jars_in(&place)?.into_iter().next().context("Maven fetched no jar")?;
    let release = jdk.major.min(21).to_string();
    let words = ["-jar", &jar.display().to_string(), "-nowarn", "--release", &release];
    Ok(words.map(str::to_owned).into())
}

fn find_sources(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            find_sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "java") {
            found.push(path);
        }
    }
    Ok(())
}

fn has_collector(jdk: &Jdk, name: &str) -> bool {
    let mut command = Command::new(jdk.home.join("bin/java"));
    shell::succeeds(command.arg(format!("-XX:+Use{name}GC")).arg("-version"))
}

/// What became of the runs.
struct Tally<'a> {
    directory: &'a Path,
    begun: Instant,
    runs: u32,
    bad: u32,
}

impl<'a> Tally<'a> {
    fn new(directory: &'a Path) -> Self {
        Tally { directory, begun: Instant::now(), runs: 0, bad: 0 }
    }

    /// Runs a command to its end; with `span` its input is closed after that time, which ends it.
    fn add(&mut self, number: u32, command: &mut Command, span: Option<Duration>) -> Result<()> {
        let log = self.directory.join("log");
        let out = File::create(&log)?;
        let input = if span.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child =
            command.stdin(input).stdout(out.try_clone()?).stderr(out).spawn().context("tare")?;
        if let Some(span) = span {
            let input = child.stdin.take();
            std::thread::sleep(span);
            drop(input);
        }
        let status = child.wait()?;
        let said = fs::read_to_string(&log).unwrap_or_default();
        let crashed = self.crash_reports()?;
        self.runs += 1;
        if !status.success() || !crashed.is_empty() || said.contains("WRONG") {
            self.bad += 1;
            println!("run {number}: {status}, {} crash reports", crashed.len());
            fs::rename(&log, self.directory.join(format!("bad-{number}.log")))?;
            for (index, report) in crashed.iter().enumerate() {
                fs::rename(report, self.directory.join(format!("bad-{number}-{index}.crash")))?;
            }
        }
        if number.is_multiple_of(50) {
            let seconds = self.begun.elapsed().as_secs();
            println!("{} runs, {} failed, {seconds} s", self.runs, self.bad);
        }
        Ok(())
    }

    fn crash_reports(&self) -> Result<Vec<PathBuf>> {
        let all = fs::read_dir(self.directory)?.filter_map(|entry| Some(entry.ok()?.path()));
        let is_report = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hs_err"))
        };
        Ok(all.filter(is_report).collect())
    }

    fn close(self) -> Outcome {
        let Tally { directory, runs, bad, .. } = self;
        println!("{runs} runs, {bad} failed");
        let verdict = match bad {
            0 => Ok(()),
            _ => Err(anyhow!("{bad} of {runs} runs failed; see {}", directory.display())),
        };
        Outcome { runs, failed: bad, verdict }
    }
}
