//! What failed among many tests, once more and alone.
//!
//! A thousand tests that share two processors with strangers fail now and then for no fault of the
//! code. One that passes alone is no reason to refuse a change, and still a defect of the test or
//! worse: it is named at the end with what it said above. A JVM that crashed, and more than a few
//! failures, are never put down to the machine.

use anyhow::{Context, Result, anyhow};
use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use std::{io, thread};
use tare_toolbox::shell;

/// More failures than this are no accident.
const MOST: usize = 3;

/// What is still on its way when the command has ended comes within this time. Something that it
/// left behind may hold its output open for ever.
const GRACE: Duration = Duration::from_secs(2);

/// What a failure says if a JVM came to grief in it.
const CRASHES: [&str; 5] = ["hs_err", "SIGSEGV", "SIGBUS", "SIGABRT", "fatal error has been"];

/// The tests that failed, as libtest names them.
pub fn failed_tests(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let line = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(line.trim_end_matches(" - should panic").to_owned())
    };
    let mut names: Vec<String> = text.lines().filter_map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Runs all tests, and those that failed once more by the command that `again` makes for them.
/// The names of those that passed then.
pub fn run(all: Command, again: impl FnOnce(&[String]) -> Command) -> Result<Vec<String>> {
    let (error, said) = match seen(all)? {
        (Ok(()), _) => return Ok(Vec::new()),
        (Err(error), said) => (error, said),
    };
    let names = failed_tests(&said);
    if names.is_empty() || names.len() > MOST || CRASHES.iter().any(|word| said.contains(word)) {
        return Err(error);
    }
    println!("\n── once more, alone: {}", names.join(", "));
    shell::run(&mut again(&names)).with_context(|| error)?;
    Ok(names)
}

/// Runs a command with its output on the terminal: how it ended, and what it said.
fn seen(mut command: Command) -> Result<(Result<()>, String)> {
    let line = shell::describe(&command);
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot start `{line}`"))?;
    // It holds ends of the pipe, and we wait for the last one to be closed.
    drop(command);
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            print!("{}", String::from_utf8_lossy(&line));
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    let status = child.wait()?;
    let mut said = Vec::new();
    while let Ok(line) = lines.recv_timeout(GRACE) {
        said.extend(line);
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    let how = if status.success() { Ok(()) } else { Err(anyhow!("`{line}` failed ({status})")) };
    Ok((how, said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// What came of it, and which tests were run again by that script.
    fn outcome(all: &str, again: &str) -> (Result<Vec<String>>, Vec<String>) {
        let asked = RefCell::new(Vec::new());
        let result = run(sh(all), |names| {
            asked.borrow_mut().extend(names.iter().cloned());
            sh(again)
        });
        (result, asked.into_inner())
    }

    const ONE: &str = "echo 'test a::jdk17 ... FAILED'; echo 'test b ... ok'; exit 1";

    #[test]
    fn what_failed_runs_again_alone_and_is_named() {
        let (result, asked) = outcome(ONE, "exit 0");
        assert_eq!((result.unwrap(), asked), (vec!["a::jdk17".into()], vec!["a::jdk17".into()]));
        let (result, asked) = outcome("exit 0", "exit 1");
        assert_eq!((result.unwrap(), asked), (Vec::new(), Vec::new()));
    }

    #[test]
    fn what_fails_twice_has_failed() {
        assert!(outcome(ONE, "exit 1").0.is_err());
    }

    #[test]
    fn crashes_many_failures_and_failures_without_a_test_stay_failures() {
        let crash = format!("echo 'found hs_err_pid7.log'; {ONE}");
        let many = "for t in a b c d; do echo \"test $t ... FAILED\"; done; exit 1";
        for script in [&crash, many, "exit 1"] {
            let (result, asked) = outcome(script, "exit 0");
            assert!(result.is_err() && asked.is_empty(), "{script}");
        }
    }

    #[test]
    fn what_holds_the_output_open_does_not_hold_us_up() {
        let (result, _) = outcome("sleep 10 & exit 0", "exit 1");
        assert!(result.is_ok());
    }
}
