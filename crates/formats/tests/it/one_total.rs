//! One recording has one total, whichever format it is exported to and whoever reads that: samples
//! of time as our sampler takes them, and exact times of which compensation took more than there
//! was.

use crate::support::{Dice, export, jdk_tools, scratch, tool};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use tare_formats::{Format, Options, open_bytes, series_name};
use tare_profile::{
    ContextId, Estimate, Frame, Method, MethodKind, Profile, Row, SeriesId, SeriesInfo, Thread,
    ThreadId, TimeAxis, ValueKind,
};

const PERIOD: u64 = 10_000_000;
const STATES: [&str; 4] = ["running", "parked", "sleeping", "system-call"];

/// A few stacks of some threads; the root, which is no stack, is one.
fn stacks(profile: &mut Profile, dice: &mut Dice) -> (Vec<ContextId>, Vec<ThreadId>) {
    profile.run.started = Some(1_700_000_000_000_000_000);
    profile.run.duration = 60_000_000_000;
    let mut contexts = vec![ContextId::ROOT];
    for number in 0..60 {
        let class = profile.strings.intern(&format!("app.Part{}", number % 4));
        let name = profile.strings.intern(&format!("m{}", number % 5));
        let kind = MethodKind::Java;
        let method = profile.methods.intern(Method { kind, class, name, ..Method::default() });
        let frame = profile.frames.intern(Frame::of(method));
        contexts.push(profile.contexts.child(dice.pick(&contexts), frame));
    }
    let names = ["main", "worker 1", "worker 2"];
    let mut threads = vec![ThreadId::UNKNOWN];
    for (number, name) in (1..).zip(names) {
        let name = profile.strings.intern(name);
        let os_id = Some(4_000 + number);
        threads.push(profile.threads.push(Thread { name, os_id, ..Thread::default() }));
    }
    (contexts, threads)
}

/// What `tare record` makes: a row for each sample, whose value is the time that it stands for.
fn sampled(seed: u64, wall: bool) -> Profile {
    let dice = &mut Dice::new(seed);
    let mut profile = Profile::new();
    let (contexts, threads) = stacks(&mut profile, dice);
    let kind = if wall { ValueKind::WallTime } else { ValueKind::CpuTime };
    let info = |name: &str| {
        let info = SeriesInfo::new(name, kind.clone()).with_time(TimeAxis::Exact);
        info.with_period(PERIOD, kind.clone())
    };
    let whole = profile.add_series(info(if wall { "wall" } else { "cpu" }));
    let states: Vec<SeriesId> = match wall {
        true => STATES.iter().map(|state| profile.add_series(info(state))).collect(),
        false => Vec::new(),
    };
    for _ in 0..300 {
        let time = dice.below(60_000_000_000) as u64;
        let value = PERIOD as i64 * (1 + dice.below(3) as i64);
        let row = Row::new(dice.pick(&contexts), dice.pick(&threads), value).at(time);
        profile.series_mut(whole).push(row);
        if wall {
            profile.series_mut(dice.pick(&states)).push(row);
        }
    }
    profile
}

/// Times of an exact recording: what was measured, and what compensation made of it, which is below
/// zero here and there.
fn exact(seed: u64) -> Profile {
    let dice = &mut Dice::new(seed);
    let mut profile = Profile::new();
    let (contexts, threads) = stacks(&mut profile, dice);
    let info = SeriesInfo::new("exact", ValueKind::WallTime);
    let measured = profile.add_series(info.clone());
    let net = profile.add_series(info.with_estimate(Estimate::Compensated));
    for _ in 0..300 {
        let value = dice.below(1_000_000) as i64;
        let row = Row::new(dice.pick(&contexts), dice.pick(&threads), value);
        profile.series_mut(measured).push(row);
        profile.series_mut(net).push(Row { value: value - 250_000, ..row });
    }
    profile
}

