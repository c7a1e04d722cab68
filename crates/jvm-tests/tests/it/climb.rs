//! Hooks and climbs against a program that knows its own callers: how often each edge is taken and
//! what it costs. What hooks tell is compared with what the program counted in the same time, so
//! that no load of the machine matters.

use crate::common::{agentpath, assert_no_trace};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use tare_arena::samples::{Frame, Record, Stream, StreamEvent};
use tare_jvm_tests::{
    Control, Jdk, Scratch, Tare, Target, TargetBuilder, classes, control_socket, java_agent,
    on_each_jdk, wait_until,
};
use tare_protocol::{
    EngineChange, EngineName, EnginePlan, HookPlan, Request, Response, SamplePlan,
};

const WORKER: &str = "ClimbTruth$Worker";

fn truth(jdk: &Jdk, words: &[&str], work: &str) -> Target {
    let own = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints", "-XX:+UseSerialGC"];
    let target = own.iter().chain(words).fold(Target::java(jdk), |target, word| target.vm(word));
    let target = target.class_path(classes()).main("ClimbTruth");
    work.split(' ').fold(target, TargetBuilder::arg).start()
}

fn wire(method: &str) -> String {
    let descriptor = if method == "leaf" { "(I)V" } else { "()V" };
    format!("{WORKER}.{method}{descriptor}")
}

/// A front end that does nothing but set hooks and collect.
struct Hooking {
    control: Control,
    stream: Stream,
    came: Came,
}

#[derive(Default)]
struct Came {
    kinds: HashMap<u32, String>,
    texts: HashMap<u32, String>,
    methods: HashMap<u64, String>,
    traces: HashMap<u32, Vec<Frame>>,
    events: Vec<StreamEvent>,
    samples: Vec<u32>,
}

impl Came {
    fn take(&mut self, record: Record) {
        match record {
            Record::EventKind(kind) => {
                self.kinds.insert(kind.id, kind.name);
            }
            Record::Text(text) => {
                self.texts.insert(text.id, text.text);
            }
            Record::Method(method) => {
                self.methods.insert(method.key, format!("{}.{}", method.class, method.name));
            }
            Record::Trace(trace) => {
                self.traces.insert(trace.id, trace.frames);
            }
            Record::Sample(sample) => self.samples.push(sample.trace),
            Record::Event(event) => self.events.push(event),
            _ => {}
        }
    }

    /// The rows of a kind: time, values, stack.
    fn rows<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a StreamEvent> {
        let is = move |event: &&StreamEvent| {
            self.kinds.get(&event.head.kind).is_some_and(|name| name == kind)
        };
        self.events.iter().filter(is)
    }

    /// The numbers by which the hook in a method has told, one after the other.
    fn numbers(&self, method: &str) -> Vec<u64> {
        let text = wire(method);
        let of = |row: &&StreamEvent| self.texts.get(&(row.values[1] as u32)) == Some(&text);
        let begins = self.rows("hook").filter(of).filter(|row| row.values[2] == 1);
        begins.map(|row| row.values[0]).collect()
    }

    fn number(&self, method: &str) -> u64 {
        *self.numbers(method).last().unwrap_or_else(|| panic!("no hook in {method}"))
    }

    /// The Java methods of a stack; none while their names are on their way.
    fn stack(&self, trace: u32) -> Vec<String> {
        let frames = self.traces.get(&trace).map_or(&[][..], Vec::as_slice);
        let java = frames.iter().filter_map(|frame| match frame {
            Frame::Java { method, .. } => Some(self.methods.get(method).cloned()),
            _ => None,
        });
        java.collect::<Option<Vec<String>>>().unwrap_or_default()
    }

