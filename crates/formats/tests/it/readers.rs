//! Our files in the readers that people use, where these are installed.

use crate::support::{export, jdk_tools, profile, scratch, tool};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tare_formats::{Format, Options, open_bytes};

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?} says\n{out}\n{err}");
    format!("{out}\n{err}")
}

#[test]
fn go_tool_pprof_sees_the_same_totals() {
    let Some(go) = tool("go tool pprof", &["go".to_owned()]) else { return };
    let directory = scratch("pprof");
    for seed in 0..3 {
        let profile = profile(seed);
        let path = directory.join(format!("{seed}.pb.gz"));
        let options = Options { gzip: true, ..Options::default() };
        std::fs::write(&path, export(&profile, Format::Pprof, options)).unwrap();
        let names = ["samples", "alloc_space", "invocations", "wall"];
        for ((_, series), name) in profile.all_series().zip(names) {
            let unit = match name {
                "alloc_space" => "-unit=bytes",
                "wall" => "-unit=nanoseconds",
                _ => "-unit=count",
            };
            let index = format!("-sample_index={name}");
            let file = path.to_str().unwrap();
            let out = run(&go, &["tool", "pprof", "-raw", &index, unit, file]);
            // `-raw` lists each sample with its values, which begin their line.
            let column = names.iter().position(|known| *known == name).unwrap();
            let body = out.split_once("Samples:\n").unwrap().1.split_once("Locations\n").unwrap().0;
            let values = body.lines().filter_map(|line| {
                let numbers: Vec<i64> = line
                    .split_once(':')
                    .map(|(numbers, _)| {
                        numbers.split_whitespace().map_while(|n| n.parse().ok()).collect()
                    })
                    .unwrap_or_default();
                (numbers.len() == names.len()).then(|| numbers[column])
            });
            assert_eq!(values.sum::<i64>(), series.total(), "{name} of seed {seed}");
        }
        let top = run(&go, &["tool", "pprof", "-top", path.to_str().unwrap()]);
        assert!(top.contains("Type: samples"), "{top}");
    }
}

#[test]
fn the_jdks_jfr_tool_reads_every_event() {
    let tools = jdk_tools("jfr");
    if tool("the JDK's jfr", &tools).is_none() {
        return;
    }
    let directory = scratch("jfr");
    let profile = profile(1);
    let path = directory.join("x.jfr");
    std::fs::write(&path, export(&profile, Format::Jfr, Options::default())).unwrap();
    let path = path.to_str().unwrap();
    let total = |n: usize| profile.all_series().nth(n).unwrap().1.total() as usize;
    let rows = |n: usize| profile.all_series().nth(n).unwrap().1.len();
    for jfr in tools {
        let count = |event: &str| {
            let summary = run(&jfr, &["summary", path]);
            let line = summary.lines().find(|line| line.split_whitespace().next() == Some(event));
            let line = line.unwrap_or_else(|| panic!("no {event} in\n{summary}"));
            line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
        };
        assert_eq!(count("jdk.ExecutionSample"), total(0), "{jfr}");
        assert_eq!(count("jdk.ObjectAllocationSample"), rows(1), "{jfr}");
        assert_eq!(count("tare.Value"), rows(2) + rows(3), "{jfr}");
        // Printing resolves every constant of every event.
        let printed = run(&jfr, &["print", "--stack-depth", "64", path]);
        assert_eq!(printed.matches("jdk.ExecutionSample {").count(), total(0));
        assert!(printed.contains("com.acme.Orders") && printed.contains("monitorClass"), "{jfr}");
        assert!(!printed.contains("Exception"), "{jfr}\n{printed}");
        let json = run(&jfr, &["print", "--json", "--events", "jdk.ObjectAllocationSample", path]);
        let json: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
        let events = json["recording"]["events"].as_array().unwrap();
        let weights = events.iter().map(|event| event["values"]["weight"].as_i64().unwrap());
        assert_eq!(weights.sum::<i64>(), total(1) as i64, "{jfr}");
    }
}

/// The library that other tools are built on, through a program of a few lines.
#[test]
fn jdk_jfr_consumer_reads_stacks_and_threads() {
    let javas = jdk_tools("java");
    if tool("jdk.jfr.consumer", &javas).is_none() {
        return;
    }
    let directory = scratch("consumer");
    let profile = tare_formats::open_bytes(
        b"[main tid=7];a.B.c;a.B.d 3\n[main tid=7];a.B.c;memcpy 2\n[other tid=8];x.Y.z 4\n",
    )
    .unwrap();
    let path = directory.join("x.jfr");
    std::fs::write(&path, export(&profile, Format::Jfr, Options::default())).unwrap();
    let source = directory.join("Dump.java");
    std::fs::write(&source, DUMP).unwrap();
    for java in javas {
        let out = run(&java, &[source.to_str().unwrap(), path.to_str().unwrap()]);
        let mut lines: Vec<&str> = out.lines().filter(|line| line.contains(" <- ")).collect();
        lines.sort_unstable();
        lines.dedup();
        let expected = [
            "main: .memcpy <- a.B.c <- RUNNABLE",
            "main: a.B.d <- a.B.c <- RUNNABLE",
            "other: x.Y.z <- RUNNABLE",
        ];
        assert_eq!(lines, expected, "{java}\n{out}");
        assert_eq!(out.matches(" <- RUNNABLE").count(), 9, "{java}\n{out}");
    }
}