/// The profiles, and the series that is exported of each.
fn profiles() -> Vec<(&'static str, Profile, SeriesId)> {
    vec![
        ("cpu", sampled(1, false), SeriesId::new(0)),
        ("wall", sampled(2, true), SeriesId::new(0)),
        ("exact", exact(3), SeriesId::new(1)),
    ]
}

fn text(profile: &Profile, series: SeriesId, format: Format) -> String {
    let options = Options { series: Some(series), threads: true, ..Options::default() };
    String::from_utf8(export(profile, format, options)).unwrap()
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?} says\n{out}\n{err}");
    out.into_owned()
}

#[test]
fn of_collapsed_stacks_as_flame_graph_tools_take_them() {
    for (name, profile, id) in profiles() {
        let text = text(&profile, id, Format::Collapsed);
        // inferno and flamegraph.pl know digits only, and pass over lines that end otherwise.
        let digits = |n: &&str| n.bytes().all(|byte| byte.is_ascii_digit());
        let values = text.lines().filter_map(|line| line.rsplit_once(' ')).map(|(_, n)| n);
        let sum: i64 = values.filter(digits).map(|n| n.parse::<i64>().unwrap()).sum();
        assert_eq!(sum, profile.series(id).total(), "{name}");
    }
}

#[test]
fn of_what_callgrind_annotate_says() {
    let names = ["callgrind_annotate".to_owned()];
    let Some(annotate) = tool("callgrind_annotate (of valgrind)", &names) else { return };
    let directory = scratch("one-total-callgrind");
    for (name, profile, id) in profiles() {
        let path = directory.join(format!("callgrind.out.{name}"));
        std::fs::write(&path, text(&profile, id, Format::Callgrind)).unwrap();
        let out = run(&annotate, &["--auto=no", "--threshold=100", path.to_str().unwrap()]);
        let figure = |line: &str| line.split_whitespace().next().unwrap().replace(',', "");
        let line = out.lines().find(|line| line.contains("PROGRAM TOTALS"));
        let line = line.unwrap_or_else(|| panic!("no totals in\n{out}"));
        assert_eq!(figure(line), profile.series(id).total().to_string(), "{name}");
        // What it lists adds up to that, too.
        let list = out.split_once("file:function").unwrap().1;
        let rows = list.lines().filter(|line| line.contains("???:"));
        let sum: i64 = rows.map(|line| figure(line).parse::<i64>().unwrap()).sum();
        assert_eq!(sum, profile.series(id).total(), "{name}\n{out}");
    }
}

#[test]
fn of_what_go_tool_pprof_says() {
    let Some(go) = tool("go tool pprof", &["go".to_owned()]) else { return };
    let directory = scratch("one-total-pprof");
    for (name, profile, id) in profiles() {
        let path = directory.join(format!("{name}.pb.gz"));
        let options = Options { series: Some(id), gzip: true, ..Options::default() };
        std::fs::write(&path, export(&profile, Format::Pprof, options)).unwrap();
        let words = ["tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0"];
        let out = run(&go, &[&words[..], &["-unit=ns", path.to_str().unwrap()]].concat());
        let total = out.split_once("% of ").unwrap().1.split_once("ns total").unwrap().0;
        assert_eq!(total, profile.series(id).total().to_string(), "{name}\n{out}");
    }
}