    /// Calls of a hook between two looks, with the times of both: of the stretches in which it
    /// counted all the time the one with most calls. It pauses where calls would cost too much.
    fn counted(&self, method: &str) -> (u64, u64, u64) {
        let number = self.number(method);
        let mut rows = self.rows("hook-calls").filter(|row| row.values[0] == number);
        let first = rows.next().map_or(0, |row| row.head.time);
        let (mut now, mut best) = ((first, first, 0), (first, first, 0));
        for row in rows {
            let is_whole = row.head.time - now.1 == row.head.duration;
            now = match is_whole {
                true => (now.0, row.head.time, now.2 + row.values[1]),
                false => (row.head.time, row.head.time, 0),
            };
            if now.2 > best.2 {
                best = now;
            }
        }
        best
    }

    /// Of the calls that were told: how many by this caller, and their processor time.
    fn told(&self, method: &str, caller: &str) -> (u64, u64) {
        let number = self.number(method);
        let of = self.rows("hook-caller").filter(|row| row.values[0] == number);
        let of = of.filter(|row| {
            let stack = self.stack(row.head.trace);
            let is_ours = |name: &String| name.ends_with(&format!(".{method}"));
            assert!(stack.first().is_none_or(is_ours), "{stack:?}");
            stack.get(1).is_some_and(|name| name.ends_with(&format!(".{caller}")))
        });
        of.fold((0, 0), |(calls, cpu), row| (calls + row.values[1], cpu + row.values[4]))
    }
}

impl Hooking {
    fn start(pid: u32, overhead_ppm: u32, sampled: bool) -> Self {
        let mut control = Control::connect(pid);
        control.greet();
        if sampled {
            let plan = SamplePlan { interval_ns: 1_000_000, ..SamplePlan::default() };
            let start = Request::Start(EnginePlan::Sampling(Box::new(plan)));
            assert_eq!(control.ask(&start), Response::Ok);
        }
        let plan = HookPlan { overhead_ppm, ..HookPlan::default() };
        let start = Request::Start(EnginePlan::Hooks(plan));
        assert_eq!(control.ask(&start), Response::Ok);
        let files = std::mem::take(&mut control.files);
        let stream = Stream::new(files.try_into().expect("two files")).expect("a stream");
        Hooking { control, stream, came: Came::default() }
    }

    fn set(&mut self, methods: &[&str]) {
        self.set_beside(methods, &[]);
    }

    /// Others have hooks that tell nothing.
    fn set_beside(&mut self, methods: &[&str], waiting: &[&str]) {
        let wires = |methods: &[&str]| methods.iter().map(|method| wire(method)).collect();
        self.change(wires(methods), wires(waiting));
    }

    fn change(&mut self, methods: Vec<String>, waiting: Vec<String>) {
        // Before the answer the agent tells how far it is.
        let change = Request::Change(EngineChange::Hooks { methods, waiting });
        let mut answer = self.control.ask(&change);
        while let Response::Progress(_) = answer {
            let message = self.control.receive().expect("an answer").expect("an answer");
            answer = Response::from_message(&message).expect("an answer");
        }
        assert_eq!(answer, Response::Ok);
    }

    fn drain(&mut self) -> &Came {
        let came = &mut self.came;
        self.stream.drain(|record| came.take(record)).expect("a readable stream");
        came
    }

    /// Until so many calls of a method were counted.
    fn wait_for(&mut self, method: &str, calls: u64) {
        wait_until("calls are counted", || {
            let came = self.drain();
            came.rows("hook").count() > 0 && came.counted(method).2 >= calls
        });
    }
}

/// What the program said: times, and how often each edge was taken.
fn said(target: &Target) -> Vec<Vec<u64>> {
    let text = target.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix("edges "));
    let numbers = |line: &str| line.split(' ').map(|n| n.parse().expect("a number")).collect();
    // The last line may be half there.
    let mut all: Vec<Vec<u64>> = lines.map(numbers).collect();
    all.pop();
    all
}

