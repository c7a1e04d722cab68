//! Exact means exact: the invocations in a recording are those that the program counted itself,
//! launched and attached, through exceptions, reflection, loaders and threads.

use crate::common::assert_no_trace;
use crate::recording::{
    Counts, Recorded, begin, counted, end, java, launched, record, recorded, wait_until_on,
};
use tare_jvm_tests::{Demo, Scratch, Tare, Target, classes, demo_classes, on_each_jdk};
use tare_protocol::{EngineName, EnginePlan, ExactPlan, Figures, Measure, Request, TreePlan};

/// Every method that the program counted must have been recorded as often.
fn assert_equal(truth: &Counts, recorded: &Counts) {
    assert!(truth.len() > 20, "the program counted too little: {truth:?}");
    let differences: Vec<String> = truth
        .iter()
        .filter(|(method, n)| recorded.get(*method).unwrap_or(&0) != *n)
        .map(|(method, n)| format!("{method}: {n}, recorded {:?}", recorded.get(method)))
        .collect();
    assert!(differences.is_empty(), "of {}:\n{}", truth.len(), differences.join("\n"));
}

/// Truth names nested classes by their outer one, and one line is no method.
pub(crate) fn truth_counts(text: &str) -> Counts {
    let rename = |(name, n): (String, i64)| {
        let name = name.strip_prefix("Work.").unwrap_or(&name).to_owned();
        let nested = ["Base.", "Derived.", "Fails.", "Plugin."];
        let outer = if nested.iter().any(|n| name.starts_with(n)) { "Work$" } else { "Work." };
        (!name.contains(' ')).then(|| (format!("{outer}{name}"), n))
    };
    counted(text).into_iter().filter_map(rename).collect()
}

on_each_jdk! {
    fn every_way_to_call_launched(jdk) {
        for mode in [&["--count"][..], &[]] {
            let (text, recorded) = launched(jdk, mode, classes(), &["Truth", "3"]);
            assert_equal(&truth_counts(&text), &recorded);
        }
    }

    fn every_way_to_call_attached(jdk) {
        for mode in ["--count", "--exclude=nothing.**"] {
            let mut target = Target::java(jdk).class_path(classes()).main("Truth").start();
            let scratch = Scratch::new();
            let file = scratch.path().join("x.tare");
            let recording = Tare::this().start(&record(&[mode, &target.name()], &file));
            wait_until_on(&target.name());
            for _ in 0..3 {
                target.tell("go");
                target.wait_for("done");
            }
            recording.signal(rustix::process::Signal::INT);
            recording.wait().ok();
            assert_equal(&truth_counts(&target.text()), &recorded(&file));
            assert_no_trace(target.pid());
            // The code is as it was: nothing is counted, and everything still works.
            target.tell("go");
            target.wait_for("done");
        }
    }

    fn the_demo_launched(jdk) {
        let program = ["shop.Main", "--orders", "1500", "--threads", "4", "--report-every", "0"];
        let (text, recorded) = launched(jdk, &["--count"], demo_classes(), &program);
        assert_equal(&counted(&text), &recorded);
    }

    fn virtual_threads_of_the_demo(jdk) {
        if jdk.major < 21 {
            return;
        }
        let program = ["shop.Main", "--orders", "1500", "--virtual", "500", "--report-every", "0"];
        let (text, recorded) = launched(jdk, &["--count"], demo_classes(), &program);
        assert_equal(&counted(&text), &recorded);
    }

    /// Code is told apart by its loader, which has a name that people know or that of its class.
    fn loaders_have_names(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let mut words = record(&["--count"], &file);
        words.extend(java(jdk, classes(), &["Truth", "1"]));
        Tare::this().run(&words).ok();
        let profile = Recorded::open(&file).profile;
        let loaders: std::collections::BTreeSet<&str> =
            profile.methods.iter().map(|(_, method)| profile.strings.get(method.loader)).collect();
        assert!(loaders.contains("app"), "{loaders:?}");
        assert!(loaders.iter().any(|name| name.contains("Loader #")), "{loaders:?}");
    }

    /// Nothing outside the roots is counted, and everything below them is.
    fn only_below_a_root(jdk) {
        let options = ["--count", "--root", "Work.unwinding", "--include", "Work*"];
        let (text, recorded) = launched(jdk, &options, classes(), &["Truth", "2"]);
        let truth = truth_counts(&text);
        assert_eq!(recorded["Work.unwinding"], truth["Work.unwinding"]);
        assert_eq!(recorded["Work.fall"], truth["Work.fall"]);
        for outside in ["Work.recursion", "Work.thrower", "Work.wide", "Work.task"] {
            assert!(!recorded.contains_key(outside), "{outside} is outside");
        }
    }

    /// A front end that is killed takes its recording with it; the program goes on as it was.
    fn a_killed_front_end(jdk) {
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let scratch = Scratch::new();
        for _ in 0..5 {
            let file = scratch.path().join("x.tare");
            let mut recording = begin(&name, &["--count"], &file);
            recording.kill();
            tare_jvm_tests::wait_until("the recording is off", || {
                Tare::this().status(&name)["engines"] == serde_json::json!([])
            });
            demo.check_answers();
        }
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(demo.target.pid());
        demo.finish();
    }

    /// The JVM is killed: what was counted until then is kept.
    fn a_killed_jvm(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("Truth").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let recording = Tare::this().start(&record(&["--count", &target.name()], &file));
        wait_until_on(&target.name());
        target.tell("go");
        target.wait_for("done");
        target.signal(rustix::process::Signal::KILL);
        recording.wait().ok();
        assert_equal(&truth_counts(&target.text()), &recorded(&file));
    }
}

