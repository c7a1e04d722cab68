//! `tare threads`: deadlocks of all kinds are found, with who waits behind them; those that only
//! nearly are ones never are.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};
use tare_jvm_tests::{
    Jdk, Outcome, PATIENCE, Scratch, Tare, Target, TargetBuilder, modern_classes, on_each_jdk,
    skip, wait_until,
};

/// How often a program that nearly has deadlocks is looked at.
const TRIES: usize = 15;

fn target(jdk: &Jdk, what: &str) -> TargetBuilder {
    Target::java(jdk).vm("-Xmx128m").vm("-Xcheck:jni").main("Deadlocks").arg(what)
}

fn virtual_target(jdk: &Jdk, what: &str) -> Option<TargetBuilder> {
    if jdk.major < 21 {
        return None;
    }
    let Some(classes) = modern_classes() else {
        skip("deadlocks of virtual threads", "no compiler for Java 21");
        return None;
    };
    // Before JDK 24 a virtual thread that waits for a monitor keeps its carrier.
    let carriers = "-Djdk.virtualThreadScheduler.parallelism=16";
    let target = Target::java(jdk).vm("-Xmx128m").vm("-Xcheck:jni").vm(carriers);
    Some(target.class_path(classes).main("VirtualDeadlocks").arg(what))
}

fn look(target: &Target, more: &[&str]) -> Outcome {
    let name = target.name();
    Tare::this().run(&[&["threads", &name][..], more].concat())
}

/// What `--json` shows, whatever status it ends with.
fn dump(target: &Target) -> (i32, Value) {
    let outcome = look(target, &["--json"]);
    let json = serde_json::from_str(&outcome.out);
    (outcome.code, json.unwrap_or_else(|e| panic!("{e} in {}", outcome.describe())))
}

fn names(dump: &Value) -> BTreeMap<u64, String> {
    let threads = dump["threads"].as_array().unwrap();
    let entry = |t: &Value| (t["id"].as_u64().unwrap(), t["name"].as_str().unwrap().to_owned());
    threads.iter().map(entry).collect()
}

/// The deadlocks by the names of their threads, and who is behind each, `owner < waiter`.
fn deadlocks(dump: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let names = names(dump);
    let name = |id: &Value| names[&id.as_u64().unwrap()].clone();
    let mut all = BTreeMap::new();
    for deadlock in dump["deadlocks"].as_array().unwrap() {
        let threads = deadlock["threads"].as_array().unwrap();
        let members: BTreeSet<String> = threads.iter().map(name).collect();
        let mut behind = BTreeSet::new();
        for tree in deadlock["victims"].as_array().unwrap() {
            let mut above: Vec<String> = Vec::new();
            for place in tree.as_array().unwrap() {
                above.truncate(place["depth"].as_u64().unwrap() as usize);
                let thread = name(&place["thread"]);
                if let Some(owner) = above.last() {
                    behind.insert(format!("{owner} < {thread}"));
                }
                above.push(thread);
            }
        }
        all.insert(members.into_iter().collect::<Vec<_>>().join(" "), behind);
    }
    all
}

fn expected(all: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
    let behind = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
    all.iter().map(|(members, waiting)| ((*members).to_owned(), behind(waiting))).collect()
}