/// How often edges were taken in a time, as far as the program knows: at least, and at most. What
/// it says was counted after the time that it says, and before the time of its next line.
fn taken(said: &[Vec<u64>], edges: &[usize], from: u64, to: u64) -> (u64, u64) {
    let sum = |line: &[u64]| edges.iter().map(|edge| line[1 + edge]).sum::<u64>();
    let before = |time: u64| {
        let known = said.windows(2).rfind(|pair| pair[1][0] <= time);
        sum(&known.expect("lines before")[0])
    };
    let after = |time: u64| sum(said.iter().find(|line| line[0] >= time).expect("lines after"));
    (before(to).saturating_sub(after(from)), after(to) - before(from))
}

#[track_caller]
fn assert_within(what: &str, value: u64, (least, most): (u64, u64)) {
    let (least, most) = (least as f64 * 0.99, most as f64 * 1.01);
    assert!((least..=most).contains(&(value as f64)), "{what}: {value} of {least} to {most}");
}

#[track_caller]
fn assert_points(what: &str, part: u64, all: u64, expected: f64, points: f64) {
    let share = part as f64 / all.max(1) as f64;
    assert!((share - expected).abs() <= points, "{what}: {share:.3}, not {expected:.3}");
}

/// Hooks that are out, in the leaf and in one of its callers, told what the program says.
#[track_caller]
fn assert_truth(target: &Target, hooking: &mut Hooking) {
    // Until the program has said what it had counted by then, and all names are there.
    let to = hooking.drain().rows("hook-calls").map(|row| row.head.time).max().expect("looks");
    wait_until("callers have names", || hooking.drain().told("a", "left").0 > 0);
    wait_until("the program has told", || said(target).last().is_some_and(|l| l[0] > to));
    let (came, said) = (&hooking.came, said(target));
    for (method, edges) in [("leaf", &[0, 1][..]), ("a", &[2, 3])] {
        let (from, to, calls) = came.counted(method);
        assert_within(method, calls, taken(&said, edges, from, to));
    }
    let ((a, a_cpu), (b, b_cpu)) = (came.told("leaf", "a"), came.told("leaf", "b"));
    let ((left, _), (right, _)) = (came.told("a", "left"), came.told("a", "right"));
    assert_points("calls by a", a, a + b, 0.7, 0.007);
    assert_points("calls by left", left, left + right, 5.0 / 7.0, 0.007);
    assert_points("costs of a", a_cpu, a_cpu + b_cpu, 7.0 / 16.0, 0.03);
}

