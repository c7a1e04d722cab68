//! The pages of samples, for people: Java methods first, and what waits for work out of the way.

use tare_jvm_tests::{Scratch, Tare, Target, classes, on_each_jdk};

/// The lines of the first list of a page.
fn hot_list(page: &str) -> Vec<&str> {
    let from = page.split("by what each takes itself\n").nth(1).expect("a list");
    from.lines()
        .skip(1)
        .take_while(|line| line.contains(" %") && !line.contains("JVM itself"))
        .collect()
}

/// The value of the whole, which stands at the beginning of the second line.
fn whole(page: &str) -> &str {
    let line = page.lines().nth(1).expect("a second line");
    line.split(" of ").next().unwrap_or_default()
}

on_each_jdk! {
    fn java_methods_stand_for_the_libraries_they_call(jdk) {
        let target = Target::java(jdk).class_path(classes()).main("Server").start();
        let scratch = Scratch::new();
        let file = scratch.join("x.tare").display().to_string();
        let name = target.name();
        Tare::this().run(&["record", "--interval", "2ms", "-d", "3s", "-o", &file, &name]).ok();
        let report = |more: &[&str]| {
            Tare::this().run(&[&["report", &file], more].concat()).ok().to_owned()
        };
        let page = report(&[]);
        let list = hot_list(&page);
        let first = list.first().expect("a line");
        assert!(first.contains(" java.util.zip.Deflater.deflate"), "{page}");
        assert!(first.contains("[native "), "{page}");
        assert!(!page.contains("(native)") && !page.contains("(kernel)"), "{page}");
        let finding = page.lines().find(|line| line.contains("itself takes")).expect("a finding");
        assert!(finding.contains("java.util.zip.Deflater.deflate"), "{page}");
        let native = report(&["--native"]);
        assert!(native.contains("(native)"), "{native}");
        assert_eq!(whole(&native), whole(&page));
        let only = report(&["--java-only", "--format", "json"]);
        assert!(!only.contains("start_thread") && only.contains("Deflater.deflate"), "{only}");
    }

    fn threads_that_wait_for_work_are_a_sum(jdk) {
        let target = Target::java(jdk).class_path(classes()).main("Server").start();
        let scratch = Scratch::new();
        let file = scratch.join("x.tare").display().to_string();
        let name = target.name();
        Tare::this().run(&["record", "--wall", "--interval", "10ms", "-d", "3s", "-o", &file, &name]).ok();
        let report = |more: &[&str]| {
            Tare::this().run(&[&["report", &file], more].concat()).ok().to_owned()
        };
        let (page, threads) = (report(&[]), report(&["--threads", "--top", "100"]));
        assert!(page.contains(" threads were idle all the time"), "{page}");
        assert!(page.contains(" s × "), "the whole is explained: {page}");
        let finding = page.lines().filter(|line| line.contains('▸')).nth(1).expect("a second one");
        assert!(!finding.contains("futex") && !finding.contains("(native)"), "{page}");
        // What waits for an answer, and what works, is what is left.
        for shown in ["stuck-latch", "stuck-socket", "worker"] {
            assert!(threads.contains(shown), "{shown} is not in\n{threads}");
        }
        let all = report(&["--threads", "--top", "100", "--idle"]);
        for idle in [
            "idle-pool",
            "idle-scheduled",
            "ForkJoinPool",
            "idle-timer",
            "idle-acceptor",
            "idle-selector",
            "idle-consumer",
            "Reference Handler",
            "Finalizer",
            "Common-Cleaner",
            "Signal Dispatcher",
        ] {
            assert!(all.contains(idle), "{idle} is not in\n{all}");
            assert!(!threads.contains(idle), "{idle} is in\n{threads}");
        }
        assert_eq!(whole(&page), whole(&report(&["--native", "--idle"])));
    }
}
