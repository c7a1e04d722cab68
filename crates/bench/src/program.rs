//! One run of a workload: a JVM that does iterations when told, and says how long each took.
//!
//! The program is `bench.Main` below `bench/src`, started directly or by `tare record`; its lines
//! begin with `bench`, and whatever else comes is what the profiler says.

use super::stats::median;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};
use tare_toolbox::shell;

/// Longer than any iteration under any profiler here; a program that is silent for so long hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// At least so many iterations, and for at least so many seconds.
#[derive(Clone, Copy)]
pub struct Amount {
    pub iterations: u32,
    pub seconds: f64,
}

/// One look at whether a program still gets faster.
const SETTLING: Amount = Amount { iterations: 3, seconds: 2.0 };

/// What iterations took, in milliseconds each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    pub wall: Vec<f64>,
    /// Of the thread that did the work, on a processor; this hardly feels what else runs.
    pub cpu: Vec<f64>,
}

pub struct Program {
    child: Child,
    lines: Receiver<(Instant, String)>,
    began: Instant,
    /// From the start of the process to the first line of `main`, in milliseconds.
    pub startup: f64,
    /// From the start of the process to the end of the first iteration, in milliseconds.
    pub first: Option<f64>,
    /// What the iterations computed; never more than one value in a right program.
    results: Vec<String>,
    others: Vec<String>,
}

/// What a program leaves behind.
pub struct Ended {
    /// In KiB.
    pub peak_memory: u64,
    pub result: String,
    /// The lines that are not the program's own.
    pub others: Vec<String>,
}