/// Events of ours hold values to the unit; the JDK's own views count samples.
#[test]
fn of_what_the_jdks_jfr_says() {
    let tools = jdk_tools("jfr");
    if tool("the JDK's jfr", &tools).is_none() {
        return;
    }
    let directory = scratch("one-total-jfr");
    for (name, profile, id) in profiles() {
        let path = directory.join(format!("{name}.jfr"));
        let options = Options { series: Some(id), ..Options::default() };
        std::fs::write(&path, export(&profile, Format::Jfr, options)).unwrap();
        let path = path.to_str().unwrap();
        let total = profile.series(id).total();
        let mut viewed = 0;
        for jfr in &tools {
            let json = run(jfr, &["print", "--json", "--events", "tare.Value", path]);
            let json: Value = serde_json::from_str(json.trim()).unwrap();
            let info = profile.series(id).info();
            let is_of = |event: &&Value| {
                let values = &event["values"];
                let estimate = info.estimate == Estimate::Compensated;
                values["series"] == info.name && (values["estimate"] == "compensated") == estimate
            };
            let events = json["recording"]["events"].as_array().unwrap().iter().filter(is_of);
            let sum: i64 = events.map(|event| event["values"]["value"].as_i64().unwrap()).sum();
            assert_eq!(sum, total, "{name} by {jfr}");
            // `jfr view` came with JDK 21.
            let help = Command::new(jfr).arg("help").output().unwrap();
            if !String::from_utf8_lossy(&help.stdout).contains("jfr view") {
                continue;
            }
            viewed += 1;
            let out = run(jfr, &["view", "--width", "200", "hot-methods", path]);
            // Methods that share a rank beyond the twenty-fifth would be left out; here are fewer.
            let samples = out.lines().filter_map(|line| {
                let mut words = line.split_whitespace().rev();
                words.next().filter(|word| word.ends_with('%'))?;
                words.next()?.parse::<i64>().ok()
            });
            let sum: i64 = samples.sum();
            let expected = if name == "exact" { 0 } else { total / PERIOD as i64 };
            assert_eq!(sum, expected, "{name} by {jfr}\n{out}");
        }
        if viewed == 0 {
            eprintln!("\n*** NOT COVERED: jfr view, which needs JDK 21 or later ***\n");
        }
    }
}

/// Samples that stand in a file twice, for others and for us, are read once.
#[test]
fn of_jfr_that_is_read_again() {
    for (name, profile, id) in profiles() {
        let options = Options { series: Some(id), ..Options::default() };
        let once = open_bytes(&export(&profile, Format::Jfr, options)).unwrap();
        let twice = open_bytes(&export(&once, Format::Jfr, Options::default())).unwrap();
        let totals = |profile: &Profile| -> BTreeMap<String, (i64, u64)> {
            let all = profile.all_series();
            all.map(|(_, s)| (series_name(s.info()), (s.total(), s.info().period))).collect()
        };
        assert_eq!(totals(&once), totals(&profile), "{name}");
        assert_eq!(totals(&twice), totals(&profile), "{name}");
    }
}

/// A thread that waits is no thread that runs.
#[test]
fn states_of_threads_are_told_to_readers_of_jfr() {
    let tools = jdk_tools("jfr");
    if tool("the JDK's jfr", &tools).is_none() {
        return;
    }
    let profile = sampled(4, true);
    let path = scratch("states-jfr").join("wall.jfr");
    std::fs::write(&path, export(&profile, Format::Jfr, Options::default())).unwrap();
    let path = path.to_str().unwrap();
    let out = run(&tools[0], &["print", "--events", "jdk.ExecutionSample", path]);
    let samples = |state: usize| {
        let series = profile.series(SeriesId::new(1 + state as u32));
        (series.total() / PERIOD as i64) as usize
    };
    let count = |state: &str| out.matches(&format!("state = \"{state}\"")).count();
    assert_eq!(count("STATE_PARKED"), samples(1));
    assert_eq!(count("STATE_SLEEPING"), samples(2));
    assert_eq!(count("STATE_RUNNABLE"), samples(0) + samples(3));
}

