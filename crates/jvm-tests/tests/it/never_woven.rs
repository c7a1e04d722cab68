//! What is not woven although a pattern asks for it: by rule, or because the JVM does not take it.
//! It is named in the recording with its reason, and not counted as woven.

use crate::recording::{Recorded, java, record};
use tare_jvm_tests::{Control, Scratch, Tare, Target, classes, java_agent, on_each_jdk};
use tare_protocol::{EngineName, EnginePlan, ExactPlan, ExactStatus, Request};

on_each_jdk! {
    fn exceptions_are_named(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let options = ["--count", "--include", "java.lang.**", "--include", "jdk.internal.**"];
        let mut words = record(&options, &file);
        words.extend(java(jdk, classes(), &["Truth", "1"]));
        let outcome = Tare::this().run(&words);
        assert!(outcome.ok().contains("changes which thread") == (jdk.major >= 21));
        let losses = Recorded::open(&file).losses();
        let mut expected =
            vec!["refused 1 java.lang.Object: ", "refused 1 jdk.internal.misc.Unsafe: "];
        if jdk.major >= 21 {
            expected.push("refused 1 jdk.internal.vm.Continuation: it changes which thread");
        }
        for start in expected {
            assert!(losses.iter().any(|loss| loss.starts_with(start)), "no {start} in {losses:#?}");
        }
        // The list is short, and ours is not on it.
        assert!(losses.len() < 40, "{losses:#?}");
        assert!(!losses.iter().any(|loss| loss.contains("Tare")), "{losses:#?}");
        // JDK 17 has no stack maps of its own classes, which is no reason.
        assert!(!losses.iter().any(|loss| loss.contains("frame")), "{losses:#?}");
    }

    /// Another agent makes the JVM refuse one class. The others of its batch are woven, each
    /// counted once, and that one is neither counted nor in the way at the end.
    fn a_class_that_the_jvm_does_not_take(jdk) {
        let scratch = Scratch::new();
        let spoiled = "Work$Base";
        let meddler = java_agent("Meddler", &scratch, &format!("spoil={spoiled}"));
        let woven = |vm: &str| {
            let mut target =
                Target::java(jdk).vm(vm).class_path(classes()).main("Truth").start();
            target.tell("go");
            target.wait_for("done");
            Tare::this().status(&target.name());
            let mut control = Control::connect(target.pid());
            control.greet();
            // Not the other agent itself, nor what may or may not be unloaded by now.
            let exclude = ["Meddler*", "Work$Plugin"].map(|text| text.parse().expect("a pattern"));
            let plan =
                ExactPlan { memory: 16 << 20, exclude: exclude.into(), ..Default::default() };
            control.ask(&Request::Start(EnginePlan::Exact(Box::new(plan))));
            let exact = control.status().exact().cloned().expect("a recording");
            target.tell("go");
            target.wait_for("done");
            control.ask(&Request::Stop(EngineName::Exact));
            target.tell("go");
            target.wait_for("done");
            exact
        };
        let names = |exact: &ExactStatus| {
            exact.refused.iter().map(|refusal| refusal.what.clone()).collect::<Vec<_>>()
        };
        // A class whose initialiser has failed cannot be changed any more.
        let plain = woven("-Dplain=true");
        assert_eq!(names(&plain), ["Work$Fails"], "{:?}", plain.refused);
        let mut spoilt = woven(&meddler);
        spoilt.refused.sort_by(|a, b| a.what.cmp(&b.what));
        assert_eq!(names(&spoilt), [spoiled, "Work$Fails"], "{:?}", spoilt.refused);
        // All that Base has is a constructor.
        assert_eq!((spoilt.classes, spoilt.methods), (plain.classes - 1, plain.methods - 1));
    }
}
