//! One round: a program is started, things are done to it as the plan says, and then everything
//! must be as if nothing had been.

use super::checks::{self, Before};
use super::companions::{self, Companions};
use super::evidence::{self, Failure};
use super::ground::{Ground, Subject};
use super::plan::{Ending, Place, Plan, Step};
use super::program::Program;
use super::tool::{End, Tool};
use super::watch;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// So many recordings at once: the machine is to be busy with more than ours.
const AT_ONCE: usize = 3;

/// What a round came to.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub recordings: u64,
    pub killed: u64,
    pub classes: u64,
    /// Kinds of refusals, and how often each came.
    pub refusals: BTreeMap<String, u64>,
    /// What was found at its end.
    pub found: String,
}

struct Round<'a> {
    ground: &'a Ground,
    plan: &'a Plan,
    directory: &'a Path,
    program: Program,
    companions: Companions<'a>,
    /// Recordings that nobody has ended yet, the oldest first; and those that were told to end.
    recordings: Vec<Tool>,
    ending: Vec<Tool>,
    begun: usize,
    counts: Counts,
    /// Files of recordings, and whether their ends were good.
    files: Vec<(PathBuf, bool)>,
}

/// Runs it; a failure has left its evidence in the directory.
pub fn run(
    ground: &Ground,
    subject: &Subject,
    plan: &Plan,
    directory: &Path,
) -> (Counts, Result<(), Failure>) {
    let program = match Program::start(ground, subject, plan, directory) {
        Ok(program) => program,
        Err(failure) => {
            if failure.hangs {
                evidence::save_stacks(directory, None);
            }
            return (Counts::default(), Err(failure));
        }
    };
    let companions = Companions::new(ground, directory, program.pid());
    let mut round = Round {
        ground,
        plan,
        directory,
        program,
        companions,
        recordings: Vec::new(),
        ending: Vec::new(),
        begun: 0,
        counts: Counts::default(),
        files: Vec::new(),
    };
    let outcome = round.all().map_err(|failure| {
        if failure.hangs {
            evidence::save_stacks(directory, Some(round.program.pid()));
        }
        // What the JVM itself says of its end is the better reason.
        match checks::crashes(directory).first() {
            Some(crash) => Failure::new(format!("{}; the JVM crashed: {crash}", failure.reason)),
            None => failure,
        }
    });
    let counts = round.counts.clone();
    drop(round);
    for pid in watch::of_round(directory) {
        watch::signal(pid, "KILL");
    }
    (counts, outcome)
}