impl Program {
    /// Starts it and waits until it is ready for iterations.
    pub fn start(command: &mut Command) -> Result<Program> {
        let line = shell::describe(command);
        let began = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{line}`"))?;
        let output = child.stdout.take().context("the program has no output")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send((Instant::now(), line));
            }
        });
        let mut program = Program {
            child,
            lines,
            began,
            startup: 0.0,
            first: None,
            results: Vec::new(),
            others: Vec::new(),
        };
        program.startup = program.wait_for("main").with_context(|| line.clone())?.0;
        program.wait_for("ready").context(line)?;
        Ok(program)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs iterations, one after the other.
    pub fn run(&mut self, amount: Amount) -> Result<Times> {
        let input = self.child.stdin.as_mut().context("the program has no input")?;
        writeln!(input, "run {} {}", amount.iterations, amount.seconds)?;
        input.flush()?;
        let mut times = Times::default();
        loop {
            let (at, line) = self.next_line()?;
            if line == "done" {
                return Ok(times);
            }
            let words: Vec<&str> = line.split(' ').collect();
            let ["iteration", wall, cpu, result] = words[..] else {
                bail!("the program says `bench {line}` among its iterations");
            };
            times.wall.push(wall.parse::<f64>().context("the time of an iteration")? / 1e6);
            let cpu = cpu.parse::<f64>().context("the processor time of an iteration")?;
            if cpu > 0.0 {
                times.cpu.push(cpu / 1e6);
            }
            self.first.get_or_insert(at);
            if !self.results.iter().any(|known| known == result) {
                self.results.push(result.to_owned());
            }
        }
    }

    /// Runs iterations until they are no more than 3 % faster than before, twice over, or the
    /// seconds are over. How many it took.
    pub fn settle(&mut self, seconds: f64) -> Result<usize> {
        let limit = Instant::now() + Duration::from_secs_f64(seconds);
        let (mut best, mut same, mut iterations) = (f64::MAX, 0, 0);
        while same < 2 && Instant::now() < limit {
            let times = self.run(SETTLING)?;
            let time = median(&times.cpu).or_else(|| median(&times.wall)).unwrap_or(0.0);
            same = if time < 0.97 * best { 0 } else { same + 1 };
            best = best.min(time);
            iterations += times.wall.len();
        }
        Ok(iterations)
    }

    /// Has it do something else, and returns what it says until it is done.
    pub fn ask(&mut self, line: &str) -> Result<Vec<String>> {
        let input = self.child.stdin.as_mut().context("the program has no input")?;
        writeln!(input, "{line}")?;
        input.flush()?;
        let mut said = Vec::new();
        loop {
            let (_, line) = self.next_line()?;
            if line == "done" {
                return Ok(said);
            }
            said.push(line);
        }
    }

    /// Lets it end. Iterations that computed different things are an error.
    pub fn quit(mut self) -> Result<Ended> {
        let mut input = self.child.stdin.take().context("the program has no input")?;
        writeln!(input, "quit")?;
        drop(input);
        let (_, memory) = self.wait_for("memory")?;
        let peak_memory = memory.parse().context("the program's memory")?;
        while let Ok((_, line)) = self.lines.recv_timeout(PATIENCE) {
            self.others.push(line);
        }
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the program ended badly ({status})");
        }
        let [result] = self.results.as_slice() else {
            bail!("iterations computed different things: {}", self.results.join(", "));
        };
        Ok(Ended { peak_memory, result: result.clone(), others: std::mem::take(&mut self.others) })
    }

    /// Lets one end that has no iterations to tell of.
    pub fn end(mut self) -> Result<()> {
        let mut input = self.child.stdin.take().context("the program has no input")?;
        writeln!(input, "quit")?;
        drop(input);
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the program ended badly ({status})");
        }
        Ok(())
    }

    /// The rest of the line that begins with this word, and when it came, in milliseconds.
    fn wait_for(&mut self, word: &str) -> Result<(f64, String)> {
        loop {
            let (at, line) = self.next_line()?;
            if let Some(rest) = line.strip_prefix(word) {
                return Ok((at, rest.trim().to_owned()));
            }
        }
    }

    /// The program's next own line.
    fn next_line(&mut self) -> Result<(f64, String)> {
        loop {
            let (at, line) = self.lines.recv_timeout(PATIENCE).map_err(|_| {
                let said = self.others.join("\n");
                anyhow::anyhow!("the program ended early, or was silent for too long: {said}")
            })?;
            match line.strip_prefix("bench ") {
                Some(own) => {
                    return Ok((at.duration_since(self.began).as_secs_f64() * 1e3, own.to_owned()));
                }
                None => self.others.push(line),
            }
        }
    }
}

impl Drop for Program {
    /// Without input the program ends after its iteration; `tare record` ends with it. Only a
    /// program that is no longer wanted comes here with its input open.
    fn drop(&mut self) {
        if self.child.stdin.take().is_some() {
            // Politely first: what was started for us may have started something itself.
            let _ = Command::new("kill").arg(self.child.id().to_string()).status();
            let limit = Instant::now() + Duration::from_secs(3);
            while Instant::now() < limit && matches!(self.child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(50));
            }
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell script stands for the JVM.
    fn script(iterations: &str) -> Result<Program> {
        let text = format!(
            "echo tare says this; echo bench main; echo bench ready; read line; {iterations}; \
             echo bench done; read line; echo bench memory 77; echo the end"
        );
        Program::start(Command::new("sh").args(["-c", &text]))
    }

    const AMOUNT: Amount = Amount { iterations: 2, seconds: 0.5 };

    #[test]
    fn times_memory_and_foreign_lines_are_told_apart() {
        let text =
            "echo bench iteration 2000000 1500000 5; echo hm; echo bench iteration 3500000 0 5";
        let mut program = script(text).unwrap();
        let expected = Times { wall: vec![2.0, 3.5], cpu: vec![1.5] };
        assert_eq!(program.run(AMOUNT).unwrap(), expected);
        assert!(program.first.unwrap() >= program.startup);
        let ended = program.quit().unwrap();
        assert_eq!((ended.peak_memory, ended.result.as_str()), (77, "5"));
        assert_eq!(ended.others, ["tare says this", "hm", "the end"]);
    }

    #[test]
    fn a_program_that_gets_no_faster_has_settled() {
        let times = [9, 5, 5, 5];
        let blocks: Vec<String> = times
            .iter()
            .map(|time| {
                format!(
                    "read line; echo bench iteration {time}000000 {time}000000 5; echo bench done"
                )
            })
            .collect();
        let mut program =
            script(&format!("echo bench done; {}; read line", blocks.join("; "))).unwrap();
        program.run(AMOUNT).unwrap();
        assert_eq!(program.settle(60.0).unwrap(), times.len());
    }

    #[test]
    fn a_wrong_result_is_an_error() {
        let mut program = script("echo bench iteration 1 1 5; echo bench iteration 1 1 6").unwrap();
        program.run(AMOUNT).unwrap();
        let error = program.quit().err().unwrap().to_string();
        assert!(error.contains("different things: 5, 6"), "{error}");
    }

    #[test]
    fn a_program_that_ends_early_is_an_error() {
        let mut program = script("exit 1").unwrap();
        let error = program.run(AMOUNT).unwrap_err().to_string();
        assert!(error.contains("ended early") && error.contains("tare says this"), "{error}");
    }
}