#[test]
fn of_speedscope_and_firefox_and_html() {
    for (name, profile, id) in profiles() {
        let total = profile.series(id).total();
        let series = series_name(profile.series(id).info());
        let speedscope: Value =
            serde_json::from_str(&text(&profile, id, Format::Speedscope)).unwrap();
        let of_it = |one: &&Value| {
            let title = one["name"].as_str().unwrap().trim_end_matches(" (no times)");
            title.ends_with(&format!(" · {series}"))
        };
        let profiles = speedscope["profiles"].as_array().unwrap().iter().filter(of_it);
        let sum: i64 = profiles.map(|one| one["endValue"].as_i64().unwrap()).sum();
        assert_eq!(sum, total, "{name} in speedscope");

        // Milliseconds with six digits behind the point, so a float has all of them.
        let firefox: Value = serde_json::from_str(&text(&profile, id, Format::Firefox)).unwrap();
        let threads = firefox["threads"].as_array().unwrap().iter();
        let samples = threads.map(|thread| &thread["samples"]);
        let weights = samples.flat_map(|samples| {
            // A sample without a stack is not shown, so it must not be.
            assert!(samples["stack"].as_array().unwrap().iter().all(Value::is_u64));
            samples["weight"].as_array().unwrap()
        });
        let sum: i64 = weights.map(|ms| (ms.as_f64().unwrap() * 1e6).round() as i64).sum();
        assert_eq!(sum, total, "{name} in the Firefox Profiler");

        let page = text(&profile, id, Format::Html);
        let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
        let data: Value = serde_json::from_str(data).unwrap();
        let first = &data["series"][0];
        let groups = first["groups"].as_array().unwrap().iter();
        let sum: i64 = groups.map(|group| group["total"].as_i64().unwrap()).sum();
        assert_eq!((first["name"].as_str(), sum), (Some(series.as_str()), total), "{name}");
    }
}

/// Whoever adds up profiles of one type finds the time once, with the states of threads in it.
#[test]
fn of_otlp_profiles_of_one_type() {
    for (name, profile, id) in profiles() {
        let bytes = export(&profile, Format::Otlp, Options::default());
        let found = crate::totals::otlp_profiles(&bytes);
        let mut types: BTreeMap<&str, i64> = BTreeMap::new();
        for (kind, total, _) in &found {
            *types.entry(kind).or_default() += total;
        }
        assert_eq!(types.len(), found.len(), "{name}: two profiles of one type");
        let wanted = if name == "cpu" { "cpu-time" } else { "wall-time" };
        let wanted = format!("{wanted}{}", if name == "exact" { "-compensated" } else { "" });
        assert_eq!(types[wanted.as_str()], profile.series(id).total(), "{name}");
        let states: Vec<&str> = found.iter().flat_map(|(.., texts)| texts).copied().collect();
        for state in STATES {
            assert_eq!(states.contains(&state), name == "wall", "{name} {state}");
        }
        assert_eq!(found.len(), if name == "exact" { 2 } else { 1 });
    }
}

/// A timeline has the samples of both samplers, by their moments.
#[test]
fn samples_of_time_are_on_a_timeline() {
    for (name, profile, id) in profiles() {
        let mut out = Vec::new();
        let options = Options { series: Some(id), ..Options::default() };
        let outcome = tare_formats::write(&profile, Format::Chrome, options, &mut out);
        if name == "exact" {
            assert!(outcome.unwrap_err().to_string().contains("holds no times"));
            continue;
        }
        outcome.unwrap();
        let file: Value = serde_json::from_slice(&out).unwrap();
        let category = series_name(profile.series(id).info());
        let slices = file["traceEvents"].as_array().unwrap().iter();
        let slices: Vec<(u64, f64, f64)> = slices
            .filter(|event| event["cat"] == category)
            .map(|e| {
                let (start, length) = (e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap());
                (e["tid"].as_u64().unwrap(), start, start + length)
            })
            .collect();
        for row in profile.series(id).rows() {
            let (thread, time) = (u64::from(row.thread.raw()), row.time as f64 / 1000.0);
            let covers = |(of, start, end): &(u64, f64, f64)| {
                *of == thread && *start <= time + 0.001 && time <= *end
            };
            assert!(slices.iter().any(covers), "{name}: nothing at {time} of thread {thread}");
        }
    }
}