on_each_jdk! {
    /// Frames of an earlier recording return in a later one, and after the last: on a platform
    /// thread and on a parked virtual thread. They neither crash nor enter the new tree.
    fn frames_older_than_the_recording(jdk) {
        for mode in ["--count", "--exclude=nothing.**"] {
            let mut target = Target::java(jdk).class_path(classes()).main("Stale").start();
            let name = target.name();
            let scratch = Scratch::new();
            let file = scratch.path().join("x.tare");
            // Woven frames wait while their recording ends, another one begins, and ends as well.
            let first = begin(&name, &[mode], &file);
            target.tell("park");
            target.wait_for("parked");
            end(first);
            let second = begin(&name, &[mode], &file);
            target.tell("park");
            target.wait_for("parked");
            target.tell("free");
            target.wait_for("freed");
            target.tell("work");
            target.wait_for("worked");
            end(second);
            // The second recording has its own frames and what was called from old ones, once
            // each: five calls of inner per thread that returned, and the thousand.
            let threads = if jdk.major >= 21 { 2 } else { 1 };
            let counts = recorded(&file);
            assert_eq!(counts["Stale.inner"], 1000 + 2 * threads * 5, "{counts:?}");
            assert_eq!(counts["Stale.outer"], threads * 6, "{counts:?}");
            // And once more with frames that return when nothing is on.
            let third = begin(&name, &[mode], &file);
            target.tell("park");
            target.wait_for("parked");
            end(third);
            target.tell("free");
            target.wait_for("freed");
            target.tell("work");
            target.wait_for("worked");
            assert_no_trace(target.pid());
        }
    }

    /// Everything is woven and restored a hundred times under load; requests go on, results stay
    /// right, and nothing is woven afterwards.
    fn a_hundred_times_under_load(jdk) {
        let demo = Demo::start(jdk);
        let name = demo.target.name();
        let mut control = {
            Tare::this().status(&name);
            tare_jvm_tests::Control::connect(demo.target.pid())
        };
        control.greet();
        let plan = ExactPlan { memory: 16 << 20, ..Default::default() };
        for round in 0..100 {
            let times = Figures::Times {
                cpu_time: false,
                some: None,
                all: false,
                count_only: Vec::new(),
                regions: Vec::new(),
            };
            let figures = if round % 2 == 1 { times } else { Figures::default() };
            let measure = Measure::Trees(TreePlan { figures, ..TreePlan::default() });
            let plan = ExactPlan { measure, ..plan.clone() };
            control.ask(&Request::Start(EnginePlan::Exact(Box::new(plan))));
            let status = control.status();
            let exact = status.exact().cloned().expect("a recording");
            assert!(exact.methods > 100, "round {round}: {exact:?}");
            assert!(exact.refused.is_empty(), "round {round}: {exact:?}");
            control.ask(&Request::Stop(EngineName::Exact));
            assert_eq!(control.status().exact(), None);
            assert_eq!(control.status().panics, 0);
        }
        demo.check_answers();
        Tare::this().run(&["detach", &name]).ok();
        assert_no_trace(demo.target.pid());
        demo.check_answers();
        // The demo compares its own counts at the end.
        demo.finish();
    }

    /// More contexts than there is memory for: the totals are true all the same.
    fn more_contexts_than_memory(jdk) {
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let program = ["shop.Main", "--orders", "200", "--threads", "2", "--report-every", "0"];
        let mut words = record(&["--count", "--include", "**", "--memory", "8M"], &file);
        words.extend(java(jdk, demo_classes(), &program));
        let text = Tare::this().run(&words).ok().to_owned();
        let profile = Recorded::open(&file).profile;
        assert!(profile.run.losses.iter().any(|loss| loss.reason.contains("memory")), "{text}");
        let rest = profile.methods.iter().find(|(_, m)| profile.strings.get(m.name).contains("[pruned]"));
        assert!(rest.is_some(), "what was pruned is shown");
    }
}
