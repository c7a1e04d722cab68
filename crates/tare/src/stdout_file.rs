//! `-o -`: a file that a verb writes goes to standard output, as in `kubectl exec … > x.html`.
//!
//! The verb knows nothing of it. It writes a temporary file, and what it says, the report and the
//! output of a program that it starts go to standard error meanwhile. So what arrives is one whole
//! file, or nothing; a recording that fails leaves no half of one.

use crate::cli::{ClassCommand, Cli, Command, HeapWhat};
use crate::relayed::{self, FileThere};
use anyhow::{Context, Result, bail};
use rustix::fs::{Mode, mkdir};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The file of this process that standard output gets.
static PASSED_ON: OnceLock<PathBuf> = OnceLock::new();

/// Whether a file will not be there any more when this process has ended.
pub fn is_passed_on(file: &Path) -> bool {
    PASSED_ON.get().is_some_and(|passed| passed == file)
}

pub struct Redirected {
    /// What was standard output.
    out: Option<OwnedFd>,
    /// The other end of a relay, if the file goes there instead.
    there: Option<FileThere>,
    /// A folder of this process, and the file that the verb writes in it.
    folder: PathBuf,
    file: PathBuf,
}

/// Takes standard output away from the verb, if its file is to go there.
pub fn begin(cli: &mut Cli) -> Result<Option<Redirected>> {
    if relayed::is() {
        return begin_relayed(cli.command.as_mut());
    }
    let Some((output, ending)) = cli.command.as_mut().and_then(output) else { return Ok(None) };
    let Some(ending) = asked(output, &ending)? else { return Ok(None) };
    if io::stdout().is_terminal() {
        bail!(
            "-o - writes a file to standard output, which is a terminal here; redirect it: > FILE"
        );
    }
    let folder = folder()?;
    let redirected = || -> io::Result<OwnedFd> {
        let out = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        Ok(out)
    };
    let file = folder.join(format!("stdout.{ending}"));
    output.clone_from(&file);
    let _ = PASSED_ON.set(file.clone());
    Ok(Some(Redirected { out: Some(redirected()?), there: None, folder, file }))
}

/// The file goes back to where the command line came from, which knows what it is called there.
fn begin_relayed(command: Option<&mut Command>) -> Result<Option<Redirected>> {
    let Some(command) = command else { return Ok(None) };
    match command {
        // Their recordings go there while they grow.
        Command::Record(args) => args.output = None,
        Command::Climb(args) => args.output = None,
        Command::Dump { output, jvm } if output.is_none() => {
            *output = Some(format!("dump-{}.tare", jvm.replace('/', "_")).into());
        }
        _ => {}
    }
    let Some((output, ending)) = output(command) else { return Ok(None) };
    let name = match asked(output, &ending)? {
        Some(ending) => format!("stdout.{ending}").into(),
        None => output.file_name().unwrap_or_default().to_owned(),
    };
    let folder = folder()?;
    let file = folder.join(name);
    output.clone_from(&file);
    // Said now, so that what the command says of it can be read with its name there.
    let there = relayed::file(&file.display().to_string(), None);
    Ok(Some(Redirected { out: None, there, folder, file }))
}

