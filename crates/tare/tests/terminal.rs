//! What people see on a terminal: pages that fit it, a pager, and Java before all else.

#![forbid(unsafe_code)]

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use tare_profile::{
    Frame, Method, MethodKind, Profile, Row, SeriesId, SeriesInfo, Thread, ThreadId, ThreadKind,
    ValueKind,
};
use tare_recording::Writer;

const MS: i64 = 1_000_000;
const LONG: &str = "org.example.warehouse.inventory.reservation.ReservationCoordinator$Shelf";

/// A recording of its own for each test, gone with it.
struct Recording(PathBuf);

impl Recording {
    fn new(test: &str, profile: &Profile) -> Self {
        let name = format!("tare-terminal-{test}-{}.tare", std::process::id());
        let path = std::env::temp_dir().join(name);
        Writer::create(&path).unwrap().finish(profile).unwrap();
        Recording(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A profile that grows row by row.
struct Maker {
    profile: Profile,
    series: Vec<SeriesId>,
}

impl Maker {
    fn new(info: SeriesInfo) -> Self {
        let mut profile = Profile::new();
        profile.run.main_class = "org.example.warehouse.Main".to_owned();
        profile.run.jdk = "25.0.3".to_owned();
        profile.run.tool = "tare 0.1.0".to_owned();
        profile.run.host = "a-host-with-a-rather-long-name.example.org".to_owned();
        profile.run.duration = 5000 * MS as u64;
        let series = vec![profile.add_series(info)];
        Maker { profile, series }
    }

    fn thread(&mut self, name: &str, kind: ThreadKind) -> ThreadId {
        let name = self.profile.strings.intern(name);
        self.profile.threads.push(Thread { kind, name, ..Thread::default() })
    }

    /// Frames of the kernel begin with `k:`, of the JVM with `j:`, of libraries with `n:`.
    fn add(&mut self, thread: ThreadId, stack: &[String], values: &[i64]) {
        let profile = &mut self.profile;
        let frames: Vec<_> = stack
            .iter()
            .map(|name| {
                let (kind, module, name) = match name.split_once(':') {
                    Some(("k", name)) => (MethodKind::Kernel, "[kernel]", name),
                    Some(("j", name)) => (MethodKind::Native, "libjvm.so", name),
                    Some(("n", name)) => (MethodKind::Native, "libz.so", name),
                    _ => (MethodKind::Java, "shop.jar", name.as_str()),
                };
                let (class, name) = match kind {
                    MethodKind::Java => name.rsplit_once('.').unwrap(),
                    _ => ("", name),
                };
                let mut text = |text: &str| profile.strings.intern(text);
                let (class, name, module) = (text(class), text(name), text(module));
                let method = Method { kind, class, name, module, ..Method::default() };
                let method = profile.methods.intern(method);
                profile.frames.intern(Frame::of(method))
            })
            .collect();
        let context = profile.contexts.stack(frames);
        for (series, value) in self.series.iter().zip(values) {
            profile.series_mut(*series).push(Row::new(context, thread, *value));
        }
    }
}

fn sampled(name: &str, kind: ValueKind) -> SeriesInfo {
    SeriesInfo::new(name, kind.clone()).with_period(10_000_000, kind)
}

/// Deep stacks of long names, natives below them, and threads of the JVM.
fn add_work(maker: &mut Maker, values: &dyn Fn(i64) -> Vec<i64>) {
    let worker = maker.thread("http-nio-8080-exec-1", ThreadKind::Java);
    let mut stack = vec!["n:start_thread".to_owned(), "java.lang.Thread.run".to_owned()];
    for depth in 0..24_i64 {
        stack.push(format!("{LONG}{depth}.reserveAllOfTheShelf{depth}"));
        maker.add(worker, &stack, &values(20 * MS));
        let side = [stack.clone(), vec![format!("org.example.Side{depth}.look")]].concat();
        maker.add(worker, &side, &values(10 * MS));
    }
    let natives = ["java.net.Socket.read", "n:read", "k:__schedule", "k:finish_task_switch"];
    stack.extend(natives.map(str::to_owned));
    maker.add(worker, &stack, &values(2000 * MS));
}

fn cpu() -> Profile {
    let mut maker = Maker::new(sampled("cpu", ValueKind::CpuTime));
    add_work(&mut maker, &|value| vec![value]);
    let compiler = maker.thread("C2 CompilerThre", ThreadKind::Vm);
    let stack = ["n:start_thread", "j:Compile::Optimize"].map(str::to_owned);
    maker.add(compiler, &stack, &[280 * MS]);
    maker.profile
}

fn wall() -> Profile {
    let mut maker = Maker::new(sampled("wall", ValueKind::WallTime));
    let parked = maker.profile.add_series(sampled("parked", ValueKind::WallTime));
    add_work(&mut maker, &|value| vec![value]);
    maker.series.push(parked);
    let pool = "java.util.concurrent.ThreadPoolExecutor";
    let idle = [&format!("{pool}.runWorker"), &format!("{pool}.getTask"), "n:futex_wait"];
    let idle = idle.map(|name| name.to_string());
    for number in 0..20 {
        let thread = maker.thread(&format!("pool-1-thread-{number}"), ThreadKind::Java);
        maker.add(thread, &idle, &[5000 * MS; 2]);
    }
    maker.profile
}

fn exact() -> Profile {
    let mut maker = Maker::new(SeriesInfo::new("exact", ValueKind::WallTime));
    let calls = SeriesInfo::new("exact", ValueKind::Invocations);
    let calls = maker.profile.add_series(calls);
    maker.series.push(calls);
    add_work(&mut maker, &|value| vec![value, value / 7]);
    maker.profile
}

/// Runs `tare` with a terminal of so many columns and rows as its output; what that shows.
fn on_terminal(
    (columns, rows): (u16, u16),
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (String, ExitStatus) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let screen = File::options().read(true).write(true).open(Path::new(name.to_str().unwrap()));
    let screen = screen.unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    command.args(arguments).env("TERM", "xterm").env_remove("NO_COLOR").env_remove("PAGER");
    command.env_remove("TARE_PAGER").env_remove("LESS").envs(variables.iter().copied());
    command.stdin(Stdio::null()).stderr(screen.try_clone().unwrap()).stdout(screen);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut shown = Vec::new();
    let mut terminal = File::from(terminal);
    let mut piece = [0; 4096];
    // The last one who has the terminal open takes it along: an error, not an end.
    while let Ok(length @ 1..) = terminal.read(&mut piece) {
        shown.extend_from_slice(&piece[..length]);
    }
    let status = child.wait().unwrap();
    (String::from_utf8(shown).unwrap().replace("\r\n", "\n"), status)
}

/// Text without the sequences that style it.
fn unstyled(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('\x1b') {
        out.push_str(before);
        rest = from.split_once('m').map_or("", |(_, after)| after);
    }
    out + rest
}

fn piped(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tare")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn pages_fit_the_terminal_and_keep_the_names_of_methods() {
    for (name, profile) in [("cpu", cpu()), ("wall", wall()), ("exact", exact())] {
        let file = Recording::new(&format!("fit-{name}"), &profile);
        for view in [
            &[][..],
            &["--threads"],
            &["--bottom-up"],
            &["--native"],
            &["--idle"],
            &["--full"],
            &["--by", "class"],
            &["--by", "jar"],
            &["--method", "reserveAllOfTheShelf7"],
        ] {
            let arguments = [&["report", file.path(), "--no-pager"], view].concat();
            for columns in [80, 100, 120] {
                let (text, status) = on_terminal((columns, 24), &arguments, &[]);
                assert!(status.success(), "{arguments:?}: {text}");
                let text = unstyled(&text);
                let fits = |line: &&str| {
                    // Commands stay whole, to be copied.
                    line.chars().count() <= usize::from(columns) || line.contains("tare report ")
                };
                let wide: Vec<&str> = text.lines().filter(|line| !fits(line)).collect();
                assert!(wide.is_empty(), "{name} {view:?} at {columns}: {wide:#?}");
                if view.is_empty() {
                    assert!(text.contains(".reserveAllOfTheShelf7\n"), "{columns}: {text}");
                }
            }
        }
        let whole = piped(&["report", file.path(), "--full"]);
        assert!(whole.contains(&format!("{LONG}23.reserveAllOfTheShelf23\n")), "{whole}");
    }
}

/// Exact counts of a deep recursion, with something that differs at its end, in contexts of long
/// names.
fn counted(differs: i64) -> Profile {
    let mut maker = Maker::new(SeriesInfo::new("exact", ValueKind::Bytecodes));
    let thread = maker.thread("main", ThreadKind::Java);
    let deep = vec![format!("{LONG}.reserveAgain"); 2000];
    let end: Vec<String> = (0..30).map(|n| format!("{LONG}{n}.lookUpTheShelf{n}")).collect();
    maker.add(thread, &[&deep[..], &end].concat(), &[1000 + differs]);
    maker.add(thread, &deep[..1], &[1000]);
    maker.profile
}

#[test]
fn comparisons_fit_the_terminal_and_have_java_first() {
    let mut grown = cpu();
    let thread = ThreadId::new(2);
    let series = SeriesId::new(0);
    let rows: Vec<Row> = grown.series(series).rows().collect();
    for row in rows {
        let more = row.thread == thread || row.value >= 2000 * MS;
        let row = Row { value: if more { row.value * 2 } else { 0 }, ..row };
        grown.series_mut(series).push(row);
    }
    let (old, new) = (Recording::new("diff-old", &cpu()), Recording::new("diff-new", &grown));
    let (few, more) =
        (Recording::new("diff-few", &counted(0)), Recording::new("diff-more", &counted(1)));
    let (idle, idler) =
        (Recording::new("diff-wall", &wall()), Recording::new("diff-idle", &wall()));
    for files in [[&old, &new], [&few, &more], [&idle, &idler]] {
        for view in [&[][..], &["--native"], &["--idle"], &["--threshold", "5000%"]] {
            let files = files.map(Recording::path);
            let arguments = [&["diff", "--no-pager"], &files[..], view].concat();
            let (text, status) = on_terminal((80, 24), &arguments, &[]);
            assert!(status.success(), "{arguments:?}: {text}");
            let text = unstyled(&text);
            let wide = text.lines().filter(|line| line.chars().count() > 80);
            // Paths stay whole, to be copied.
            let wide: Vec<&str> = wide.filter(|line| !line.contains("/")).collect();
            assert!(wide.is_empty(), "{view:?}: {wide:#?}");
            assert!(text.lines().count() < 100, "{text}");
        }
    }
    let page = piped(&["diff", old.path(), new.path()]);
    for gone in ["finish_task_switch", "Compile::Optimize"] {
        assert!(!page.contains(gone), "{gone} is in\n{page}");
    }
    for part in ["java.net.Socket.read\n", "[JVM itself]", "(--native compares them)"] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
    let native = piped(&["diff", old.path(), new.path(), "--native"]);
    assert!(native.contains("finish_task_switch"), "{native}");
    let java = piped(&["diff", old.path(), new.path(), "--java-only", "--format", "json"]);
    assert!(!java.contains("finish_task_switch"), "{java}");
    let waiting = piped(&["diff", idle.path(), idler.path()]);
    assert!(waiting.contains("waiting for work is left out, 100 s and 100 s (--idle compares it)"));
    let path = piped(&["diff", few.path(), more.path()]);
    for part in [&format!("{LONG}.reserveAgain × 2,000"), "… 15 more (--format json has them) …"]
    {
        assert!(path.contains(part), "{part:?} is not in\n{path}");
    }
    assert!(path.contains(&format!("{LONG}29.lookUpTheShelf29\n")), "{path}");
}

/// Threads of the JVM that did more are in the whole; they are no method that got slower.
#[test]
fn the_jvms_own_threads_exceed_no_threshold() {
    let jvm_did = |times: i64| {
        let mut maker = Maker::new(sampled("cpu", ValueKind::CpuTime));
        let worker = maker.thread("main", ThreadKind::Java);
        let stack = ["a.Main.main".to_owned()];
        let less = ["a.Main.rest".to_owned()];
        maker.add(worker, &stack, &[5000 * MS]);
        maker.add(worker, &less, &[(9 - times) * 1000 * MS]);
        let compiler = maker.thread("C2 CompilerThre", ThreadKind::Vm);
        maker.add(compiler, &["j:compile".to_owned()], &[times * 1000 * MS]);
        maker.profile
    };
    let (old, new) =
        (Recording::new("jvm-old", &jvm_did(1)), Recording::new("jvm-new", &jvm_did(8)));
    let status = |more: &[&str]| {
        let words = [&["diff", old.path(), new.path(), "--threshold", "5%"], more].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_tare")).args(words).output().unwrap();
        output.status.code()
    };
    assert_eq!(status(&[]), Some(0));
    assert_eq!(status(&["--format", "json"]), Some(0));
    assert_eq!(status(&["--native"]), Some(3));
}

/// What the machine is like differs, and with it what is said.
#[test]
fn what_is_said_of_machine_and_jvms_fits_the_terminal() {
    for words in [&["doctor"][..], &["ps"], &[]] {
        let (text, _) = on_terminal((80, 24), words, &[]);
        let text = unstyled(&text);
        // Paths stay whole, to be copied.
        let wide = text.lines().filter(|line| line.chars().count() > 80 && !line.contains('/'));
        assert_eq!(wide.collect::<Vec<_>>(), [""; 0], "{words:?}");
    }
}

#[test]
fn java_comes_first_and_sums_stay_the_same() {
    let file = Recording::new("java", &cpu());
    let json = |more: &[&str]| {
        let arguments = [&["report", file.path(), "--format", "json"], more].concat();
        let text = piped(&arguments);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        (text, value)
    };
    let page = piped(&["report", file.path()]);
    assert!(!page.contains("finish_task_switch"), "{page}");
    for part in [
        "▸ java.net.Socket.read itself takes 66.7 %",
        "   66.7 %   66.7 %      2.00 s  java.net.Socket.read  [kernel 100 %]",
        "\n  JVM itself: compilers 9.3 %\n",
        "3.00 s of cpu-time (0.60 processors busy on average), one per 10.0 ms",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
    let native = piped(&["report", file.path(), "--native"]);
    for part in ["3.00 s of cpu-time", "finish_task_switch (kernel)", "Compile::Optimize (native)"]
    {
        assert!(native.contains(part), "{part:?} is not in\n{native}");
    }
    let findings = native.split("Methods, by").next().unwrap();
    assert!(!findings.contains("finish_task_switch"), "{findings}");
    // Who asks for a function by its name gets it.
    let around = piped(&["report", file.path(), "--method", "finish_task_switch"]);
    assert!(around.contains("__schedule (kernel)"), "{around}");
    let (text, value) = json(&[]);
    assert!(text.contains("finish_task_switch"), "JSON is complete");
    assert!(!value["findings"].to_string().contains("finish_task_switch"), "{}", value["findings"]);
    let (java, only) = json(&["--java-only"]);
    assert!(!java.contains("finish_task_switch") && java.contains("[no Java frame]"), "{java}");
    assert_eq!(only["total"], value["total"]);
}

#[test]
fn idle_threads_are_a_sum() {
    let file = Recording::new("idle", &wall());
    let page = piped(&["report", file.path()]);
    for part in [
        "103 s of wall-time (5.00 s × 20.5 threads on average)",
        "▸ 20 of 21 threads were idle all the time: 100 s of waiting for work",
        "shares are of the other 2.72 s (--idle shows all)",
        "▸ java.net.Socket.read itself takes 73.5 %",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
    assert!(!page.contains("getTask"), "{page}");
    let threads = piped(&["report", file.path(), "--threads"]);
    assert!(threads.contains("http-nio-8080-exec-1"), "{threads}");
    assert!(!threads.contains("pool-1-thread"), "{threads}");
    let all = piped(&["report", file.path(), "--idle"]);
    assert!(all.contains("▸ java.util.concurrent.ThreadPoolExecutor.getTask itself"), "{all}");
    let json = piped(&["report", file.path(), "--format", "json"]);
    assert!(json.contains("ThreadPoolExecutor.getTask"), "JSON is complete");
}

#[test]
fn long_pages_go_through_a_pager_on_a_terminal_and_only_there() {
    let file = Recording::new("pager", &cpu());
    let report = ["report", file.path()];
    let marks = ("TARE_PAGER", "sed s/^/paged:/");
    let shown = |rows, more: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&report[..], more].concat();
        let (text, status) = on_terminal((100, rows), &arguments, variables);
        assert!(status.success(), "{variables:?}: {text}");
        text
    };
    let whole = shown(24, &["--no-pager"], &[marks]);
    assert!(whole.contains("\x1b[1mFindings\x1b[0m") && !whole.contains("paged:"), "{whole}");
    let paged = shown(24, &[], &[marks]);
    assert_eq!(paged.replace("paged:", ""), whole, "all of it, colours too");
    assert!(paged.lines().all(|line| line.starts_with("paged:")), "{paged}");
    assert_eq!(shown(24, &[], &[("PAGER", marks.1)]), paged);
    assert_eq!(shown(24, &[], &[("PAGER", marks.1), ("TARE_PAGER", "cat")]), whole);
    assert_eq!(shown(1000, &[], &[marks]), whole, "it fits the terminal");
    // One that is not there, be it chosen or the usual one, is no reason to show nothing.
    assert!(shown(24, &[], &[("PAGER", "no-such-pager")]).ends_with(&whole));
    assert_eq!(shown(24, &[], &[("PATH", "/nowhere")]), whole);
    // Ctrl-C is the pager's, and who leaves it early has seen enough.
    let interrupting = "kill -INT $PPID; cat";
    assert_eq!(shown(24, &[], &[("TARE_PAGER", interrupting)]), whole);
    let first = shown(24, &[], &[("TARE_PAGER", "head -n 1")]);
    assert_eq!(first, whole.lines().next().unwrap().to_owned() + "\n");
    let output =
        Command::new(env!("CARGO_BIN_EXE_tare")).args(report).envs([marks]).output().unwrap();
    assert!(!String::from_utf8(output.stdout).unwrap().contains("paged:"), "a pipe has none");
}
