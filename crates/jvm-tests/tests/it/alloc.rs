//! Sampled allocations, and which of the objects live, as the agent tells them.

use crate::common::agentpath;
use std::process::Command;
use tare_jvm_tests::{
    Allocating, Allocations, Control, Jdk, Target, TargetBuilder, env, on_each_jdk, skip,
    wait_until,
};
use tare_protocol::{
    AllocPlan, EngineChange, EngineName, EnginePlan, Request, Response, SamplePlan,
};

/// Every object of the target's is met: it has sixteen times as many bytes.
fn each() -> AllocPlan {
    AllocPlan { interval_bytes: 1024, ..AllocPlan::default() }
}

fn allocates(jdk: &Jdk, collector: &str) -> TargetBuilder {
    let target = Target::java(jdk).vm("-Xmx256m").vm(agentpath(""));
    let target = match collector {
        GENERATIONAL => target
            .vm("-XX:+UnlockExperimentalVMOptions")
            .vm("-XX:+UseShenandoahGC")
            .vm("-XX:ShenandoahGCMode=generational"),
        _ => target.vm(format!("-XX:+Use{collector}GC")),
    };
    target.main("Allocates")
}

/// Shenandoah with generations, which it has since JDK 24.
const GENERATIONAL: &str = "Shenandoah with generations";

/// The collectors that there are in a runtime.
fn collectors(jdk: &Jdk) -> Vec<&'static str> {
    let mut collectors = vec!["Serial", "Parallel", "G1", "Z"];
    if has_shenandoah(jdk) {
        collectors.push("Shenandoah");
        collectors.extend((jdk.major >= 25).then_some(GENERATIONAL));
    }
    collectors
}

/// Warms the sampler's draw of the target's only thread up: its first one was from the JVM's own
/// interval, which is large.
fn settle(target: &mut Target, recording: &mut Allocating) {
    wait_until("the sampler has drawn from our interval", || {
        target.ask("waste 50");
        recording.drain().all.len() > 50
    });
}

fn keeps(came: &Allocations) -> Vec<u64> {
    came.living("[B", "Allocates.keep")
}

