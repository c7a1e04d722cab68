//! What `tare record` and `tare check` show on a terminal of 80 columns: lines that fit, of
//! progress and at the end; and with `-q` nothing.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use tare_jvm_tests::{Demo, Scratch, Tare, classes_in, jdk};

const COLUMNS: u16 = 80;

/// Runs a command with a terminal as its output; what that was sent, and the exit status.
fn shown(tare: &Tare, words: &[&str]) -> (String, Option<i32>) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("a terminal");
    unlockpt(&terminal).expect("a terminal");
    let size = Winsize { ws_row: 200, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("a terminal");
    let name = ptsname(&terminal, Vec::new()).expect("a terminal");
    let name = Path::new(name.to_str().expect("a plain name"));
    let screen = File::options().read(true).write(true).open(name).expect("a terminal");
    let mut command = tare.command(words);
    command.env("TERM", "xterm").env("NO_COLOR", "1").stdin(Stdio::null());
    command.stderr(screen.try_clone().expect("a terminal")).stdout(screen);
    let mut child = command.spawn().expect("tare");
    drop(command);
    let mut sent = Vec::new();
    let mut terminal = File::from(terminal);
    let mut piece = [0; 4096];
    // The last one who has the terminal open takes it along: an error, not an end.
    while let Ok(length @ 1..) = terminal.read(&mut piece) {
        sent.extend_from_slice(&piece[..length]);
    }
    let status = child.wait().expect("our own child");
    (String::from_utf8_lossy(&sent).into_owned(), status.code())
}

/// What begins a line of progress.
const PROGRESS: &str = "\r\x1b[K";

#[track_caller]
fn assert_fits(words: &[&str], text: &str) {
    let plain = text.replace(PROGRESS, "\n");
    // Commands and paths stay whole, to be copied.
    let copied = |line: &str| line.contains('/') || line.contains("tare ");
    let wide =
        plain.lines().map(str::trim_end).filter(|line| line.chars().count() > COLUMNS.into());
    let wide: Vec<&str> = wide.filter(|line| !copied(line)).collect();
    assert!(wide.is_empty(), "{words:?}: {wide:#?}");
}

#[test]
fn recordings_on_a_terminal() {
    let scratch = Scratch::new();
    let demo = Demo::start(jdk());
    let pid = demo.target.pid().to_string();
    let tare = Tare::this().directory(scratch.path());
    for mode in [
        &["-o", "cpu.tare"][..],
        &["--wall", "-o", "wall.tare"],
        &["--exact", "-o", "exact.tare"],
        &["--exact", "--overhead", "5%", "-o", "overhead.tare"],
        &["--exact", "--root", "shop.orders.OrderDesk.*", "-o", "root.tare"],
        &["--trace", "-o", "trace.tare"],
    ] {
        let words = [&["record", "-d", "3s"], mode, &[&pid]].concat();
        let (text, status) = shown(&tare, &words);
        assert_eq!(status, Some(0), "{words:?}: {text}");
        assert!(text.contains(PROGRESS), "{words:?} shows how it goes: {text}");
        assert_fits(&words, &text);
        let words = [&words[..], &["-q"]].concat();
        let (text, status) = shown(&tare, &words);
        assert_eq!((text.as_str(), status), ("", Some(0)), "{words:?}");
    }
    for words in [
        ["diff", "--no-pager", "cpu.tare", "cpu.tare"],
        ["report", "--no-pager", "cpu.tare", "--gc"],
        ["report", "--no-pager", "trace.tare", "--gc"],
    ] {
        let (text, status) = shown(&tare, &words);
        assert_eq!(status, Some(0), "{text}");
        assert_fits(&words, &text);
    }
    drop(demo);
}

#[test]
fn checks_on_a_terminal() {
    let scratch = Scratch::new();
    let source = "public class Job {
        static int work(int n) { int s = 0; for (int i = 0; i < n; i++) { s += i ^ n; } return s; }
        public static void main(String[] words) throws Exception {
            int sum = 0;
            for (int i = 0; i < 1000; i++) { sum += work(1000); Thread.sleep(2); }
            System.exit(sum == 7 ? 1 : 0);
        }
    }";
    classes_in(scratch.path(), "Job", source);
    let java = jdk().java().display().to_string();
    let tare = Tare::this().directory(scratch.path());
    let program = ["--", &java, "-cp", ".", "Job"];
    for more in [&["--update"][..], &[]] {
        let words = [&["check", "--baseline", "perf.tare"], more, &program].concat();
        let (text, status) = shown(&tare, &words);
        assert_eq!(status, Some(0), "{text}");
        assert!(!text.contains(PROGRESS), "{words:?}: {text}");
        assert_fits(&words, &text);
    }
}
