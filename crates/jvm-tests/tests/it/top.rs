//! `tare top`: on a terminal and for scripts; it gives way to others, weighs a method and takes it
//! back, and leaves terminal and JVM as they were, however it ends.

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};
use tare_jvm_tests::{Demo, Scratch, Tare, on_each_jdk, wait_until};

const LEAVES: &str = "\x1b[?1049l";

/// `tare top` with a terminal of 80 columns and 24 lines.
struct Top {
    child: Child,
    keyboard: File,
    /// The side that the program has.
    screen: File,
    sent: Arc<Mutex<String>>,
}

impl Top {
    fn start(jvm: &str, directory: &Path) -> Top {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&terminal).expect("a terminal");
        unlockpt(&terminal).expect("a terminal");
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).expect("a terminal");
        let name = ptsname(&terminal, Vec::new()).expect("a terminal");
        let name = Path::new(name.to_str().expect("a plain name"));
        let screen = File::options().read(true).write(true).open(name).expect("a terminal");
        let other = || screen.try_clone().expect("a terminal");
        let mut command = Tare::this().directory(directory).command(&["top", jvm]);
        command.env("TERM", "xterm").env("NO_COLOR", "1").env("LC_ALL", "C.UTF-8");
        command.stdin(other()).stdout(other()).stderr(other());
        let child = command.spawn().expect("tare");
        let keyboard = File::from(terminal);
        let sent = Arc::new(Mutex::new(String::new()));
        let mut terminal = keyboard.try_clone().expect("a terminal");
        let text = Arc::clone(&sent);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = terminal.read(&mut piece) {
                let piece = String::from_utf8_lossy(&piece[..length]);
                text.lock().expect("no panic").push_str(&piece);
            }
        });
        Top { child, keyboard, screen, sent }
    }

    fn text(&self) -> String {
        self.sent.lock().expect("no panic").clone()
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Waits until the screen has a text. Only what changes is sent, so it is drawn anew each time.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        wait_until(text, || {
            self.sent.lock().expect("no panic").clear();
            self.press("\x0c");
            std::thread::sleep(std::time::Duration::from_millis(300));
            self.text().contains(text)
        });
    }

    /// Whether what is typed is shown, which a program that draws switches off.
    fn echoes(&self) -> bool {
        tcgetattr(&self.screen).expect("a terminal").local_modes.contains(LocalModes::ECHO)
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a pid"), signal).expect("our own child");
    }

    #[track_caller]
    fn ends(&mut self, code: Option<i32>) {
        assert_eq!(self.child.wait().expect("our own child").code(), code, "{}", self.text());
        wait_until("the terminal is as it was", || self.echoes());
        wait_until("its screen is left", || self.text().contains(LEAVES));
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_alone(demo: &Demo) -> bool {
    let listed = Tare::this().listed(demo.target.pid()).expect("it is a JVM");
    listed["agent"] == "detached"
}

/// The lines that were printed so far.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

on_each_jdk! {
    fn top_on_a_terminal(jdk) {
        let scratch = Scratch::new();
        let demo = Demo::start(jdk);
        let mut top = Top::start(&demo.target.name(), scratch.path());
        top.shows("shop.");
        assert!(!top.echoes(), "keys are not shown");
        // The method that takes most is weighed, and its code put back.
        // There are rows from the second second on.
        top.press("/OrderDesk.handle\r");
        wait_until("its callers are shown", || {
            top.press("k\x0c");
            std::thread::sleep(std::time::Duration::from_millis(300));
            top.text().contains("called by")
        });
        top.press("e");
        top.shows("calls/s, mean");
        demo.check_answers();
        top.press("e");
        top.shows("exact, over");
        let status = Tare::this().status(&demo.target.name());
        let engines = status["engines"].to_string();
        assert!(!engines.contains("exact"), "{engines}");
        for (key, text) in [("2", "mostly in"), ("3", "cause"), ("4", "held in"), ("5", "needed by")] {
            top.press(key);
            top.shows(text);
        }
        // A recording that is begun and ended from here.
        top.press("r");
        top.shows("REC ");
        let is_there = || std::fs::read_dir(scratch.path()).expect("ours").flatten().next();
        wait_until("the file is there", || is_there().is_some());
        std::thread::sleep(std::time::Duration::from_secs(2));
        top.press("r");
        top.shows("recorded into");
        let file = is_there().expect("a file").path();
        let report = Tare::this().run(&["report", "--no-pager", file.to_str().expect("plain")]);
        assert!(report.ok().contains("shop."), "{}", report.describe());
        top.press("q");
        top.ends(Some(0));
        assert!(is_alone(&demo), "the agent has left");
        demo.check_answers();
    }

    fn top_that_is_ended(jdk) {
        let scratch = Scratch::new();
        let demo = Demo::start(jdk);
        for (signal, code) in [(Signal::TERM, Some(0)), (Signal::KILL, None)] {
            let mut top = Top::start(&demo.target.name(), scratch.path());
            wait_until("methods are on the screen", || top.text().contains("shop."));
            // Stopped by a key or by a signal, it gives the terminal back for as long.
            match code {
                Some(_) => top.press("\x1a"),
                None => top.signal(Signal::TSTP),
            }
            wait_until("it is stopped", || top.is_stopped());
            assert!(top.echoes(), "keys are shown meanwhile");
            wait_until("its screen is left", || top.text().contains(LEAVES));
            top.signal(Signal::CONT);
            top.shows("shop.");
            assert!(!top.echoes(), "keys are not shown again");
            top.signal(signal);
            top.ends(code);
            if code.is_some() {
                assert!(is_alone(&demo), "the agent has left");
            }
        }
        let engines = || Tare::this().status(&demo.target.name())["engines"].to_string();
        wait_until("nothing is on in the JVM", || engines() == "[]");
        demo.check_answers();
        // And the JVM may end first.
        let mut top = Top::start(&demo.target.name(), scratch.path());
        wait_until("methods are on the screen", || top.text().contains("shop."));
        demo.target.signal(Signal::KILL);
        wait_until("it is said", || top.text().contains("has ended"));
        top.press("q");
        top.ends(Some(0));
    }

    fn top_for_scripts(jdk) {
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let once = Tare::this().run(&["top", &name, "--once", "--every", "2s"]);
        assert!(once.ok().contains("Methods") && once.ok().contains("shop."), "{}", once.describe());
        let words = ["top", &name, "--json", "-n", "2", "--every", "2s", "--rows", "5"];
        let printed = Tare::this().run(&words);
        let all = lines(printed.ok());
        assert_eq!(all.len(), 2, "{}", printed.describe());
        let last = &all[1];
        assert_eq!(last["standing"], "live", "{last}");
        assert!(last["samples"].as_u64().is_some_and(|samples| samples > 0), "{last}");
        assert!(last["allocated_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{last}");
        assert!(last["cpu"].as_f64().is_some_and(|cpu| cpu > 0.0), "{last}");
        let methods = last["methods"].as_array().expect("methods");
        assert!((1..=5).contains(&methods.len()), "{last}");
        let own: Vec<f64> = methods.iter().filter_map(|one| one["own"].as_f64()).collect();
        assert!(own.is_sorted_by(|a, b| a >= b) && own[0] > 0.0, "{last}");
        assert!(last["threads"].as_array().is_some_and(|threads| !threads.is_empty()), "{last}");
        assert!(is_alone(&demo), "the agent has left");
        demo.check_answers();
    }

    /// Whoever records gets what top has, without a word of complaint, and top has it again later.
    fn top_gives_way(jdk) {
        let scratch = Scratch::new();
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let top = Tare::this().start(&["top", &name, "--json", "--every", "1s", "-n", "90"]);
        let engines = || Tare::this().status(&name)["engines"].to_string();
        wait_until("top samples", || engines().contains("locks"));
        let tare = Tare::this().directory(scratch.path());
        // The demo does little: samples take a while.
        let sampled = ["10s", "--cpu", "--alloc", "--classes", "--interval", "1ms"];
        for more in [&["3s", "--alloc"][..], &["3s", "--lock"], &sampled] {
            let words = [&["record", "-o", "x.tare", "-d"], more, &[name.as_str()]].concat();
            let outcome = tare.run(&words);
            outcome.ok();
            assert!(!outcome.describe().contains("cannot be"), "{}", outcome.describe());
            wait_until("top samples again", || engines().contains("locks"));
        }
        top.signal(Signal::INT);
        let outcome = top.wait();
        let all = lines(outcome.ok());
        let waits = |line: &&Value| line["standing"] == "waiting";
        let waited: Vec<&Value> = all.iter().filter(waits).collect();
        let told: Vec<String> =
            waited.iter().map(|line| format!("{} {}", line["why"], line["samples"])).collect();
        let told = told.join("\n");
        assert!(told.contains("tare record -o x.tare -d 3s"), "{told}");
        // What the other one records is shown.
        assert!(waited.iter().any(|line| line["samples"].as_u64() > Some(0)), "{told}");
        demo.check_answers();
    }

    /// Recordings that follow each other at once: each is named, and what it records is shown.
    fn top_beside_one_after_the_other(jdk) {
        let scratch = Scratch::new();
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let printed = scratch.join("printed");
        let mut command = Tare::this().command(&["top", &name, "--json", "--every", "1s", "-n", "900"]);
        command.stdout(File::create(&printed).expect("our own directory"));
        let mut top = command.spawn().expect("tare");
        let says = |text: &str| {
            let all = std::fs::read_to_string(&printed).expect("our own file");
            let whole = all.rsplit_once('\n').map_or("", |(whole, _)| whole);
            lines(whole).iter().any(|line| {
                let is_it = line["why"].as_str().is_some_and(|why| why.contains(text));
                is_it && line["samples"].as_u64() > Some(0)
            })
        };
        let tare = Tare::this().directory(scratch.path());
        let mut last: Option<tare_jvm_tests::Running> = None;
        for file in ["a.tare", "b.tare", "c.tare"] {
            if let Some(last) = last.take() {
                last.signal(Signal::INT);
                last.wait().ok();
            }
            last = Some(tare.start(&["record", "--wall", "-o", file, &name]));
            wait_until(file, || says(file));
        }
        if let Some(last) = last {
            last.signal(Signal::INT);
            last.wait().ok();
        }
        let pid = i32::try_from(top.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, Signal::INT).expect("our own child");
        assert!(top.wait().expect("our own child").success());
        demo.check_answers();
        demo.finish();
    }
}