impl Redirected {
    /// Passes the file on. Whatever else the verb wrote stays where it is.
    pub fn finish(self, code: ExitCode) -> ExitCode {
        let send = || -> io::Result<()> {
            let mut file = File::open(&self.file)?;
            match (self.out, self.there) {
                (Some(out), _) => io::copy(&mut file, &mut File::from(out)).map(|_| ()),
                (None, Some(there)) => send_back(&mut file, there),
                (None, None) => Ok(()),
            }
        };
        let sent = if self.file.exists() { send() } else { Ok(()) };
        let _ = fs::remove_file(&self.file);
        if fs::remove_dir(&self.folder).is_err() {
            errln!("tare: further files are in {}", self.folder.display());
        }
        match sent {
            Ok(()) => code,
            // As everywhere: who closes the pipe has all it wanted.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => code,
            Err(error) => {
                errln!("tare: standard output cannot be written: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

/// A part at a time, so that no more of it waits in memory than a link holds up.
fn send_back(file: &mut File, mut there: FileThere) -> io::Result<()> {
    loop {
        there.wait();
        if io::copy(&mut file.take(1 << 18), &mut there)? == 0 {
            return Ok(());
        }
    }
}

/// Where a verb writes its file, and the ending that is meant by a bare `-`.
fn output(command: &mut Command) -> Option<(&mut PathBuf, String)> {
    let of = |ending: &str| ending.to_owned();
    match command {
        Command::Record(args) => Some((args.output.as_mut()?, of("tare"))),
        Command::Climb(args) if args.background => None,
        Command::Climb(args) => Some((args.output.as_mut()?, of("tare"))),
        Command::Check(args) => Some((args.junit_xml.as_mut()?, of("xml"))),
        Command::View(args) => Some((args.output.as_mut()?, of("tare"))),
        Command::Dump { output, .. } => Some((output.as_mut()?, of("tare"))),
        Command::Export(args) => Some((&mut args.output, String::new())),
        Command::Instrument(args) => Some((&mut args.output, of("jar"))),
        Command::Class(ClassCommand::Weave(args)) => {
            let ending = args.input.extension().unwrap_or_default().to_string_lossy().into_owned();
            Some((&mut args.output, ending))
        }
        Command::Heap(args) => match &mut args.what {
            Some(HeapWhat::Export { file }) => Some((file, of("hprof"))),
            Some(HeapWhat::Html { file }) => Some((file, of("html"))),
            _ => Some((args.output.as_mut()?, of("tareheap"))),
        },
        _ => None,
    }
}

/// The ending of a file that is to go to standard output: `-`, or `-.html` to name the format.
fn asked(output: &Path, ending: &str) -> Result<Option<String>> {
    match output.to_str() {
        Some("-") if ending.is_empty() => bail!(
            "what should be written to standard output? Name the format by an ending, as in \
             -o -.html or -o -.pb.gz"
        ),
        Some("-") => Ok(Some(ending.to_owned())),
        Some(text) => Ok(text
            .strip_prefix("-.")
            .filter(|rest| !rest.is_empty() && !rest.contains('/'))
            .map(str::to_owned)),
        None => Ok(None),
    }
}

/// A folder that nobody else can read, in the first place that can be written: a container may have
/// few of them.
fn folder() -> Result<PathBuf> {
    let places = [std::env::temp_dir(), "/dev/shm".into(), "/var/tmp".into(), ".".into()];
    for place in &places {
        let path = place.join(format!("tare-stdout-{}", std::process::id()));
        if mkdir(&path, Mode::RWXU).is_ok() {
            return Ok(path);
        }
    }
    let tried: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    Err(io::Error::last_os_error()).with_context(|| {
        format!(
            "-o - needs a directory for a temporary file, and none of {} can be written; set TMPDIR",
            tried.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn a_bare_dash_has_the_ending_of_its_verb() {
        let check = |words: &[&str], expected: Option<&str>| {
            let mut cli = Cli::try_parse_from([&["tare"], words].concat()).unwrap();
            let found = cli.command.as_mut().and_then(output);
            let ending = found.and_then(|(path, ending)| asked(path, &ending).unwrap());
            assert_eq!(ending.as_deref(), expected, "{words:?}");
        };
        check(&["record", "1", "-o", "-"], Some("tare"));
        check(&["record", "1", "-o", "-.html"], Some("html"));
        check(&["record", "1", "-o", "x.html"], None);
        check(&["record", "1"], None);
        let junit = ["check", "--baseline", "b", "--junit-xml", "-", "--", "java"];
        check(&junit, Some("xml"));
        check(&["view", "1", "-o", "-"], Some("tare"));
        check(&["dump", "1", "-o", "-"], Some("tare"));
        check(&["climb", "1", "-o", "-"], Some("tare"));
        check(&["export", "x.tare", "-o", "-.pb.gz"], Some("pb.gz"));
        check(&["heap", "1", "-o", "-"], Some("tareheap"));
        check(&["heap", "1", "html", "-"], Some("html"));
        check(&["heap", "1", "export", "-"], Some("hprof"));
        check(&["instrument", "a.jar", "-o", "-"], Some("jar"));
        check(&["class", "weave", "--mode", "all", "A.class", "-o", "-"], Some("class"));
        assert!(asked(Path::new("-"), "").is_err());
        assert!(asked(Path::new("-./x"), "tare").unwrap().is_none());
        assert!(Cli::try_parse_from(["tare", "record", "1", "-o", "-d", "3s"]).is_err());
    }
}
