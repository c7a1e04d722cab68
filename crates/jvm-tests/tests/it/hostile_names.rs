//! A program whose threads, classes, methods and files have names that would steer a terminal, or
//! that pretend to be lines of ours; and one that was started with passwords.

use crate::common::assert_no_trace;
use std::fs;
use std::path::Path;
use tare_jvm_tests::{
    Outcome, Scratch, Tare, Target, compiled, jdk, jdk_tool, on_each_jdk, wait_until,
};

/// Names are patched into a class file, so each has as many bytes as the one that it replaces. A
/// class or method may be called anything without `.`, `;`, `[` and `/`.
const HOSTILE: &str = r#"
import java.lang.invoke.MethodHandles;
import java.nio.charset.StandardCharsets;

public class Hostile {
    public static void main(String[] args) throws Throwable {
        byte[] bytes = Hostile.class.getResourceAsStream("/Template_of_20_bytes.class").readAllBytes();
        replace(bytes, "Template_of_20_bytes", "Te\u001bc\u009b2J\u202e\nINJECTED");
        replace(bytes, "spin_around_14", "sp\u001bc\nINJECTED\u007f");
        Class<?> hostile = MethodHandles.lookup().defineClass(bytes);
        Runnable spinner = (Runnable) hostile.getDeclaredConstructor().newInstance();
        Thread thread = new Thread(spinner, "\u001b]0;pwned\u0007\u001b[2J\r\nINJECTED \u202e\u009b31m");
        thread.setDaemon(true);
        thread.start();
        Thread turner = new Thread(() -> turn((java.util.function.IntSupplier) spinner));
        turner.setDaemon(true);
        turner.start();
        System.out.println("ready");
        while (System.in.read() >= 0) {
        }
    }

    private static void turn(java.util.function.IntSupplier supplier) {
        while (true) {
            once(supplier);
        }
    }

