//! The whole terminal, for a picture that changes: its own screen, keys as they are pressed, no
//! cursor. However that ends, the terminal is as it was: at the end, at a panic, while the program
//! is stopped; after `kill -9` a small shell script sees to it, where there is a shell.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[2J\x1b[?25h\x1b[?1049l";

/// How the terminal was, for as long as it is ours.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// What threads that have panicked had to say, for when there is a place for it.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Told by a line on its input whether the terminal is ours, it puts it back when that ends.
const GUARD: &str = r#"
trap '' INT QUIT HUP TERM TSTP TTIN TTOU
exec 3<&1
saved=$(stty -g <&3) || exit 1
echo ready >&2
on=
while read -r word; do on=$word; done
[ "$on" = on ] || exit 0
stty "$saved" <&3
printf '\033[0m\033[?25h\033[?1049l'
"#;

/// Whether standard input and output are a terminal that can be drawn to.
pub fn can_be_full() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb
}

/// What came from outside.
pub enum Input {
    Bytes(Vec<u8>),
    /// Nothing, for as long as was to be waited.
    Nothing,
    /// The terminal has gone.
    Gone,
}

pub struct FullScreen {
    guard: Option<(Child, ChildStdin)>,
    resized: Arc<AtomicBool>,
    to_stop: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
}

impl FullScreen {
    pub fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(hook_panics);
        let flag = |signal| -> io::Result<Arc<AtomicBool>> {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            Ok(flag)
        };
        let (resized, to_stop, continued) = (flag(SIGWINCH)?, flag(SIGTSTP)?, flag(SIGCONT)?);
        let mut screen = FullScreen { guard: guard(), resized, to_stop, continued };
        screen.take()?;
        Ok(screen)
    }

    fn take(&mut self) -> io::Result<()> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        self.tell("on");
        BEFORE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(before);
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        send(ENTER)
    }

    fn tell(&mut self, word: &str) {
        // Without a guard there is nobody to tell.
        let told = self.guard.as_mut().map(|(_, input)| writeln!(input, "{word}"));
        if matches!(told, Some(Err(_))) {
            self.guard = None;
        }
    }

    /// Columns and lines.
    pub fn size(&self) -> (u16, u16) {
        let size = tcgetwinsize(io::stdout()).map(|size| (size.ws_col, size.ws_row));
        size.ok().filter(|(columns, lines)| *columns > 0 && *lines > 0).unwrap_or((80, 24))
    }

    /// Waits for keys, or until a signal has come.
    pub fn wait(&self, longest: Duration) -> io::Result<Input> {
        let stdin = io::stdin();
        let mut all = [PollFd::new(&stdin, PollFlags::IN)];
        let time = Timespec::try_from(longest).map_err(io::Error::other)?;
        match poll(&mut all, Some(&time)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Input::Nothing),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 1024];
        // Past the buffer of the standard library, whose bytes no poll tells of.
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) => Ok(Input::Gone),
            Ok(length) => Ok(Input::Bytes(bytes[..length].to_vec())),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(Input::Nothing),
            Err(_) => Ok(Input::Gone),
        }
    }

    /// Whether all is to be drawn anew: another size, or somebody else had the terminal.
    pub fn is_spoilt(&mut self) -> io::Result<bool> {
        let resized = self.resized.swap(false, Ordering::Relaxed);
        if self.to_stop.swap(false, Ordering::Relaxed) {
            self.suspend()?;
            return Ok(true);
        }
        // Stopped by a signal that cannot be caught: a shell has set the terminal to its own taste.
        if self.continued.swap(false, Ordering::Relaxed) {
            self.take()?;
            return Ok(true);
        }
        Ok(resized)
    }

    /// Gives the terminal back, and stops until somebody has us go on.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.tell("off");
        restore();
        kill_process(getpid(), Signal::STOP)?;
        self.continued.store(false, Ordering::Relaxed);
        self.take()
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.tell("off");
        restore();
        if let Some((mut child, input)) = self.guard.take() {
            drop(input);
            let _ = child.wait();
        }
        for text in PANICS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            super::put_error(format_args!("{text}\n"));
        }
    }
}

/// Makes the terminal what it was, once.
fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        // If the terminal has gone, there is nothing to make good.
        let _ = send(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

fn send(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// A message of the program's end belongs on the terminal as it was; one of another thread's end
/// would spoil the picture, and is kept.
fn hook_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let is_ours = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if is_ours && std::thread::current().name() != Some("main") {
            PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(format!("tare: {info}"));
            return;
        }
        restore();
        usual(info);
    }));
}

/// Nobody, where there is no shell.
fn guard() -> Option<(Child, ChildStdin)> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", GUARD]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::inherit()).process_group(0).spawn().ok()?;
    let (input, errors) = (child.stdin.take()?, child.stderr.take()?);
    let mut line = String::new();
    let read = BufReader::new(errors).read_line(&mut line);
    if read.is_ok() && line.trim_end() == "ready" {
        return Some((child, input));
    }
    drop(input);
    let _ = child.wait();
    None
}

/// Standard output without a buffer that would send half a picture.
pub fn output() -> io::Result<File> {
    Ok(File::from(rustix::io::dup(io::stdout())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::LocalModes;
    use std::io::Read;
    use std::time::Instant;

    /// It has a terminal, and panics while that is its own.
    #[test]
    #[ignore = "the next test starts it"]
    fn ends_by_a_panic() {
        let screen = FullScreen::enter().unwrap();
        assert!(!echoes(&io::stdin()), "the terminal is ours");
        let (columns, lines) = screen.size();
        panic!("a fault at {columns}x{lines}");
    }

    fn echoes(terminal: &impl std::os::fd::AsFd) -> bool {
        tcgetattr(terminal).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was() {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let screen = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let other = || screen.try_clone().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = "term::full::tests::ends_by_a_panic";
        command.args(["--exact", "--ignored", "--nocapture", name]).env("TERM", "xterm");
        command.stdin(other()).stdout(other()).stderr(other());
        let mut child = command.spawn().unwrap();
        let text = Arc::new(Mutex::new(String::new()));
        let (mut from, all) = (File::from(terminal), Arc::clone(&text));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = from.read(&mut piece) {
                all.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        });
        assert!(!child.wait().unwrap().success());
        assert!(echoes(&screen), "keys are shown again");
        let leave = std::str::from_utf8(LEAVE).unwrap();
        let limit = Instant::now() + Duration::from_secs(240);
        loop {
            let text = text.lock().unwrap().clone();
            let (drawn, after) = text.split_once(leave).unwrap_or((&text, ""));
            if after.contains("a fault at") {
                assert!(drawn.contains(std::str::from_utf8(ENTER).unwrap()), "{text:?}");
                assert!(!drawn.contains("a fault at"), "it spoils the picture: {text:?}");
                break;
            }
            assert!(Instant::now() < limit, "{text:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
