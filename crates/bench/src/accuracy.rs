//! `cargo xtask bench accuracy`: how right the times of exact recordings are.
//!
//! The program below `bench/src/bench/cost` first measures, with nothing woven, what each of its
//! methods costs; then it does the same work while `tare record --exact --cpu` samples it, and
//! woven and timed. `truth` reads what the program and the reports say, `judge` puts them side by
//! side by each way of compensation. Nothing is asserted: a benchmark reports.

mod judge;
mod truth;

pub use truth::{said, since_start};

use super::peers::VisualVm;
use super::program::Program;
use super::ready::Ready;
use super::recorder::Recorder;
use super::{jdks, machine, write};
use anyhow::{Context, Result, bail};
use judge::{Cell, Summary, table};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};
use tare_toolbox::jdks::Jdk;
use tare_toolbox::shell::{self, Workspace};
use tare_toolbox::stages::Stages;
use truth::{Said, Truth};

const INCLUDE: &str = "bench.cost.Cases*";

/// Between the warm-up and what counts: recordings know times by the second, and a look may be one
/// second late.
const GAP: Duration = Duration::from_millis(4_500);

/// Of true time that a case is run for in its turn, in seconds.
const TURN: f64 = 0.005;

/// Of true time per case; VisualVM takes forty times as long.
const VISUAL_VM_SECONDS: f64 = 0.1;

/// How the program is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Compiled,
    Interpreted,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Compiled => "compiled",
            Mode::Interpreted => "interpreted",
        }
    }

    /// Seconds of each way to call a method in each round of the truth, if it takes what it takes
    /// compiled.
    fn round_seconds(self) -> f64 {
        match self {
            Mode::Compiled => 0.008,
            Mode::Interpreted => 0.002,
        }
    }

    /// Seconds of true time per case. Interpreted and woven it takes thirty times as long.
    fn seconds(self, quick: bool) -> f64 {
        match (self, quick) {
            (Mode::Compiled, false) => 0.5,
            (Mode::Compiled, true) => 0.2,
            (Mode::Interpreted, _) => 0.03,
        }
    }
}

struct Args {
    quick: bool,
    modes: Vec<Mode>,
    /// Of programs that are drawn.
    seeds: Vec<u64>,
    jdks: Vec<u32>,
    json: Option<PathBuf>,
    tare: Option<PathBuf>,
    write_docs: bool,
}

impl Args {
    fn parse(words: &[&str]) -> Result<Args> {
        let modes = vec![Mode::Compiled, Mode::Interpreted];
        let mut args = Args {
            quick: false,
            modes,
            seeds: Vec::new(),
            jdks: vec![17, 25],
            json: None,
            tare: None,
            write_docs: false,
        };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--quick" => (args.quick, args.jdks) = (true, vec![25]),
                "--write-docs" => args.write_docs = true,
                "--mode" => {
                    let name = *value()?;
                    args.modes.retain(|mode| mode.name() == name);
                    if args.modes.is_empty() {
                        bail!("--mode is compiled or interpreted");
                    }
                }
                "--jdk" => {
                    let numbers = value()?.split(',').map(str::parse).collect::<Result<_, _>>();
                    args.jdks = numbers.context("--jdk needs numbers, such as 17,25")?;
                }
                "--seed" => {
                    let numbers = value()?.split(',').map(str::parse).collect::<Result<_, _>>();
                    args.seeds = numbers.context("--seed needs numbers, such as 1,2,3")?;
                }
                "--json" => args.json = Some(PathBuf::from(value()?)),
                "--tare" => args.tare = Some(PathBuf::from(value()?)),
                word => bail!("unknown: {word}\n\n{}", super::HELP),
            }
        }
        Ok(args)
    }
}

