//! The README's commands, pasted one after another against a server that is not ours: the JDK's own
//! for files. What stands behind each command is what comes of it.

use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tare_jvm_tests::{
    Jdk, Outcome, Running, Scratch, Tare, Target, compiled, env, jdk_tool, skip, wait_until,
};

const README: &str = include_str!("../../../../README.md");

/// A method of the server that runs with every request, and its class.
const METHOD: &str = "sendResponseHeaders";
const CLASS: &str = "sun.net.httpserver.ExchangeImpl";

/// How a command is run that would go on until Ctrl-C.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    ByItself,
    /// With so much behind it.
    With(&'static str),
    /// It is at work while the following ones are run, until one that is not marked so.
    AtWork,
    Meanwhile,
    /// Ctrl-C, after its first lines.
    Interrupted,
}

/// A command by its beginning, how it ends, what its output has, and the file that it makes.
type Expected = (&'static str, Ends, &'static [&'static str], &'static str);

const SERVER: &str = "sun.net.httpserver.";
const EXPECTED: &[Expected] = &[
    ("tare", Ends::ByItself, &["jdk.httpserver", "Try next"], ""),
    ("tare doctor 4711", Ends::ByItself, &["Server VM", "works"], ""),
    ("tare status 4711", Ends::ByItself, &["uptime", "agent"], ""),
    ("tare status Orders --watch", Ends::Interrupted, &["CLASSES"], ""),
    ("tare record 4711", Ends::With("-d 2s"), &[SERVER, "samples in", "-cpu.tare"], ""),
    ("tare record 4711 -d 30s -o cpu.html", Ends::ByItself, &[SERVER], "cpu.html"),
    ("tare record 4711 --wall", Ends::ByItself, &["wall-time", SERVER], ""),
    ("tare record 4711 --alloc", Ends::ByItself, &["allocated", SERVER], ""),
    ("tare record 4711 --lock", Ends::ByItself, &["contentions, ", "waiting-time"], ""),
    ("tare record 4711 --classes", Ends::ByItself, &["classes loaded", "were there before"], ""),
    ("tare heap 4711", Ends::ByItself, &["Who holds it"], ""),
    ("tare climb 4711", Ends::With("--for 5s"), &["Climb, by processor time", "hot methods"], ""),
    ("tare record 4711 --include", Ends::ByItself, &[SERVER], ""),
    (
        "tare record --exact --include 'com.acme.**' 4711",
        Ends::ByItself,
        &[SERVER, "calls in"],
        "x.tare",
    ),
    (
        "tare record --exact --include 'com.acme.**' --cpu",
        Ends::With("--window 1s"),
        &["woven"],
        "",
    ),
    ("tare top 4711", Ends::With("--once"), &[SERVER, "Methods", "Threads"], ""),
    ("tare threads 4711", Ends::ByItself, &["no deadlock", "Stacks"], ""),
    ("tare record 4711 --region", Ends::ByItself, &["passages of 1 region", "mean"], ""),
    ("tare record --trace", Ends::ByItself, &["entries and exits"], "t.trace.json"),
    ("tare record 4711 --keep 5m", Ends::AtWork, &[], ""),
    ("tare dump 4711", Ends::Meanwhile, &["last.tare"], "last.tare"),
    ("tare report 4711", Ends::Meanwhile, &[SERVER], ""),
    ("tare record --exact --root com.acme.Orders.place 4711", Ends::AtWork, &[], ""),
    ("tare explain", Ends::Meanwhile, &[METHOD, "woven"], ""),
    ("tare record --exact --root com.acme.Orders.place --", Ends::ByItself, &["Orders.place"], ""),
    ("tare record --bytecodes --", Ends::ByItself, &["bytecodes in", "Orders.place"], ""),
    ("tare record --bytecodes --every", Ends::ByItself, &["samples", "Orders.place"], ""),
    ("tare check --baseline perf.txt --update", Ends::ByItself, &["case"], "perf.txt"),
    ("tare check --baseline perf.txt --", Ends::ByItself, &["ok: "], ""),
    ("tare instrument", Ends::ByItself, &["woven"], "woven.jar"),
    ("tare run -- java", Ends::ByItself, &["sold"], ""),
    ("tare run -- ./gradlew", Ends::ByItself, &["sold"], ""),
    ("tare record 4711 -d 30s -o old.tare", Ends::ByItself, &[SERVER, "new.tare"], "old.tare"),
    ("tare report x.tare", Ends::ByItself, &["Called by", METHOD], ""),
    ("tare report old.tare --native", Ends::ByItself, &["(kernel)", SERVER], ""),
    ("tare view x.tare", Ends::Interrupted, &["http://127.0.0.1:", "Ctrl-C ends"], ""),
    ("tare diff", Ends::ByItself, &["Regressions", "overlap"], ""),
    ("tare export", Ends::ByItself, &[], "x.html"),
    ("tare detach", Ends::ByItself, &["4711"], ""),
];

const APP: &str = "package com.acme;
    public class Orders {
        public static int place(int n) { int s = 0; for (int i = 0; i < n; i++) { s += save(i); } return s; }
        static int save(int i) { return i * 31 % 7; }
    }";
const MAIN: &str = "public class Main {
        public static void main(String[] words) {
            int sum = 0;
            for (int i = 0; i < 2000; i++) { sum += com.acme.Orders.place(100); }
            System.out.println(\"sold \" + sum);
        }
    }";

/// The commands of the block, without what is said of them.
fn commands() -> Vec<&'static str> {
    let block = README.split("## Use\n```\n").nth(1).expect("the block");
    let block = block.split("```").next().expect("its end");
    let commands = block.lines().map(|line| line.split(" #").next().unwrap_or_default().trim_end());
    commands.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The longest beginning that a command has.
fn expected(command: &str) -> &'static Expected {
    let fits = |(beginning, ..): &&Expected| {
        let rest = command.strip_prefix(beginning);
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with(' ') && *beginning != "tare"))
    };
    let found = EXPECTED.iter().filter(fits).max_by_key(|(beginning, ..)| beginning.len());
    found.unwrap_or_else(|| panic!("nobody says what comes of `{command}`"))
}