    private static void once(java.util.function.IntSupplier supplier) {
        try {
            Thread.sleep(supplier.getAsInt());
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void replace(byte[] bytes, String from, String to) {
        byte[] a = from.getBytes(StandardCharsets.UTF_8);
        byte[] b = to.getBytes(StandardCharsets.UTF_8);
        if (a.length != b.length) {
            throw new IllegalArgumentException(a.length + " " + b.length);
        }
        for (int at = 0; at + a.length <= bytes.length; at++) {
            if (java.util.Arrays.equals(bytes, at, at + a.length, a, 0, a.length)) {
                System.arraycopy(b, 0, bytes, at, b.length);
            }
        }
    }
}
"#;

const TEMPLATE: &str = r#"
public class Template_of_20_bytes implements Runnable, java.util.function.IntSupplier {
    static volatile long sink;

    public void run() {
        while (true) {
            spin_around_14();
        }
    }

    public int getAsInt() {
        spin_around_14();
        return 10;
    }

    private void spin_around_14() {
        long sum = 0;
        for (int i = 0; i < 100_000; i++) {
            sum += i * sum;
        }
        sink = sum;
    }
}
"#;

/// The styles that are Tare's own.
const OURS: [&str; 6] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];

/// Nothing steers a terminal, and no name has made a line of its own. `INJECTED` shows that the
/// hostile name was met at all.
#[track_caller]
pub fn assert_harmless(what: &str, text: &str, met: bool) {
    let mut rest = text.to_owned();
    for style in OURS {
        rest = rest.replace(style, "");
    }
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let found: Vec<char> = rest.chars().filter(|c| steers(*c)).collect();
    assert!(found.is_empty(), "{what}: {found:?} in {text:?}");
    let forged = rest.lines().find(|line| line.starts_with("INJECTED"));
    assert!(forged.is_none(), "{what}: a line of its own: {text:?}");
    if met {
        assert!(text.contains("INJECTED") || text.contains("pwned"), "{what}: {text}");
    }
}

fn both(outcome: &Outcome) -> String {
    format!("{}{}", outcome.out, outcome.err)
}

pub fn hostile_jar(scratch: &Scratch) -> std::path::PathBuf {
    let classes = scratch.join("classes");
    fs::create_dir(&classes).unwrap();
    compiled(&classes, &[("Hostile.java", HOSTILE), ("Template_of_20_bytes.java", TEMPLATE)]);
    let plain = scratch.join("plain.jar").display().to_string();
    jdk_tool("jar", &["cfe", &plain, "Hostile", "-C", &classes.display().to_string(), "."]);
    let jar = scratch.join("a\u{1b}]0;pwned\u{7}\u{1b}[2J\nINJECTED\u{202e}.jar");
    fs::rename(&plain, &jar).unwrap();
    jar
}

fn path(file: &Path) -> String {
    file.display().to_string()
}

on_each_jdk! {
    fn no_verb_passes_them_on(jdk) {
        let scratch = Scratch::new();
        let jar = hostile_jar(&scratch);
        let target = Target::jar(jdk, &jar).start();
        let name = target.name();
        // As on a terminal: what is written into a pipe has no styles, and loses sequences anyway.
        let tare = Tare::this().var("CLICOLOR_FORCE", "1").directory(scratch.path());
        let check = |what: &str, words: &[&str], met: bool| {
            let outcome = tare.run(words);
            assert_eq!(outcome.code, 0, "{what}: {}", outcome.describe());
            assert_harmless(what, &both(&outcome), met);
        };
        check("tare", &[], true);
        check("ps", &["ps"], true);
        check("ps --json", &["ps", "--json"], true);
        check("status", &["status", &name], true);
        check("status --json", &["status", &name, "--json"], true);
        check("doctor", &["doctor", &name], true);
        // Without a name of its own, the file is named after the program.
        check("detach", &["detach", &name], true);
        check("record", &["record", "-d", "1s", &name], true);
        let files = fs::read_dir(scratch.path()).unwrap().filter_map(Result::ok);
        let files: Vec<String> =
            files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let made = files.iter().find(|file| file.ends_with(".tare")).expect("a recording");
        assert!(!made.contains(char::is_control), "{made:?}");
        check("record --exact", &["record", "--exact", "-d", "1s", "-o", "e.tare", &name], true);
        check("record --trace", &["record", "--trace", "-d", "500ms", "-o", "t.tare", &name], true);
        for (what, more) in [
            ("report", &[][..]),
            ("report --threads", &["--threads"]),
            ("report --bottom-up", &["--bottom-up"]),
            ("report --method", &["--method", "INJECTED"]),
            ("report --by line", &["--by", "line"]),
            ("report hprof", &["--format", "hprof-text"]),
            ("report json", &["--format", "json"]),
        ] {
            for file in [made, "e.tare", "t.tare"] {
                let words = [&["report", file], more].concat();
                let outcome = tare.run(&words);
                // A pattern need not fit; what is said then is harmless, too.
                assert!(outcome.code == 0 || what.contains("method"), "{}", outcome.describe());
                assert_harmless(what, &both(&outcome), outcome.code == 0);
            }
        }
        check("diff", &["diff", "e.tare", "t.tare"], true);
        check("export", &["export", "e.tare", "-o", "e.collapsed"], false);
        let collapsed = fs::read_to_string(scratch.join("e.collapsed")).unwrap();
        for line in collapsed.lines() {
            let value = line.rsplit(' ').next().and_then(|value| value.parse::<i64>().ok());
            assert!(value.is_some() && !line.contains(char::is_control), "{line:?}");
        }
        let root = ["record", "--exact", "--root", "Hostile.once", "-o", "r.tare", &name];
        let recording = tare.start(&root);
        wait_until("it is woven", || {
            let outcome = tare.run(&["explain", &name, "**.getAsInt"]);
            assert_harmless("explain", &both(&outcome), false);
            outcome.code == 0 && outcome.out.contains("INJECTED")
        });
        wait_until("it has begun its file", || scratch.join("r.tare").exists());
        recording.signal(rustix::process::Signal::INT);
        assert_harmless("record --root", &both(&recording.wait()), true);
        assert_no_trace(target.pid());
    }

    fn passwords_stay_at_home(jdk) {
        let scratch = Scratch::new();
        let target = Target::idle(jdk).vm("-Ddb.password=hunter2").vm("-Dhost=here");
        let target = target.arg("--api-key=hunter2").arg("--token").arg("hunter2");
        let target = target.arg("https://me:hunter2@host/x").start();
        let name = target.name();
        let file = path(&scratch.join("x.tare"));
        for words in [&["ps", "--json"][..], &["status", &name, "--json"]] {
            let outcome = Tare::this().run(words);
            assert!(!outcome.ok().contains("hunter2"), "{}", outcome.describe());
            assert!(outcome.out.contains("--api-key=***"), "{}", outcome.describe());
        }
        Tare::this().run(&["record", "--wall", "-d", "1s", "-o", &file, &name]).ok();
        let report = Tare::this().run(&["report", &file, "--format", "json"]);
        let command = report.json()["run"]["command_line"].to_string();
        assert!(command.contains("-Ddb.password=***") && command.contains("-Dhost=here"), "{command}");
        assert!(command.contains("https://***@host/x"), "{command}");
        // Compressed or not: what is in it is what a reader finds.
        for format in ["html", "pprof", "jfr", "json", "otlp", "callgrind", "collapsed"] {
            let out = path(&scratch.join(&format!("x.{format}")));
            let outcome = Tare::this().run(&["export", &file, "-o", &out]);
            if outcome.code == 0 {
                let bytes = fs::read(&out).unwrap();
                let found = bytes.windows(7).any(|window| window == b"hunter2");
                assert!(!found, "{format} has the password");
            }
        }
        target.finish();
    }
}

#[test]
fn a_class_file_is_printed_harmlessly() {
    let scratch = Scratch::new();
    let jar = hostile_jar(&scratch);
    drop(Target::jar(jdk(), &jar).start());
    let class = scratch.join("classes/Template_of_20_bytes.class");
    let mut bytes = fs::read(&class).unwrap();
    let (from, to) = (b"spin_around_14", "sp\u{1b}c\nINJECTED\u{7f}".as_bytes());
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
    fs::write(&class, bytes).unwrap();
    let outcome = Tare::this().var("CLICOLOR_FORCE", "1").run(&["class", "print", &path(&class)]);
    outcome.ok();
    assert_harmless("class print", &both(&outcome), true);
}