pub fn run(words: &[&str]) -> Result<()> {
    let args = Args::parse(words)?;
    let ready = Ready::alone(args.tare.clone())?;
    let work = ready.work.join("accuracy");
    fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let mut stages = Stages::new();
    let classes = compile(&ready.workspace, &ready.javac, &work)?;
    let tare = ready.tare.clone();
    let mut lab = Lab { tare, classes, work: work.clone(), quick: args.quick, visual_vm: None };
    let mut cells = Vec::new();
    for jdk in jdks(&args.jdks, &mut stages)? {
        lab.visual_vm = VisualVm::prepare(&ready.kitchen(true), &jdk)
            .map_err(|error| {
                stages.note(format!("NOT COVERED: VisualVM on {}: {error:#}", jdk.major))
            })
            .ok();
        for &mode in &args.modes {
            let name = format!("{} on {}", mode.name(), jdk.major);
            stages.run(&name, || {
                let found = lab.measure(&jdk, mode, None)?;
                print!("{}", table(&found));
                cells.extend(found);
                Ok(())
            });
        }
        for &seed in &args.seeds {
            stages.run(&format!("drawn from {seed} on {}", jdk.major), || {
                let found = lab.measure(&jdk, Mode::Compiled, Some(seed))?;
                print!("{}", table(&found));
                cells.extend(found);
                Ok(())
            });
        }
    }
    let summary = Summary::of(&cells);
    print!("{}", summary.text());
    let json = args.json.unwrap_or_else(|| work.join("accuracy.json"));
    if args.write_docs {
        let page = format!(
            "# How right times are\n\n\
             This page is generated; `{}` writes it anew. Do not edit it.\n\n\
             - Machine: {}\n\n\
             Programs whose true costs are known, beside what Tare says of them by every way of compensation: how many \
             whole programs, methods of 100 ns and more, and shorter ones are as near to the truth as they should be. \
             [How times are compensated](../internals/times.md) says what the ways are. *drawn*: programs that nobody had looked at, three trees of five \
             methods each, whose lengths (5 ns to 20 µs), kinds of work and numbers of calls are drawn from a seed. VisualVM \
             knows no JDK after 19; its self times are of a run of its own, with its calibration.\n\n```{}```\n",
            super::command(&[&["accuracy"], words].concat()),
            machine::describe(),
            summary.text(),
        );
        write(&ready.workspace.root.join("docs/measured/accuracy.md"), &page)?;
    }
    let cells: Vec<Value> = cells.iter().map(Cell::json).collect();
    write(&json, &format!("{:#}\n", json!({ "summary": summary.json(), "cells": cells })))?;
    stages.finish()
}

fn compile(workspace: &Workspace, javac: &Jdk, work: &Path) -> Result<PathBuf> {
    let classes = work.join("classes");
    let sources = workspace.root.join("bench/src/bench/cost");
    let mut command = Command::new(javac.home.join("bin/javac"));
    command.args(["--release", "17", "-g", "-d"]).arg(&classes);
    for name in ["Cases", "CasesDrawn", "CasesTurn", "Main", "Work"] {
        command.arg(sources.join(format!("{name}.java")));
    }
    shell::run(&mut command).context("compiling the programs of known cost")?;
    Ok(classes)
}

struct Lab {
    tare: PathBuf,
    classes: PathBuf,
    work: PathBuf,
    quick: bool,
    /// The peer, where it knows the JDK.
    visual_vm: Option<VisualVm>,
}