on_each_jdk! {
    /// Edges are those that the program counts in the same time, in compiled code and in the
    /// interpreter; the costs of callers are in the proportion of their work.
    fn edges_are_counted_as_the_program_counts_them(jdk) {
        for (words, work) in [(&[][..], "100000"), (&["-Xint"][..], "500")] {
            let agent = agentpath("");
            let words = [&[agent.as_str()][..], words].concat();
            let target = truth(jdk, &words, work);
            control_socket(target.pid());
            // All calls are told.
            let mut hooking = Hooking::start(target.pid(), 500_000, false);
            hooking.set(&["leaf", "a"]);
            hooking.wait_for("leaf", 20_000);
            hooking.set(&[]);
            assert_truth(&target, &mut hooking);
        }
    }

    /// More threads than there are places for their own counts, and carriers that they change.
    fn calls_on_virtual_threads_are_counted_as_others(jdk) {
        if jdk.major < 21 {
            return;
        }
        let target = truth(jdk, &[agentpath("").as_str()], "20000 virtual");
        control_socket(target.pid());
        let mut hooking = Hooking::start(target.pid(), 500_000, false);
        hooking.set(&["leaf", "a"]);
        hooking.wait_for("leaf", 20_000);
        hooking.set(&[]);
        assert_truth(&target, &mut hooking);
    }

    /// Where calls are many, one in k is told, and the shares stay.
    fn shares_stay_when_few_calls_are_told(jdk) {
        let target = truth(jdk, &[agentpath("").as_str()], "100");
        control_socket(target.pid());
        // A tenth: with less a busy machine takes minutes over thousands.
        let mut hooking = Hooking::start(target.pid(), 100_000, false);
        hooking.set(&["leaf"]);
        wait_until("thousands are told", || {
            let came = hooking.drain();
            came.rows("hook").count() > 0 && came.told("leaf", "a").0 > 5_000
        });
        let came = &hooking.came;
        let calls = came.rows("hook-calls").map(|row| row.values[1]).sum::<u64>();
        let (a, b) = (came.told("leaf", "a").0, came.told("leaf", "b").0);
        assert!(calls > 2 * (a + b), "{} of {calls} calls were told", a + b);
        assert_points("calls by a", a, a + b, 0.7, 0.03);
        let status = hooking.control.status();
        let status = status.hooks().expect("hooks");
        assert!(status.spent_ns > 0 && status.count_ps > 0, "{status:?}");
    }

    /// Hooks that wait tell nothing; they begin and end to tell without any class being loaded
    /// again, and count right each time.
    fn hooks_that_wait_tell_when_it_is_their_turn(jdk) {
        let target = truth(jdk, &[agentpath("").as_str()], "100000");
        control_socket(target.pid());
        let mut hooking = Hooking::start(target.pid(), 500_000, false);
        hooking.set_beside(&["leaf"], &["a", "b"]);
        hooking.wait_for("leaf", 5_000);
        assert!(hooking.came.numbers("a").is_empty());
        hooking.set_beside(&["a"], &["leaf", "b"]);
        let rows = |came: &Came| {
            let number = came.number("leaf");
            came.rows("hook-calls").filter(|row| row.values[0] == number).count()
        };
        let before = rows(hooking.drain());
        wait_until("the other tells", || !hooking.drain().numbers("a").is_empty());
        hooking.wait_for("a", 5_000);
        assert_eq!(rows(&hooking.came), before, "it was to wait");
        let status = hooking.control.status();
        let status = status.hooks().expect("hooks");
        assert_eq!((status.hooks.len(), status.waiting.len(), status.ever), (1, 2, 3));
        assert_eq!(status.batches, 1, "classes were loaded again");
        // Once more: by another number, from nothing on.
        hooking.set_beside(&["leaf"], &["a", "b"]);
        wait_until("it tells again", || hooking.drain().numbers("leaf").len() == 2);
        hooking.wait_for("leaf", 20_000);
        let (from, to, calls) = hooking.came.counted("leaf");
        wait_until("the program has told", || said(&target).last().is_some_and(|l| l[0] > to));
        assert_within("leaf", calls, taken(&said(&target), &[0, 1], from, to));
        hooking.set(&[]);
        assert_eq!(hooking.control.status().hooks().expect("hooks").batches, 2);
    }

    /// Hooks that are taken out leave nothing in the code that runs.
    fn hooks_that_are_out_are_met_by_no_sample(jdk) {
        let target = truth(jdk, &[agentpath("").as_str()], "1");
        control_socket(target.pid());
        let mut hooking = Hooking::start(target.pid(), 500_000, true);
        hooking.set(&["leaf", "a", "b"]);
        fn of_hooks(came: &Came) -> usize {
            let is_hook = |trace: &&u32| {
                came.stack(**trace).iter().any(|name| name.contains("TareHooks"))
            };
            came.samples.iter().filter(is_hook).count()
        }
        wait_until("samples meet the hooks", || of_hooks(hooking.drain()) > 20);
        hooking.set(&[]);
        // What was under way then is over.
        let seen = hooking.drain().samples.len();
        wait_until("samples follow", || hooking.drain().samples.len() > seen + 100);
        hooking.came.samples.clear();
        wait_until("samples follow", || hooking.drain().samples.len() > 500);
        assert_eq!(of_hooks(&hooking.came), 0);
        let status = hooking.control.status();
        assert_eq!(status.hooks().expect("hooks").hooks, [] as [String; 0]);
        assert_eq!(hooking.control.ask(&Request::Stop(EngineName::Sampling)), Response::Ok);
    }

    /// Another agent has a class changed whose method has a hook: that is noticed, and the hook can
    /// be set again, in the new code, unless this JVM might bring older code back.
    fn a_hook_that_another_agent_takes_is_missed(jdk) {
        let scratch = Scratch::new();
        let builder = Target::java(jdk).vm(java_agent("Meddler", &scratch, "")).vm(agentpath(""));
        let mut target = builder.class_path(classes()).main("Meddled").start();
        control_socket(target.pid());
        let mut hooking = Hooking::start(target.pid(), 500_000, false);
        // The program has it loaded.
        assert_eq!(target.ask("work"), "work: as-it-was");
        let say = "Meddled$Subject.say(I)Ljava/lang/String;".to_owned();
        let calls = |hooking: &mut Hooking| {
            hooking.drain().rows("hook-calls").map(|row| row.values[1]).sum::<u64>()
        };
        hooking.change(vec![say.clone()], Vec::new());
        assert_eq!(target.ask("work"), "work: as-it-was");
        wait_until("calls are counted", || calls(&mut hooking) == 1999);
        let missing = |hooking: &mut Hooking| {
            let status = hooking.control.status();
            let status = status.hooks().expect("hooks");
            assert_eq!(status.hooks.len() + status.taken.len(), 1, "{status:?}");
            status.taken.clone()
        };
        assert_eq!(missing(&mut hooking), [] as [String; 0]);
        target.tell("redefine as-it-was by-others");
        target.wait_for("redefine: done");
        wait_until("it is missed", || missing(&mut hooking) == [say.clone()]);
        hooking.change(vec![say.clone()], Vec::new());
        assert_eq!(target.ask("work"), "work: by-others");
        let status = hooking.control.status();
        let status = status.hooks().expect("hooks");
        if jdk.major < 20 {
            assert!(status.refused[0].contains("somebody else redefined it"), "{status:?}");
        } else {
            assert_eq!((status.hooks.len(), status.batches), (1, 2), "{status:?}");
            wait_until("calls are counted again", || calls(&mut hooking) == 2 * 1999);
        }
        hooking.set(&[]);
        assert_eq!(target.ask("work"), "work: by-others", "the other agent's code is put back");
        drop(hooking);
        target.finish();
    }

    /// From the leaf one level after the other to the roots, on a JVM that runs; the recording
    /// shows the same again, and nothing is left.
    fn a_climb_goes_to_the_roots(jdk) {
        let scratch = Scratch::new();
        let target = truth(jdk, &[], "100000");
        wait_until("it runs", || said(&target).len() > 50);
        let file = scratch.join("x.tare").display().to_string();
        let words = ["climb", "--json", "--for", "300s", "--overhead", "20%", "-o", &file];
        let outcome = Tare::this().run(&[&words[..], &[&target.name()]].concat());
        let climb: Value = serde_json::from_str(outcome.ok()).expect("JSON");
        assert_no_trace(target.pid());
        let name = |method: &str| {
            let (class, text) = (WORKER, wire(method));
            format!("{class}{}", &text[class.len()..])
        };
        let node = |method: &str| {
            let methods = climb["methods"].as_array().expect("methods");
            let found = methods.iter().find(|row| row["method"] == name(method).as_str());
            found.unwrap_or_else(|| panic!("no {method} in {climb:#}"))
        };
        for (method, level) in [("leaf", 0), ("a", 1), ("b", 1), ("left", 2), ("right", 2)] {
            assert_eq!(node(method)["level"], level, "{method} in {climb:#}");
        }
        let share = |method: &str, caller: &str| {
            let callers = node(method)["callers"].as_array().expect("callers");
            let found = callers.iter().find(|row| row["method"] == name(caller).as_str());
            found.and_then(|row| row["hooked_share"].as_f64()).unwrap_or(0.0)
        };
        for (method, caller, expected) in
            [("leaf", "a", 7.0 / 16.0), ("leaf", "b", 9.0 / 16.0), ("a", "left", 5.0 / 7.0)]
        {
            let share = share(method, caller);
            assert!((share - expected).abs() <= 0.03, "{method} by {caller}: {share}\n{climb:#}");
        }
        assert_eq!(node("run")["state"], "root", "{climb:#}");
        assert!(climb["hooks_most"].as_u64() <= Some(16), "{climb:#}");
        assert_eq!(climb["hooks_now"], 0, "{climb:#}");
        let report = Tare::this().run(&["report", &file, "--format", "json"]);
        let report: Value = serde_json::from_str(report.ok()).expect("JSON");
        assert_eq!(report["climb"], climb);
        let page = Tare::this().run(&["report", &file]);
        for part in ["Climb, by processor time", "level 1 above", "ClimbTruth$Worker.leaf"] {
            assert!(page.ok().contains(part), "no {part:?} in\n{}", page.describe());
        }
    }

    /// Ctrl-C and kill -9 at any moment: the program goes on, and nothing is woven any more.
    fn a_climb_can_end_at_any_moment(jdk) {
        let scratch = Scratch::new();
        let target = truth(jdk, &[], "2000");
        wait_until("it runs", || said(&target).len() > 10);
        for (round, millis) in [0, 300, 1_300, 2_400, 3_100, 4_200].into_iter().enumerate() {
            let file = scratch.join(&format!("{round}.tare")).display().to_string();
            let mut climb = Tare::this().start(&["climb", "-o", &file, &target.name()]);
            control_socket(target.pid());
            std::thread::sleep(Duration::from_millis(millis));
            if round % 2 == 0 {
                climb.signal(Signal::INT);
                climb.wait();
                assert_no_trace(target.pid());
            } else {
                climb.kill();
                let mut control = Control::connect(target.pid());
                control.greet();
                wait_until("hooks are out", || control.status().engines.is_empty());
                drop(control);
                Tare::this().run(&["detach", &target.name()]).ok();
                assert_no_trace(target.pid());
            }
            let lines = said(&target).len();
            wait_until("the program goes on", || said(&target).len() > lines + 5);
        }
    }

    /// In the background it goes on, and is read and stopped from elsewhere.
    fn a_climb_goes_on_in_the_background(jdk) {
        let scratch = Scratch::new();
        let target = truth(jdk, &[], "5000");
        wait_until("it runs", || said(&target).len() > 10);
        let file = scratch.join("x.tare").display().to_string();
        let words = ["climb", "--background", "-o", &file, &target.name()];
        let started = Tare::this().run(&words);
        assert!(started.ok().contains("tare stop"), "{}", started.describe());
        wait_until("hooks have told", || {
            let report = Tare::this().run(&["report", &target.name(), "--format", "json"]);
            let report: Value = serde_json::from_str(report.ok()).expect("JSON");
            let methods = report["climb"]["methods"].as_array();
            methods.is_some_and(|all| all.iter().any(|m| m["hook"]["calls"].as_u64() > Some(0)))
        });
        Tare::this().run(&["stop", &target.name()]).ok();
        assert_no_trace(target.pid());
        Tare::this().run(&["report", &file]).ok();
    }
}

#[test]
fn what_cannot_be_climbed_is_said() {
    let run = |words: &[&str]| Tare::this().run(words);
    run(&["climb"]).fails(2, &["JVM"]);
    run(&["climb", "--overhead", "90%", "1"]).fails(2, &["--overhead", "50%"]);
    run(&["climb", "-o", "x.html", "1"]).fails(1, &["x.html", ".tare", "export"]);
}