/// The first and last line of the method.
fn lines_of_method(jdk: &Jdk) -> String {
    let mut javap = Command::new(jdk.home.join("bin/javap"));
    let javap = javap.args(["-p", "-c", "-l", "--module", "jdk.httpserver", CLASS]).output();
    let text = String::from_utf8(javap.expect("javap").stdout).expect("plain text");
    let method = text.split("\n\n").find(|part| part.contains(&format!(" {METHOD}(int, long)")));
    let lines = method.expect("the method").lines().filter_map(|line| {
        line.trim().strip_prefix("line ")?.split(':').next()?.parse::<u32>().ok()
    });
    let lines: Vec<u32> = lines.collect();
    format!("{}-{}", lines.iter().min().expect("lines"), lines.iter().max().expect("lines"))
}

/// Asks the server for its file until it is told to stop.
fn ask(port: u16, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { continue };
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(request);
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

struct Shell {
    directory: PathBuf,
    path: String,
}

impl Shell {
    /// Through the words of another program, which a shell reads as it reads what is pasted.
    fn start(&self, command: &str) -> Running {
        let tare = Tare::at(Path::new("/bin/sh")).directory(&self.directory);
        // No browser is opened where somebody sits.
        let tare = tare.var("DISPLAY", "").var("WAYLAND_DISPLAY", "");
        tare.var("PATH", &self.path).start(&["-c", &format!("exec {command}")])
    }

    fn run(&self, command: &str) -> Outcome {
        let tare = Tare::at(Path::new("/bin/sh")).directory(&self.directory);
        tare.var("PATH", &self.path).run(&["-c", command])
    }
}

#[test]
fn commands_of_the_readme_are_pasted() {
    let jdk = env().jdks.iter().rev().find(|jdk| {
        // The server has been runnable since 18, and its lines are told by a tool.
        jdk.major >= 18 && jdk.home.join("bin/javap").exists()
    });
    let Some(jdk) = jdk else {
        return skip("commands_of_the_readme_are_pasted", "no JDK of 18 or later with javap");
    };
    let scratch = Scratch::new();
    let directory = scratch.path().to_owned();
    let classes = scratch.join("classes");
    fs::create_dir(&classes).expect("our own directory");
    compiled(&classes, &[("com/acme/Orders.java", APP), ("Main.java", MAIN)]);
    let jar = scratch.join("app.jar").display().to_string();
    jdk_tool("jar", &["cfe", &jar, "Main", "-C", &classes.display().to_string(), "."]);
    fs::write(scratch.join("gradlew"), "#!/bin/sh\nexec java -jar app.jar\n").expect("a script");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(scratch.join("gradlew"), executable).expect("our own file");
    let served = scratch.join("served");
    fs::create_dir(&served).expect("our own directory");
    fs::write(served.join("index.html"), "x".repeat(20_000)).expect("our own directory");
    let mut server = Command::new(jdk.java());
    server.args(["-m", "jdk.httpserver", "-b", "127.0.0.1", "-p", "0", "-d"]).arg(&served);
    let mut server = Target::spawn(server);
    let url = server.wait_for("URL http://127.0.0.1:");
    let port = url.rsplit(':').next().and_then(|port| port.trim_end_matches('/').parse().ok());
    let port = port.expect("a port");
    let stop = Arc::new(AtomicBool::new(false));
    let client = {
        let stop = Arc::clone(&stop);
        thread::spawn(move || ask(port, &stop))
    };
    let pid = server.pid().to_string();
    let bin = env().bin.parent().expect("a directory");
    let path = [bin.to_owned(), jdk.home.join("bin")].map(|path| path.display().to_string());
    let path = format!("{}:{}", path.join(":"), std::env::var("PATH").unwrap_or_default());
    let shell = Shell { directory: directory.clone(), path };
    // Somebody else on this machine may have such a server, too.
    let list = shell.run("tare ps").ok().to_owned();
    let name = if list.matches("jdk.httpserver").count() == 1 { "httpserver" } else { &pid };
    let lines = lines_of_method(jdk);
    let ours = |command: &str| {
        let own_program = command.contains(" -- ");
        let mut text =
            command.replace("4711", &pid).replace("status Orders", &format!("status {name}"));
        if !own_program {
            let method = format!("{CLASS}.{METHOD}");
            text = text.replace("com.acme.**", "sun.net.httpserver.**");
            text = text.replace("com.acme.Orders:120-148", &format!("{CLASS}:{lines}"));
            text = text.replace("com.acme.Orders.place", &method);
            text = text.replace("com.acme.Orders.save", &method);
            text = text.replace("--method place", &format!("--method {METHOD}"));
        }
        let woven = ["--exact", "--region"].iter().any(|flag| text.contains(flag));
        text.replace("-d 30s", if woven { "-d 1s" } else { "-d 2s" })
    };
    let mut at_work: Option<Running> = None;
    let (mut seen, mut problems) = (0, Vec::new());
    for command in commands() {
        let (_, ends, parts, file) = expected(command);
        let mut text = ours(command);
        if *ends != Ends::Meanwhile
            && let Some(running) = at_work.take()
        {
            running.signal(Signal::INT);
            running.wait().ok();
        }
        seen += 1;
        let outcome = match ends {
            Ends::AtWork => {
                at_work = Some(shell.start(&text));
                let engine = if text.contains("--exact") { "exact" } else { "sampling" };
                wait_until("it is being recorded", || {
                    Tare::this().status(&pid)["engines"].to_string().contains(engine)
                });
                thread::sleep(Duration::from_secs(1));
                continue;
            }
            Ends::Interrupted => {
                let file = directory.join("shown.txt");
                let _ = fs::remove_file(&file); // Of another command.
                let running = shell.start(&format!("{text} > shown.txt 2>&1"));
                let shown = || fs::read_to_string(&file).unwrap_or_default();
                wait_until("its first lines", || shown().lines().count() >= 2);
                running.signal(Signal::INT);
                let mut outcome = running.wait();
                outcome.out = shown();
                outcome
            }
            Ends::With(more) => {
                text = format!("{text} {more}");
                shell.run(&text)
            }
            Ends::Meanwhile => {
                // It may have begun in the JVM, and not be ready for orders; and the first samples may
                // be the compilers' alone.
                let mut outcome = shell.run(&text);
                wait_until("it is heard", || {
                    let said = [outcome.out.as_str(), &outcome.err].concat();
                    let is_told = parts.iter().all(|part| said.contains(part));
                    (outcome.code == 0 && is_told) || {
                        outcome = shell.run(&text);
                        false
                    }
                });
                outcome
            }
            Ends::ByItself => shell.run(&text),
        };
        // Two samples of the same may differ for a reason, with a program that is warming up.
        let grown = command.starts_with("tare diff") && outcome.code == 3;
        let stopped = *ends == Ends::Interrupted && outcome.code == 130;
        let said = [outcome.out.as_str(), &outcome.err].concat();
        let mut wrong: Vec<String> = Vec::new();
        if outcome.code != 0 && !grown && !stopped {
            wrong.push("it failed".to_owned());
        }
        let parts = parts.iter().map(|part| part.replace("4711", &pid));
        wrong.extend(parts.filter(|part| !said.contains(part)).map(|part| format!("no {part:?}")));
        let size = fs::metadata(directory.join(file)).map_or(0, |file| file.len());
        if !file.is_empty() && size < 100 {
            wrong.push(format!("no {file}"));
        }
        if !wrong.is_empty() {
            problems.push(format!("{command}\n{}:\n{}", wrong.join(", "), outcome.describe()));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    assert_eq!(seen, EXPECTED.len(), "each has its command");
    stop.store(true, Ordering::Relaxed);
    client.join().expect("the client");
    drop(server);
}