impl Lab {
    /// The programs that everybody knows, or those that are drawn from a seed.
    fn measure(&self, jdk: &Jdk, mode: Mode, seed: Option<u64>) -> Result<Vec<Cell>> {
        let mut java = Command::new(jdk.home.join("bin/java"));
        if mode == Mode::Interpreted {
            java.arg("-Xint");
        }
        // So that samples tell inlined methods from their callers, as they do in a program that is
        // launched by `tare record`.
        java.args(["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]);
        java.args(["-Xms256m", "-Xmx256m", "-cp"]).arg(&self.classes).arg("bench.cost.Main");
        java.args(seed.map(|seed| seed.to_string()));
        let log = fs::File::create(self.work.join("stderr.log")).context("creating a log")?;
        // Its own times beside ours, of a run of its own; interpreted, it would take forever.
        let theirs = match &self.visual_vm {
            Some(peer) if mode == Mode::Compiled && seed.is_none() => {
                self.visual_vm(peer, jdk, &java)?
            }
            _ => HashMap::new(),
        };
        let mut program = Program::start(java.stderr(log))?;
        // HotSpot throws all its code away when the first class of a JVM is changed, and may
        // compile it otherwise then: that is done before the truth is measured, or it would be the
        // truth of another program.
        let first = ["--region", "bench.cost.CasesTurn.turn", "-d", "100ms"];
        self.record(&program, &first, &self.work.join("first.tare"))?.wait()?;
        let ask_truth = format!("truth {}", mode.round_seconds());
        let mut truth = Truth::parse(&program.ask(&ask_truth)?)?;
        let work = format!("work {} {TURN}", mode.seconds(self.quick));
        truth.take_turns(&Truth::parse(&program.ask(&work)?)?);
        let exact = self.work.join("exact.tare");
        let window = if self.quick { "10s" } else { "25s" };
        let how = ["--exact", "--cpu", "--window", window, "--time-all", "--include", INCLUDE];
        let mut recorder = self.record(&program, &how, &exact)?;
        while !recorder.has_begun(&exact)? {
            program.ask(&format!("work {TURN} {TURN}"))?;
        }
        recorder.wait_until_woven(&self.tare, program.pid())?;
        if mode == Mode::Compiled {
            // Once for the JVM to compile what was woven; the truth, too, is that of compiled code.
            program.ask(&work)?;
        }
        thread::sleep(GAP);
        let gap = SystemTime::now() - GAP * 2 / 3;
        program.ask(&work)?;
        recorder.stop()?;
        let mut again = Truth::parse(&program.ask(&ask_truth)?)?;
        again.take_turns(&Truth::parse(&program.ask(&work)?)?);
        let kind = seed.map_or_else(|| mode.name().to_owned(), |seed| format!("drawn {seed}"));
        let run = format!("{} {kind}", jdk.major);
        if let Some(drift) = truth.drift(&again).filter(|drift| *drift > 0.05) {
            println!(
                "{run}: what is true changed by up to {:.0} % meanwhile; the machine is not quiet",
                drift * 100.0
            );
        }
        let since = format!("{:.1}s..", since_start(&self.tare, &exact, gap)?.as_secs_f64());
        let report =
            |more: &[&str]| said(&self.tare, &exact, &[&["--time", since.as_str()], more].concat());
        let reports = [
            report(&["--metric", "wall-time", "--compensate", "none"])?,
            report(&["--metric", "wall-time", "--compensate", "calibrated"])?,
            report(&["--metric", "wall-time", "--compensate", "sequences"])?,
            report(&["--metric", "joined"])?,
            theirs,
        ];
        truth.cells(&run, &reports)
    }

    /// What VisualVM's instrumenting profiler says of the same work.
    fn visual_vm(
        &self,
        peer: &VisualVm,
        jdk: &Jdk,
        java: &Command,
    ) -> Result<HashMap<String, Said>> {
        let said = self.work.join("visualvm.log");
        let log = fs::File::create(&said).context("creating a log")?;
        let mut driver = peer.of_methods(java, jdk, "bench.cost.Main", INCLUDE);
        let mut program = Program::start(driver.stderr(log))?;
        program.ask(&format!("work {VISUAL_VM_SECONDS} {TURN}"))?;
        program.end()?;
        let said = fs::read_to_string(&said)?;
        let methods = said.lines().filter_map(|line| {
            let words: Vec<&str> = line.strip_prefix("method ")?.split(' ').collect();
            let [name, calls, micros] = words[..] else { return None };
            let own = micros.parse::<f64>().ok()? * 1e3;
            let said = Said { own, bounds: (own, own), calls: calls.parse().ok()? };
            Some((name.to_owned(), said))
        });
        Ok(methods.collect())
    }

    fn record(&self, program: &Program, how: &[&str], to: &Path) -> Result<Recorder> {
        let mut tare = Command::new(&self.tare);
        tare.arg("record").args(how).arg("-o").arg(to).arg(program.pid().to_string());
        Recorder::start(&mut tare, &self.work.join("record.log"))
    }
}
