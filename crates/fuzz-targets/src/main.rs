//! The plain driver: one target, inputs of one seed, until its time is over or something is wrong.
//! `cargo xtask fuzz` builds it, starts one for each target, and says what came of it.
//!
//! A panic, memory beyond a bound and an execution without end are found here: the input is stored
//! and the exit code is 1. What ends the process (a stack that is used up, memory that cannot be
//! had) is found by whoever started it, who has the number of the input in the file `progress`.

mod memory;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tare_fuzz_targets::mutate::Corpus;
use tare_fuzz_targets::{TARGETS, Target, classes};

const HELP: &str = "\
Runs fuzz targets. `cargo xtask fuzz` does it for you.

Usage: tare-fuzz-targets list
       tare-fuzz-targets run TARGET --seed S --seconds N --failures DIR [--classes PATH]
       tare-fuzz-targets input TARGET --seed S --number N --failures DIR [--classes PATH]
       tare-fuzz-targets repeat TARGET FILE
       tare-fuzz-targets corpus DIR [--classes PATH]
";

/// What one execution may have of memory. Readers have bounds of their own, which are lower.
const MEMORY: usize = 512 << 20;

/// What one execution may take, also on a machine that is busy; nearly all take less than one
/// thousandth of it.
const TIME: Duration = Duration::from_secs(30);

/// The input that is executed, and since when.
static CURRENT: Mutex<Option<(Instant, Vec<u8>)>> = Mutex::new(None);

/// What the last panic said, and where.
static PANIC: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match command(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

struct Options {
    seed: u64,
    seconds: u64,
    number: u64,
    failures: PathBuf,
    classes: Option<PathBuf>,
}

impl Options {
    fn parse(words: &[String]) -> Result<Self, String> {
        let mut options =
            Options { seed: 1, seconds: 10, number: 0, failures: ".".into(), classes: None };
        for pair in words.chunks(2) {
            let [name, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
            let number = || value.parse().map_err(|_| format!("{name} {value}: no number"));
            match name.as_str() {
                "--seed" => options.seed = number()?,
                "--seconds" => options.seconds = number()?,
                "--number" => options.number = number()?,
                "--failures" => options.failures = value.into(),
                "--classes" => options.classes = Some(value.into()),
                _ => return Err(format!("unknown: {name}")),
            }
        }
        Ok(options)
    }

    fn seeds(&self, target: &Target) -> Result<Vec<Vec<u8>>, String> {
        let found = classes::read(self.classes.as_deref()).map_err(|error| error.to_string())?;
        Ok(target.seeds(&found))
    }
}

fn command(words: &[String]) -> Result<ExitCode, String> {
    let name = |name: &String| Target::find(name).ok_or_else(|| format!("no target {name}"));
    match words {
        [what] if what == "list" => {
            TARGETS.iter().for_each(|target| println!("{}\t{}", target.name, target.what));
            Ok(ExitCode::SUCCESS)
        }
        [what, target, options @ ..] if what == "run" => {
            let (target, options) = (name(target)?, Options::parse(options)?);
            let corpus = Corpus::new(options.seeds(target)?);
            Ok(on_a_thread(move || run(target, &options, &corpus)))
        }
        [what, target, options @ ..] if what == "input" => {
            let (target, options) = (name(target)?, Options::parse(options)?);
            let input = Corpus::new(options.seeds(target)?).input(options.seed, options.number);
            println!("{}", store(&options.failures, target, &input).display());
            Ok(ExitCode::SUCCESS)
        }
        [what, target, file] if what == "repeat" => {
            let target = name(target)?;
            let input = fs::read(file).map_err(|error| format!("{file}: {error}"))?;
            Ok(on_a_thread(move || match execute(target, &input) {
                None => ExitCode::SUCCESS,
                Some(wrong) => {
                    println!("{wrong}");
                    ExitCode::FAILURE
                }
            }))
        }
        [what, directory, options @ ..] if what == "corpus" => {
            let options = Options::parse(options)?;
            for target in TARGETS {
                let folder = Path::new(directory).join(target.name);
                let seeds = options.seeds(target)?;
                write_all(&folder, &seeds).map_err(|e| format!("{}: {e}", folder.display()))?;
                println!("{}: {} seeds", target.name, seeds.len());
            }
            Ok(ExitCode::SUCCESS)
        }
        _ => Err("say what to do".to_owned()),
    }
}

fn write_all(folder: &Path, seeds: &[Vec<u8>]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:04}")), seed)?;
    }
    Ok(())
}

/// With the stack that threads of ours have.
fn on_a_thread(work: impl FnOnce() -> ExitCode + Send + 'static) -> ExitCode {
    panic::set_hook(Box::new(|info| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string();
    }));
    std::thread::spawn(work).join().unwrap_or(ExitCode::FAILURE)
}

fn run(target: &'static Target, options: &Options, corpus: &Corpus) -> ExitCode {
    let failures = options.failures.clone();
    std::thread::spawn(move || watch(target, &failures));
    let progress = options.failures.join(format!("{}.progress", target.name));
    let progress = File::create(&progress).expect("a file that says how far it is");
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let mut number = options.number;
    while Instant::now() < until {
        progress.write_all_at(&number.to_le_bytes(), 0).expect("room for eight bytes");
        let input = corpus.input(options.seed, number);
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), input.clone()));
        let wrong = execute(target, &input);
        number += 1;
        if let Some(wrong) = wrong {
            fail(target, &options.failures, &input, &wrong);
            println!("executions {}", number - options.number);
            return ExitCode::FAILURE;
        }
    }
    println!("executions {}", number - options.number);
    ExitCode::SUCCESS
}

/// What is wrong with an input, if something is.
fn execute(target: &Target, input: &[u8]) -> Option<String> {
    let before = memory::begin();
    if panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        return Some(PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone());
    }
    let taken = memory::most().saturating_sub(before);
    (taken > MEMORY).then(|| format!("it took {} MiB of memory", taken >> 20))
}

/// Ends the process when one execution does not end.
fn watch(target: &Target, failures: &Path) {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((begun, input)) = current.as_ref()
            && begun.elapsed() > TIME
        {
            fail(target, failures, input, &format!("it takes more than {} s", TIME.as_secs()));
            std::process::exit(1);
        }
    }
}

fn fail(target: &Target, failures: &Path, input: &[u8], wrong: &str) {
    let stored = store(failures, target, input);
    println!("{}: {wrong}", target.name);
    println!("input {}", stored.display());
}

/// By what is in it, so that the same input has the same file.
fn store(failures: &Path, target: &Target, input: &[u8]) -> PathBuf {
    let mut sum = flate2::Crc::new();
    sum.update(input);
    let file = failures.join(format!("{}-{:08x}", target.name, sum.sum()));
    fs::write(&file, input).expect("room for an input");
    file
}