on_each_jdk! {
    /// Class, stack, thread and size of each.
    fn what_is_allocated_where(jdk) {
        let mut target = allocates(jdk, "Serial").start();
        let mut recording = Allocating::start(target.pid(), &each());
        settle(&mut target, &mut recording);
        target.ask("keep 200");
        target.ask("waste 100");
        target.ask("threads 5");
        wait_until("all have come", || {
            let came = recording.drain();
            let of = |class: &str, method: &str| came.of(class, method).count();
            of("[B", "Allocates.keep") >= 198
                && of("[J", "Allocates.waste") >= 98
                && of("[C", "Allocates.keepOne") == 5
        });
        let (came, mut control) = recording.stop();
        let thread = came.samples.threads.values().find(|thread| thread.name == "main");
        let main = thread.expect("the main thread").number;
        for one in came.of("[B", "Allocates.keep") {
            assert_eq!((one.size, one.interval, one.thread), (16_400, 1024, main), "{one:?}");
            let stack = came.stack(one);
            assert_eq!(stack, ["Allocates.keep", "Allocates.main"]);
        }
        let threads = came.of("[C", "Allocates.keepOne").map(|one| one.thread);
        let names = threads.map(|number| came.samples.threads[&number].name.clone());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, (0..5).map(|n| format!("allocates-{n}")).collect::<Vec<_>>());
        let status = control.status();
        assert_eq!(status.alloc(), None);
        let held = status.capabilities_held;
        assert!(!held.iter().any(|name| name.contains("sampled_object")), "{held:?}");
        target.finish();
    }

    /// What is kept lives and gets older, what is dropped is gone after the next collection.
    fn what_lives_and_how_old_it_is(jdk) {
        for collector in collectors(jdk) {
            let mut target = allocates(jdk, collector).start();
            let mut recording = Allocating::start(target.pid(), &each());
            settle(&mut target, &mut recording);
            target.ask("keep 200");
            let status = recording.status();
            // A collection may come without being asked for; then some are proven.
            let (early, unproven) = (status.collections, status.unproven);
            assert!(unproven > 150 || early > 0, "{collector}: {unproven} are not proven");
            wait_until("they are proven", || {
                target.ask("gc 1");
                keeps(recording.drain()).len() >= 198
            });
            let before = recording.drain().epoch();
            for _ in 0..3 {
                let now = recording.drain().epoch();
                wait_until("the next collection is told", || {
                    if recording.drain().epoch() == now {
                        target.ask("gc 1");
                    }
                    recording.drain().epoch() > now
                });
            }
            let came = recording.drain();
            let ages = keeps(came);
            let (low, high) = (*ages.iter().min().unwrap(), *ages.iter().max().unwrap());
            assert!(low >= 3 && high <= came.epoch(), "{collector}: {low}..{high}, {before}");
            assert!(ages.len() >= 198, "{collector}: {} of 200 live", ages.len());
            let wasted = came.living("[J", "Allocates.waste").len();
            assert!(wasted <= 1, "{collector}: {wasted} that were dropped live");
            let held = recording.status().entries;
            target.ask("drop");
            wait_until("they are gone", || {
                target.ask("gc 1");
                keeps(recording.drain()).is_empty()
            });
            // What the JDK keeps is in the table, too, and may be more by now.
            let status = recording.status();
            assert!(status.entries + 100 <= held, "{collector}: {held}, {status:?}");
            assert_eq!(status.lost, Vec::<String>::new(), "{collector}");
            let (came, _) = recording.stop();
            assert!(came.gone >= 198, "{collector}: {}", came.gone);
            target.finish();
        }
    }

    /// Under G1, collections of young objects prove nothing about objects that have regions of their
    /// own: those are told to live when the whole heap was looked at.
    fn objects_that_are_born_old(jdk) {
        let mut target = allocates(jdk, "G1").start();
        let mut recording = Allocating::start(target.pid(), &each());
        settle(&mut target, &mut recording);
        target.ask("huge 20");
        let class = "[Ljava/lang/Object;";
        wait_until("a few collections of young objects are told", || {
            target.ask("waste 2000");
            recording.drain().epoch() >= 3
        });
        let status = recording.status();
        let came = recording.drain();
        assert_eq!(came.of(class, "Allocates.huge").count(), 20);
        // The JVM may have marked the whole heap by itself; then those that live are proven.
        let told = came.living(class, "Allocates.huge").len();
        assert!(told == 0 || told == 10, "{told} of those that are born old are told to live");
        assert!(told == 10 || status.unproven >= 10, "{status:?}");
        wait_until("they are proven", || {
            target.ask("gc 1");
            recording.drain().living(class, "Allocates.huge").len() == 10
        });
        target.ask("drop");
        wait_until("they are gone", || {
            target.ask("gc 1");
            recording.drain().living(class, "Allocates.huge").is_empty()
        });
        target.finish();
    }

    /// Pauses of G1's marking, which the JVM counts in part as collections, prove nothing about young
    /// objects; with the JVM's counters and without.
    fn pauses_that_decide_nothing(jdk) {
        for option in ["-XX:+UsePerfData", "-XX:-UsePerfData"] {
            let mut target = allocates(jdk, "G1")
                .vm("-XX:-G1UseAdaptiveIHOP")
                .vm("-XX:InitiatingHeapOccupancyPercent=0")
                .vm(option)
                .start();
            let mut recording = Allocating::start(target.pid(), &each());
            settle(&mut target, &mut recording);
            target.ask("keep 200");
            // The old objects are what a marking is for.
            target.ask("gc 1");
            wait_until("the heap was marked a few times", || {
                target.ask("waste 3000");
                let came = recording.drain();
                came.pauses >= 30 && (5..came.pauses - 5).contains(&came.epoch())
            });
            let came = recording.drain();
            let wasted = came.of("[J", "Allocates.waste").count();
            // Those that were kept, and what the JVM and the program need for themselves.
            let survived = came.gone as usize + came.live.len();
            assert!(survived < 250 + wasted / 50, "{option}: {survived}, {wasted} wasted");
            target.finish();
        }
    }

    /// As many collections as there were, and not as many pauses.
    fn collections_are_counted(jdk) {
        for collector in collectors(jdk) {
            let mut target = allocates(jdk, collector).start();
            let mut recording = Allocating::start(target.pid(), &each());
            settle(&mut target, &mut recording);
            target.ask("keep 10");
            let before = recording.drain().epoch();
            let mut asked = 0;
            for _ in 0..5 {
                let now = recording.drain().epoch();
                wait_until("a collection is told", || {
                    target.ask("gc 1");
                    asked += 1;
                    recording.drain().epoch() > now
                });
            }
            // Parallel collects the young objects first, which is a collection by itself.
            let most = if collector == "Parallel" { 2 * asked } else { asked } + 1;
            // Beside the program, one is over for sure when the next has begun, and what follows
            // at once may be seen as one.
            let beside = ["Z", "Shenandoah", GENERATIONAL].contains(&collector);
            let least = if beside { 5 } else { asked };
            let mut came = 0;
            wait_until("all of them are told", || {
                came = recording.drain().epoch() - before;
                came >= least
            });
            assert!((least..=most).contains(&came), "{collector}: {came} for {asked}");
            target.finish();
        }
    }

    /// With `-Xcheck:jni` looking at an object keeps it alive, which is said.
    fn checked_jni_is_said(jdk) {
        for (option, said) in [("-Xcheck:jni", true), ("-Xshare:auto", false)] {
            let mut target = allocates(jdk, "Serial").vm(option).start();
            // It has the JVM tell of handlers that are not its own.
            target.forgive("SIGSEGV");
            let mut recording = Allocating::start(target.pid(), &each());
            let notes = recording.status().notes;
            assert_eq!(notes.iter().any(|note| note.contains("-Xcheck:jni")), said, "{notes:?}");
            recording.stop();
            target.finish();
        }
    }

    /// Objects of virtual threads have the thread's own id.
    fn virtual_threads(jdk) {
        let mut target = allocates(jdk, "G1").start();
        let mut recording = Allocating::start(target.pid(), &each());
        settle(&mut target, &mut recording);
        if target.ask("virtual 300").ends_with("none") {
            assert!(jdk.major < 21);
            target.finish();
            return;
        }
        wait_until("they have come", || {
            recording.drain().of("[C", "Allocates.keepOne").count() > 290
        });
        let came = recording.drain();
        let ids = came.of("[C", "Allocates.keepOne").map(|one| one.java_id);
        let mut ids: Vec<u64> = ids.collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert!(!ids.contains(&0) && ids.len() == all, "{} ids for {all} threads", ids.len());
        target.finish();
    }

    /// With samples in one stream: each has its kinds and texts, and either can end first.
    fn beside_the_sampler(jdk) {
        for first in [EngineName::Sampling, EngineName::Alloc] {
            let mut target = allocates(jdk, "G1").start();
            target.ask("churn 2");
            let samples = SamplePlan { interval_ns: 1_000_000, ..SamplePlan::default() };
            let plan = AllocPlan { interval_bytes: 64 << 10, ..AllocPlan::default() };
            let mut recording = Allocating::start_with(target.pid(), &samples, &plan);
            wait_until("both have come", || {
                let came = recording.drain();
                came.all.len() > 100 && came.samples.all.len() > 100
            });
            let mut other = Control::connect(target.pid());
            other.greet();
            let refused = other.ask(&Request::Start(EnginePlan::Alloc(Box::default())));
            assert!(format!("{refused:?}").contains("being recorded already"), "{refused:?}");
            assert_eq!(recording.control.ask(&Request::Stop(first)), Response::Ok);
            assert!(!recording.totals().ended, "the other engine is still on");
            let (allocations, samples) = {
                let came = recording.drain();
                (came.all.len(), came.samples.all.len())
            };
            wait_until("the other goes on", || {
                let came = recording.drain();
                match first {
                    EngineName::Sampling => came.all.len() > allocations + 100,
                    _ => came.samples.all.len() > samples + 100,
                }
            });
            let second = match first {
                EngineName::Sampling => EngineName::Alloc,
                _ => EngineName::Sampling,
            };
            let refused = other.ask(&Request::Start(match first {
                EngineName::Sampling => EnginePlan::Sampling(Box::default()),
                _ => EnginePlan::Alloc(Box::default()),
            }));
            assert!(format!("{refused:?}").contains("another front end"), "{refused:?}");
            assert_eq!(recording.control.ask(&Request::Stop(second)), Response::Ok);
            recording.drain();
            assert!(recording.totals().ended);
            target.finish();
        }
    }

    /// A table that is too small holds a part, and the part stands for all.
    fn a_tiny_table(jdk) {
        let mut target = allocates(jdk, "Parallel").start();
        let plan = AllocPlan { table: 512, ..each() };
        let mut recording = Allocating::start(target.pid(), &plan);
        settle(&mut target, &mut recording);
        for _ in 0..40 {
            target.ask("keep 50");
            let now = recording.drain().sweeps.len();
            target.ask("gc 1");
            wait_until("it was swept", || recording.drain().sweeps.len() > now);
        }
        wait_until("survivors were let go", || recording.drain().let_go > 0);
        let status = recording.status();
        assert!(status.entries_most <= 512 && status.level > 0, "{status:?}");
        let came = recording.drain();
        let kept = came.of("[B", "Allocates.keep").filter_map(|one| came.live.get(&one.number));
        let stands_for: u64 = kept.map(|survivor| 1 << survivor.level).sum();
        assert_eq!(status.lost, Vec::<String>::new());
        // By some hundreds of objects, so a few per cent may be missing.
        assert!((1400..2600).contains(&stands_for), "{stands_for} for 2000; {status:?}");
        target.finish();
    }

    /// An interval that changes, and a pause.
    fn changes(jdk) {
        let mut target = allocates(jdk, "Serial").start();
        let mut recording = Allocating::start(target.pid(), &each());
        settle(&mut target, &mut recording);
        let change = |interval_bytes, paused| {
            Request::Change(EngineChange::Alloc { interval_bytes, paused })
        };
        assert_eq!(recording.control.ask(&change(None, Some(true))), Response::Ok);
        let before = recording.status().samples;
        target.ask("keep 500");
        let status = recording.status();
        assert!(status.paused && status.samples == before, "{status:?}");
        let again = change(Some(1 << 20), Some(false));
        assert_eq!(recording.control.ask(&again), Response::Ok);
        target.ask("keep 2000");
        let status = recording.status();
        // 32 MB: some 31 samples, and one that was drawn before.
        assert!((before + 8..before + 90).contains(&status.samples), "{before}, {status:?}");
        let came = recording.drain();
        let drawn: Vec<u64> = came.of("[B", "Allocates.keep").map(|one| one.interval).collect();
        // One at most was drawn before the change; what reads the command may have met it first.
        let before = usize::from(drawn.first() == Some(&1024));
        assert!(drawn.len() > before, "{drawn:?}");
        assert!(drawn[before..].iter().all(|interval| *interval == 1 << 20), "{drawn:?}");
        target.finish();
    }

    /// A front end that dies leaves nothing on and no reference: the sampler can be had again at
    /// once.
    fn a_killed_front_end(jdk) {
        let mut target = allocates(jdk, "G1").start();
        let before = weak_references(target.pid());
        target.ask("churn 2");
        for _ in 0..5 {
            let mut recording = Allocating::start(target.pid(), &each());
            wait_until("some have come", || recording.drain().all.len() > 100);
            assert!(weak_references(target.pid()) > before + 20);
            drop(recording);
            let mut control = Control::connect(target.pid());
            control.greet();
            wait_until("all is off", || {
                let status = control.status();
                status.engines.is_empty() && status.capabilities_held.is_empty()
            });
            // The agent remembers the program's class loader by its number for the life of the JVM.
            let left = weak_references(target.pid()) - before;
            assert!(left <= 1, "{left} references are left");
        }
        target.finish();
    }

    /// No memory in the program, and classes that go, while everything is met.
    fn exhaustion_and_unloading(jdk) {
        for collector in ["Serial", "G1", "Z"] {
            let mut target = allocates(jdk, collector).vm("-Xmx96m").start();
            let plan = AllocPlan { interval_bytes: 16 << 10, ..AllocPlan::default() };
            let mut recording = Allocating::start(target.pid(), &plan);
            target.ask("churn 2");
            for _ in 0..3 {
                assert!(target.ask("exhaust").ends_with("caught 3"));
                target.ask("unload 100");
                target.ask("gc 1");
                recording.drain();
            }
            let came = recording.drain();
            assert!(came.all.iter().any(|one| came.class(one) == "[LAllocates$Unloaded;"));
            assert!(came.all.iter().any(|one| came.class(one) == "[I"));
            let status = recording.status();
            assert!(status.entries <= 1 << 20, "{status:?}");
            recording.stop();
            target.finish();
        }
    }

    /// The JVM's sampler is one agent's: who has it is named.
    fn another_agent_has_the_sampler(jdk) {
        let Some(library) = &env().async_profiler else {
            skip("a second agent that samples allocations", "async-profiler was never fetched");
            return;
        };
        let other = format!("-agentpath:{}=start,event=alloc,alloc=512k", library.display());
        let target = allocates(jdk, "Serial").vm(other).start();
        let mut control = Control::connect(target.pid());
        control.greet();
        let refused = control.ask(&Request::Start(EnginePlan::Alloc(Box::default())));
        let Response::Error { message, .. } = &refused else { panic!("{refused:?}") };
        let says = |words: &str| message.contains(words);
        assert!(says("async-profiler") && says("--alloc-exact"), "{message}");
        let status = control.status();
        assert!(status.engines.is_empty() && status.capabilities_held.is_empty(), "{status:?}");
        target.finish();
    }
}

/// Weak JNI references that the JVM holds, by its own count.
fn weak_references(pid: u32) -> u64 {
    let jcmd = env().javac.home.join("bin/jcmd");
    let said = Command::new(jcmd).args([&pid.to_string(), "Thread.print"]).output();
    let said = String::from_utf8_lossy(&said.expect("jcmd runs").stdout).into_owned();
    let count = said
        .rsplit_once("weak refs: ")
        .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    count.unwrap_or_else(|| panic!("no number of references in {said}"))
}

fn has_shenandoah(jdk: &Jdk) -> bool {
    let flag = "-XX:+UseShenandoahGC";
    let said = Command::new(jdk.java()).args([flag, "-version"]).output();
    let has = said.is_ok_and(|said| said.status.success());
    if !has {
        skip("Shenandoah", "this runtime is built without it");
    }
    has
}
