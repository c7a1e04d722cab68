//! The antagonist as a process: started as a plan says, asked, ended. Its output goes to a file.

use super::evidence::Failure;
use super::ground::{Ground, Subject};
use super::plan::{Place, Plan};
use super::watch::{self, until};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

/// What no program may ever say, whatever is done to it.
const FORBIDDEN: [&str; 5] = [
    "WRONG",
    "WARNING in native method",
    "FATAL ERROR in native method",
    "A fatal error has been detected by the Java Runtime Environment",
    "panicked at",
];

pub struct Program {
    child: Child,
    input: Option<ChildStdin>,
    pub log: PathBuf,
}

impl Program {
    /// Starts it and waits until it is ready.
    pub fn start(
        ground: &Ground,
        subject: &Subject,
        plan: &Plan,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let mut words = through(plan.place, ground);
        words.push(subject.jdk.home.join("bin/java").display().to_string());
        words.extend(plan.flags.iter().cloned());
        words.push("-XX:-CreateCoredumpOnCrash".to_owned());
        if subject.abilities.major >= 21 {
            words.push("-XX:+EnableDynamicAgentLoading".to_owned());
        }
        if plan.launched {
            words.push(format!("-agentpath:{}", ground.agent.display()));
        }
        if plan.natives {
            words.push(format!("-agentpath:{}", ground.natives.display()));
        }
        if plan.meddler {
            words.push(format!("-javaagent:{}", ground.meddler.display()));
        }
        if plan.debugger {
            let where_to = "transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0";
            words.push(format!("-agentlib:jdwp={where_to}"));
        }
        words.extend([
            format!("-Dchaos.natives={}", plan.natives),
            format!("-Dchaos.meddler={}", plan.meddler),
            format!("-Dchaos.frugal={}", plan.frugal),
            format!("-Dchaos.crowd={}", plan.crowd),
            "-cp".to_owned(),
            ground.classes.display().to_string(),
            "Chaos".to_owned(),
        ]);
        let log = directory.join("program.log");
        let out = File::create(&log)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(directory).env(watch::MARK, directory);
        for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(out.try_clone()?).stderr(out).process_group(0);
        let mut child = command.spawn()?;
        fs::write(directory.join("command"), words.join(" "))?;
        let input = child.stdin.take();
        let mut program = Program { child, input, log };
        program.wait_for("the program is ready", |said| said.contains("ready\n"))?;
        Ok(program)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Tells it something, and waits for the answer to it.
    pub fn ask(&mut self, line: &str) -> Result<String, Failure> {
        let before = self.said().len();
        let told = self.input.as_mut().map(|input| writeln!(input, "{line}"));
        if !matches!(told, Some(Ok(()))) {
            return Err(self.ended_early());
        }
        let mark = format!("{line}: ");
        let answer = |said: &str| {
            let rest = said.get(before..)?;
            let from = rest.find(&mark)? + mark.len();
            Some(rest[from..].split_once('\n')?.0.to_owned())
        };
        self.wait_for(&format!("an answer to {line:?}"), |said| answer(said).is_some())?;
        Ok(answer(&self.said()).unwrap_or_default())
    }

    fn wait_for(&mut self, what: &str, is_said: impl Fn(&str) -> bool) -> Result<(), Failure> {
        let mut ended = false;
        until(what, || {
            ended = self.has_ended();
            ended || is_said(&self.said())
        })?;
        if ended && !is_said(&self.said()) { Err(self.ended_early()) } else { Ok(()) }
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    fn ended_early(&mut self) -> Failure {
        let how = self.child.try_wait().ok().flatten();
        let how = how.map_or("it does not listen".to_owned(), |status| status.to_string());
        match self.wrong_words() {
            Some(words) => Failure::new(format!("the program ended early, {how}: {words}")),
            None => Failure::new(format!("the program ended early: {how}")),
        }
    }

    /// The first line that no program may say.
    fn wrong_words(&self) -> Option<String> {
        let said = self.said();
        let is_bad = |line: &&str| FORBIDDEN.iter().any(|word| line.contains(word));
        said.lines().find(is_bad).map(str::to_owned)
    }

    /// Closes its input and waits for its end, which must be a good one. Says how many classes it
    /// has loaded.
    pub fn end(&mut self) -> Result<u64, Failure> {
        drop(self.input.take());
        let mut status: Option<ExitStatus> = None;
        until("the program ends", || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        })?;
        let status = status.ok_or_else(|| Failure::new("no status".to_owned()))?;
        if let Some(words) = self.wrong_words() {
            return Err(Failure::new(format!("the program said, {status}: {words}")));
        }
        let said = self.said();
        let totals = said.lines().find_map(|line| line.strip_prefix("the end: classes="));
        let classes = totals.and_then(|text| text.split(' ').next()?.parse().ok());
        match (status.success(), classes) {
            (true, Some(classes)) => Ok(classes),
            _ => Err(Failure::new(format!("the program ended with {status}"))),
        }
    }

    /// The port at which debuggers are heard.
    pub fn debug_port(&self) -> Option<u16> {
        let said = self.said();
        let line = said.lines().find(|line| line.contains("Listening for transport"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let pid = self.pid();
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // A JVM that is killed leaves its attach socket; another will have its number.
        let _ = fs::remove_file(format!("/tmp/.java_pid{pid}"));
    }
}

/// What makes the place of a JVM. All of it becomes the JVM at last, so pids stay.
fn through(place: Place, ground: &Ground) -> Vec<String> {
    let filtered = |how: &str| vec![ground.filtered.display().to_string(), how.to_owned()];
    let tmp = |options: &str| {
        let mount = format!("mount -t tmpfs -o {options} tmpfs /tmp && exec \"$@\"");
        ["unshare", "--mount", "sh", "-c", &mount, "sh"].map(str::to_owned).into()
    };
    match place {
        Place::Plain | Place::SmallDisk(_) => Vec::new(),
        Place::CallsDenied => filtered("errno"),
        Place::CallsKill => filtered("kill"),
        Place::FewDescriptors(number) => {
            vec!["prlimit".to_owned(), format!("--nofile={number}")]
        }
        Place::ReadOnlyTmp => tmp("ro"),
        Place::NoExecTmp => tmp("noexec"),
    }
}