const DUMP: &str = r#"
import jdk.jfr.consumer.*;
public class Dump {
    public static void main(String[] a) throws Exception {
        for (RecordedEvent e : RecordingFile.readAllEvents(java.nio.file.Path.of(a[0]))) {
            if (!e.getEventType().getName().equals("jdk.ExecutionSample")) continue;
            StringBuilder s = new StringBuilder(e.getThread("sampledThread").getOSName() + ": ");
            for (RecordedFrame f : e.getStackTrace().getFrames())
                s.append(f.getMethod().getType().getName()).append('.').append(f.getMethod().getName()).append(" <- ");
            System.out.println(s.append(e.getString("state").replace("STATE_", "")));
        }
    }
}
"#;

const STACKS: &[u8] = b"\
[main tid=1];app.Main.run;app.Order.price 60
[main tid=1];app.Main.run;app.Order.print;java.lang.String.format 20
[worker tid=2];app.Work.loop;app.Order.price 15
";

#[test]
fn inferno_draws_all_of_the_collapsed_stacks() {
    // Not a dependency: it would bring fifteen more for one test.
    let names = ["inferno-flamegraph".to_owned()];
    let Some(inferno) = tool("inferno (cargo install inferno --locked)", &names) else { return };
    let text = export(&open_bytes(STACKS).unwrap(), Format::Collapsed, Options::default());
    let mut command = Command::new(inferno);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let output = child.wait_with_output().unwrap();
    let svg = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(svg.contains("<title>all (95 samples, 100%)</title>"), "{svg}");
    assert!(svg.contains("<title>app.Main.run (80 samples, 84.21%)</title>"), "{svg}");
}

/// The importers of speedscope itself, in a browser: its own format, collapsed stacks and pprof.
#[test]
fn speedscope_imports_what_we_export() {
    let names = ["chromium", "chromium-browser", "google-chrome"].map(str::to_owned);
    let Some(browser) = tool("speedscope's importer in Chromium", &names) else { return };
    let Some(page) = speedscope() else { return };
    let directory = scratch("speedscope");
    let profile = open_bytes(STACKS).unwrap();
    let opened = |name: &str, format: Format| {
        let bytes = export(&profile, format, Options { threads: true, ..Options::default() });
        let script = directory.join(format!("{name}.js"));
        let call = format!("speedscope.loadFileFromBase64({name:?}, {:?})", base64(&bytes));
        std::fs::write(&script, call).unwrap();
        let data = format!("--user-data-dir={}", directory.join("browser").display());
        let address = format!("file://{}#localProfilePath={}", page.display(), script.display());
        let all = ["--headless", "--no-sandbox", "--disable-gpu", &data];
        let more = ["--allow-file-access-from-files", "--virtual-time-budget=20000"];
        run(&browser, &[&all[..], &more, &["--dump-dom", &address]].concat())
    };
    // The list of what a file holds has a name and a total for each thread.
    let own = opened("x.speedscope.json", Format::Speedscope);
    for part in ["main · collapsed:samples", ">80<", "worker · collapsed:samples", ">15<"] {
        assert!(own.contains(part), "no {part:?} in\n{own}");
    }
    for (name, format) in [("x.collapsed", Format::Collapsed), ("x.pb", Format::Pprof)] {
        let dom = opened(name, format);
        assert!(dom.contains(&format!("<title>{name} - speedscope")), "{dom}");
    }
}

/// Speedscope's page, from npm; kept in the target directory.
fn speedscope() -> Option<PathBuf> {
    const VERSION: &str = "1.25.0";
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("npm-speedscope-{VERSION}"));
    let page = home.join("node_modules/speedscope/dist/release/index.html");
    if !page.is_file() {
        let npm = tool("speedscope's importer", &["npm".to_owned()])?;
        let package = format!("speedscope@{VERSION}");
        let words = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
        let _ = Command::new(npm).args(words).arg(&home).arg(package).output();
    }
    if !page.is_file() {
        eprintln!("\n*** NOT COVERED: speedscope's importer; npm could not fetch it ***\n");
        return None;
    }
    Some(page)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for part in bytes.chunks(3) {
        let number = part.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
        let number = number << (8 * (3 - part.len()));
        for place in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= part.len() { char::from(digit) } else { '=' });
        }
    }
    out
}