impl Round<'_> {
    fn all(&mut self) -> Result<(), Failure> {
        let before = Before::of(&mut self.program)?;
        for (pause, step) in &self.plan.steps {
            thread::sleep(*pause);
            if self.program.has_ended() {
                break;
            }
            self.step(step)?;
        }
        if self.plan.ending == Ending::Detached {
            self.companions.leave()?;
            while !self.recordings.is_empty() {
                self.end_oldest("INT");
            }
            self.finish(0)?;
            self.program.ask("rest")?;
            self.run_tool(&[], &["detach".to_owned()])?;
            // The C library keeps what was freed; how much, says nothing of us.
            self.companions.jcmd(&["System.trim_native_heap"])?;
            self.counts.found = checks::after(&mut self.program, &before, &self.plan.flags)?;
            self.program.ask("go")?;
        }
        self.counts.classes = self.program.end()?;
        // Recordings end with the program.
        self.ending.append(&mut self.recordings);
        self.finish(0)?;
        checks::at_last(self.ground, self.directory, self.program.pid())?;
        self.read_files()
    }

    fn step(&mut self, step: &Step) -> Result<(), Failure> {
        match step {
            Step::Begin(words) => self.begin(words)?,
            Step::Interrupt => self.end_oldest("INT"),
            Step::Stop => self.run_tool(&[], &["stop".to_owned()])?,
            Step::Kill => {
                if let Some(mut tool) = self.recordings.pop() {
                    tool.signal("KILL");
                    self.ending.push(tool);
                }
            }
            Step::FreezeTool(span) => {
                if let Some(tool) = self.recordings.last_mut() {
                    tool.signal("STOP");
                    thread::sleep(*span);
                    tool.signal("CONT");
                }
            }
            Step::FreezeProgram(span) => {
                watch::signal(self.program.pid(), "STOP");
                thread::sleep(*span);
                watch::signal(self.program.pid(), "CONT");
            }
            Step::Detach => self.run_tool(&[], &["detach".to_owned()])?,
            Step::Look(words) => self.run_tool(&[], words)?,
            Step::Debug(span) => {
                if let Some(port) = self.program.debug_port() {
                    companions::debug(port, *span);
                }
            }
            Step::AsyncProfiler(event) => self.companions.async_profiler(event)?,
            Step::FlightRecorder => self.companions.flight_recorder()?,
            Step::Jcmd(words) => self.companions.jcmd(words)?,
            Step::HeapDump => self.companions.heap_dump()?,
        }
        self.finish(4)
    }

    fn begin(&mut self, words: &[String]) -> Result<(), Failure> {
        if self.recordings.len() >= AT_ONCE {
            self.end_oldest("INT");
        }
        let name = format!("{:02}.tare", self.begun);
        let (file, through) = match self.plan.place {
            Place::SmallDisk(size) => {
                let disk = self.directory.join("disk");
                fs::create_dir_all(&disk)?;
                let mount = format!(
                    "mount -t tmpfs -o size={size}k tmpfs {} && exec \"$@\"",
                    disk.display()
                );
                let words = ["unshare", "--mount", "sh", "-c", &mount, "sh"].map(str::to_owned);
                (disk.join(name), words.to_vec())
            }
            _ => (self.directory.join(name), Vec::new()),
        };
        let mut line = words.to_vec();
        line.extend(["-o".to_owned(), file.display().to_string()]);
        let tool = self.start(&through, &line, Some(file))?;
        self.recordings.push(tool);
        Ok(())
    }

    /// Starts `tare` with these words and the program's pid.
    fn start(
        &mut self,
        through: &[String],
        words: &[String],
        file: Option<PathBuf>,
    ) -> Result<Tool, Failure> {
        let mut line = words.to_vec();
        line.push(self.program.pid().to_string());
        self.begun += 1;
        Tool::start(self.ground, self.directory, self.begun, through, &line, file)
    }

    /// Runs `tare` with these words and the program's pid to its end.
    fn run_tool(&mut self, through: &[String], words: &[String]) -> Result<(), Failure> {
        let mut tool = self.start(through, words, None)?;
        let end = tool.wait()?;
        self.count(&tool, end);
        Ok(())
    }

    fn end_oldest(&mut self, signal: &str) {
        if !self.recordings.is_empty() {
            let mut tool = self.recordings.remove(0);
            tool.signal(signal);
            self.ending.push(tool);
        }
    }

    /// Waits for recordings that were told to end, until so many are left.
    fn finish(&mut self, left: usize) -> Result<(), Failure> {
        while self.ending.len() > left {
            let mut tool = self.ending.remove(0);
            let end = tool.wait();
            if end.is_err() {
                // It is still there while evidence is taken.
                self.ending.push(tool);
                end?;
                continue;
            }
            self.count(&tool, end?);
        }
        Ok(())
    }

    fn count(&mut self, tool: &Tool, end: End) {
        if let Some(file) = &tool.file {
            self.counts.recordings += u64::from(end == End::Well);
            self.counts.killed += u64::from(end == End::Killed);
            self.files.push((file.clone(), end == End::Well));
        }
        if let End::Refused(reason) = end {
            *self.counts.refusals.entry(reason).or_default() += 1;
        }
    }

    /// Every recording that has a file can be read; that of a tool that was killed as far as it is.
    fn read_files(&mut self) -> Result<(), Failure> {
        let files = std::mem::take(&mut self.files);
        for (file, well) in files.into_iter().filter(|(file, _)| file.exists()) {
            self.begun += 1;
            let words = ["report".to_owned(), file.display().to_string()];
            let number = self.begun;
            let mut tool = Tool::start(self.ground, self.directory, number, &[], &words, None)?;
            match tool.wait()? {
                End::Refused(reason) if well => {
                    let reason = format!("{} cannot be read: {reason}", file.display());
                    return Err(Failure::new(reason));
                }
                end => self.count(&tool, end),
            }
        }
        Ok(())
    }
}

/// What a round did, for whoever reads its directory.
pub fn describe(plan: &Plan) -> String {
    let mut text = format!(
        "flags: {}\nplace: {:?}, launched: {}, crowd: {}, frugal: {}\nnatives: {}, meddler: {}, \
         debugger: {}, ending: {:?}\n",
        plan.flags.join(" "),
        plan.place,
        plan.launched,
        plan.crowd,
        plan.frugal,
        plan.natives,
        plan.meddler,
        plan.debugger,
        plan.ending
    );
    let mut at = Duration::ZERO;
    for (pause, step) in &plan.steps {
        at += *pause;
        text.push_str(&format!("{:6.2} s {step:?}\n", at.as_secs_f64()));
    }
    text
}