on_each_jdk! {
    fn finds_every_kind_of_deadlock(jdk) {
        let mut target = target(jdk, "circles").start();
        let (code, dump) = dump(&target);
        assert_eq!(code, 3);
        assert_eq!(
            deadlocks(&dump),
            expected(&[
                ("monitor-0 monitor-1", &[]),
                ("lock-0 lock-1", &[]),
                ("mixed-0 mixed-1", &[]),
                ("three-0 three-1 three-2", &[]),
                (
                    "victims-0 victims-1",
                    &[
                        "victims-0 < behind-1",
                        "victims-0 < behind-2",
                        "behind-1 < behind-3",
                    ],
                ),
            ])
        );
        let page = look(&target, &[]);
        assert_eq!(page.code, 3, "{}", page.describe());
        let first = page.out.lines().nth(2).unwrap_or_default();
        assert!(first.starts_with("Deadlock 1: "), "{}", page.describe());
        target.check_works();
        Tare::this().run(&["detach", &target.name()]).ok();
        target.finish();
    }

    /// Without the JVM's own dump the owners come from elsewhere.
    fn finds_deadlocks_without_the_management_module(jdk) {
        let target = target(jdk, "circles").vm("--limit-modules=java.base").start();
        let (code, dump) = dump(&target);
        assert_eq!(code, 3);
        let found = deadlocks(&dump);
        for members in ["monitor-0 monitor-1", "lock-0 lock-1", "mixed-0 mixed-1"] {
            assert!(found.contains_key(members), "no {members} in {found:?}");
        }
        target.finish();
    }

    fn shows_who_holds_up_whom_without_a_deadlock(jdk) {
        let target = target(jdk, "chain").start();
        let (code, dump) = dump(&target);
        assert_eq!(code, 0);
        assert_eq!(deadlocks(&dump), expected(&[]));
        let names = names(&dump);
        let blockers = dump["blockers"].as_array().unwrap();
        let chain: Vec<_> = blockers
            .iter()
            .flat_map(|tree| tree.as_array().unwrap())
            .map(|place| names[&place["thread"].as_u64().unwrap()].as_str())
            .collect();
        assert_eq!(chain, ["link-0", "link-1", "link-2", "link-3"]);
        let page = look(&target, &[]).ok().to_owned();
        assert!(page.contains("\"link-0\" ") && page.contains("sleeps and holds up 3 threads"));
        assert!(page.contains("Semaphore$NonfairSync) by \"semaphore\""), "{page}");
        target.finish();
    }

    /// Circles that come and go, by limits, by a lock above them and by interrupts.
    fn near_deadlocks_are_none(jdk) {
        let mut target = target(jdk, "nearly").start();
        for _ in 0..TRIES {
            let (code, dump) = dump(&target);
            assert_eq!((code, &dump["deadlocks"]), (0, &Value::Array(Vec::new())));
        }
        target.check_works();
        target.finish();
    }

    /// The JVM calls threads running that wait for a class.
    fn static_initialisers_that_wait_for_each_other_are_suspected(jdk) {
        let target = target(jdk, "initialisers").start();
        let mut last = Value::Null;
        wait_until("the threads stand still", || {
            last = dump(&target).1;
            last["initialisers"]["behind"].as_array().is_some_and(|behind| !behind.is_empty())
        });
        let names = names(&last);
        let found = &last["initialisers"];
        let name = |id: &Value| names[&id.as_u64().unwrap()].clone();
        let inside = found["threads"].as_array().unwrap().iter();
        let inside: Vec<_> =
            inside.map(|t| (name(&t["thread"]), t["class"].as_str().unwrap())).collect();
        let expected = [("first", "Deadlocks$First"), ("second", "Deadlocks$Second")];
        assert_eq!(inside, expected.map(|(name, class)| (name.to_owned(), class)));
        let behind: Vec<_> = found["behind"].as_array().unwrap().iter().map(name).collect();
        assert_eq!(behind, ["third"]);
        let page = look(&target, &[]);
        assert_eq!(page.code, 0, "a suspicion is no proof: {}", page.describe());
        assert!(page.out.contains("Perhaps a deadlock of static initialisers"), "{}", page.out);
        target.finish();
    }

    fn a_crowd_is_dumped_in_the_form_of_jstack(jdk) {
        let mut target = target(jdk, "crowd").arg("600").start();
        let outcome = look(&target, &["--full"]);
        assert_eq!(outcome.code, 3, "{}", outcome.err);
        let text = &outcome.out;
        assert!(text.contains("  600 threads WAITING: \"crowd-"), "{text}");
        let heads: Vec<_> = text.lines().filter(|line| line.starts_with("\"crowd-")).collect();
        assert_eq!(heads.len(), 600);
        for head in heads {
            let rest = head.split_once("\" #").expect(head).1;
            let words: Vec<_> = rest.split(' ').collect();
            assert!(words[0].parse::<u64>().is_ok(), "{head}");
            for key in ["prio=5", "os_prio=", "cpu=", "tid=0x", "nid=0x"] {
                assert!(words.iter().any(|word| word.starts_with(key)), "no {key} in {head}");
            }
            assert!(!words.contains(&"nid=0x0"), "{head}");
            assert!(head.ends_with("waiting on condition"), "{head}");
        }
        let states = text.matches("   java.lang.Thread.State: WAITING (parking)\n\tat ").count();
        assert!(states >= 600, "{states}");
        assert!(text.contains("\t- parking to wait for  <0x"), "{text}");
        target.check_works();
        target.finish();
    }

    fn a_watch_tells_of_each_deadlock_once(jdk) {
        let (target, scratch) = (target(jdk, "circles").start(), Scratch::new());
        let path = scratch.path().join("watch.txt");
        let words = ["threads", &target.name(), "--watch", "--interval", "100ms"];
        let mut command = Tare::this().command(&words);
        command.stdout(File::create(&path).unwrap()).stderr(Stdio::null());
        let mut watch = command.spawn().unwrap();
        let told = || fs::read_to_string(&path).unwrap().matches("Z Deadlock: ").count();
        let limit = Instant::now() + PATIENCE;
        while told() < 5 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(20));
        }
        // Some looks later it is ended, as by Ctrl-C.
        thread::sleep(Duration::from_secs(1));
        let pid = Pid::from_raw(watch.id() as i32).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        assert_eq!(watch.wait().unwrap().code(), Some(3));
        assert_eq!(told(), 5, "{}", fs::read_to_string(&path).unwrap());
        target.finish();
    }

    fn virtual_threads_are_in_deadlocks_too(jdk) {
        let Some(target) = virtual_target(jdk, "circles") else { return };
        let mut target = target.start();
        let (code, dump) = dump(&target);
        assert_eq!(code, 3);
        let found = deadlocks(&dump);
        let all = expected(&[
            ("locks-0 locks-1 locks-2", &["locks-0 < behind"]),
            ("monitors-0 monitors-1", &[]),
            ("mixed-0 mixed-1", &[]),
            ("both-0 both-1", &[]),
        ]);
        assert_eq!(found, all);
        let without = look(&target, &["--no-virtual"]);
        assert!(without.ok().contains(" platform threads; no deadlock"), "{}", without.out);
        target.check_works();
        target.finish();
    }

    fn virtual_threads_that_nearly_are_in_deadlocks(jdk) {
        let Some(target) = virtual_target(jdk, "nearly") else { return };
        let mut target = target.start();
        for _ in 0..TRIES {
            let (code, dump) = dump(&target);
            assert_eq!((code, &dump["deadlocks"]), (0, &Value::Array(Vec::new())));
        }
        target.check_works();
        target.finish();
    }

    /// Those that are too many are counted, and equal stacks are one group.
    fn crowds_of_virtual_threads_are_bounded(jdk) {
        let Some(target) = virtual_target(jdk, "crowd") else { return };
        let target = target.arg("21000").start();
        let page = look(&target, &[]).ok().to_owned();
        assert!(page.contains("virtual threads are left out"), "{page}");
        assert!(page.contains("threads WAITING: \"crowd-"), "{page}");
        target.finish();
    }
}

#[test]
fn a_jvm_that_does_not_answer() {
    let target = target(tare_jvm_tests::jdk(), "chain").start();
    // The agent is there, and then the JVM stops.
    look(&target, &[]).ok();
    target.signal(Signal::STOP);
    let silent = look(&target, &["--timeout", "1s"]);
    target.signal(Signal::CONT);
    silent.fails(1, &["did not answer", "What the kernel tells", "stopped", "kill -CONT"]);
    target.finish();
}
