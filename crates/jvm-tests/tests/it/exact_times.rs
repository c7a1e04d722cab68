//! What a thread waits for our sake is kept out of its times: a root's first call, in which the
//! methods that it reaches are found and woven one after the other.

use crate::recording::{Recorded, java, record, wait_until_on};
use tare_jvm_tests::{Jdk, Scratch, Tare, Target, classes, demo_classes, on_each_jdk};
use tare_profile::ValueKind;

/// Nanoseconds of all contexts, as recorded.
fn recorded_ns(recorded: &Recorded) -> i64 {
    let series = recorded.profile.all_series().map(|(_, series)| series);
    let times = series.filter(|series| series.info().kind == ValueKind::WallTime);
    times.flat_map(|series| series.rows()).map(|row| row.value).sum()
}

/// Nanoseconds of one method and what it called.
fn recorded_total_ns(recorded: &Recorded, wanted: &str) -> i64 {
    recorded_of(recorded, &ValueKind::WallTime, wanted)
}

fn recorded_of(recorded: &Recorded, kind: &ValueKind, wanted: &str) -> i64 {
    let profile = &recorded.profile;
    let series = profile.all_series().map(|(_, series)| series);
    let times = series.filter(|series| series.info().kind == *kind);
    let name = |frame| {
        let method = profile.method_of(frame);
        format!("{}.{}", profile.strings.get(method.class), profile.strings.get(method.name))
    };
    let inside = |row: &tare_profile::Row| {
        profile.contexts.frames(row.context).any(|frame| name(frame) == wanted)
    };
    times.flat_map(|series| series.rows()).filter(inside).map(|row| row.value).sum()
}

/// What a program says: `took NAME 12345`.
fn took_ns(text: &str, name: &str) -> i64 {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("took {name} ")));
    line.and_then(|number| number.parse().ok()).expect("a time")
}

/// How long the threads waited, as the end of the recording says: `12 waits …, 340 ms in all`.
fn waited_ns(text: &str) -> i64 {
    let line = text.lines().find(|line| line.contains(" waits for what")).expect("the waits");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "ms").expect("a time");
    words[at - 1].parse::<i64>().expect("a number") * 1_000_000
}

/// A program whose threads wait for one that weaving holds up, and what was recorded of it.
struct HeldLocks {
    target: Target,
    recorded: Recorded,
}

impl HeldLocks {
    fn recorded(jdk: &Jdk, commands: &[&str]) -> Self {
        let scratch = Scratch::new();
        let boot = scratch.path().display();
        let mut target = Target::java(jdk)
            .vm("-Xcheck:jni")
            .vm(format!("-Xbootclasspath/a:{boot}"))
            .class_path(classes())
            .main("HeldLocks")
            .arg(scratch.path())
            .start();
        let file = scratch.path().join("x.tare");
        let name = target.name();
        let recording = Tare::this().start(&record(&[&name], &file));
        wait_until_on(&name);
        for command in commands {
            target.tell(command);
            target.wait_for(&format!("done {command}"));
        }
        recording.signal(rustix::process::Signal::INT);
        recording.wait().ok();
        Self { target, recorded: Recorded::open(&file) }
    }

    /// What a method took, less what was recorded of it.
    fn kept_out(&self, method: &str) -> i64 {
        let took = took_ns(&self.target.text(), method);
        let counted = recorded_total_ns(&self.recorded, &format!("HeldLocks.{method}"));
        assert!(counted > 0, "{method} took {took} ns, of which none is recorded");
        took - counted
    }

    /// What is kept out of one is, for its greater part, kept out of others, too.
    fn assert_shared(&self, who: &str, waiters: &[&str]) {
        let held = self.kept_out(who);
        assert!(held > 5_000_000, "weaving takes its time: {held} ns");
        for &waiter in waiters {
            let waited = self.kept_out(waiter);
            assert!(waited > held / 2, "{who}: {held} ns kept out, but {waiter}: {waited} ns");
        }
    }

    /// Waits of which nobody could tell whether they were for our sake.
    fn doubted(&self) -> u64 {
        let mut losses = self.recorded.profile.run.losses.iter();
        losses.find(|loss| loss.name == "waits inside the JVM").map_or(0, |loss| loss.count)
    }
}

on_each_jdk! {
    // A getter takes less than reading the clock.
    fn what_is_over_sooner_than_the_clock_is_read(jdk) {
        const GETTER: &str = "shop.orders.Kit.sku";
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let program = ["shop.Main", "--orders", "300", "--threads", "2", "--report-every", "0"];
        for (options, timed) in [(&[][..], false), (&["--time-all"], true)] {
            let mut words = record(options, &file);
            words.extend(java(jdk, demo_classes(), &program));
            Tare::this().run(&words).ok();
            let recorded = Recorded::open(&file);
            assert!(recorded.counts()[GETTER] > 0);
            assert_eq!(recorded_total_ns(&recorded, GETTER) > 0, timed, "{options:?}");
            assert!(recorded_total_ns(&recorded, "shop.orders.OrderDesk.handle") > 0);
            let page = Tare::this().run(&["report", &file.display().to_string()]).ok().to_owned();
            assert_eq!(page.contains("--time-all"), !timed, "{page}");
        }
    }

    /// Where some calls are timed all are counted, and what the others took is estimated rightly:
    /// here beside a caller that was timed as a whole.
    fn some_calls_stand_for_all(jdk) {
        const CALLS: i64 = 30_000;
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        // Processor time, which does not tell what else the machine does.
        let mut words = record(&["--time-some=8", "--cpu-time"], &file);
        // Where the compilers are late, as on a busy machine, the last of the first calls is long, and
        // then every call is timed: the program waits for them.
        words.extend(java(jdk, classes(), &["-Xbatch", "SomeTimes"]));
        Tare::this().run(&words).ok();
        let recorded = Recorded::open(&file);
        let counts = recorded.counts();
        assert_eq!((counts["SomeTimes.work"], counts["SomeTimes.spin"]), (CALLS, CALLS));
        let of = |name: &str| {
            let mut series = recorded.profile.all_series().map(|(_, series)| series);
            series.find(|series| series.info().kind.name() == name)
        };
        let timed = of("timed-calls").expect("timed calls").total();
        // Two contexts with so many calls; the first ones are all timed.
        let expected = 2 * (64 + (CALLS - 64) / 8);
        assert!((expected - 800..expected + 800).contains(&timed), "{timed} of {expected}");
        assert!(of("time-variance").is_some_and(|variance| variance.total() > 0));
        let cpu = |method: &str| {
            recorded_of(&recorded, &ValueKind::CpuTime, &format!("SomeTimes.{method}"))
        };
        // Whatever the estimates say, drive and all that it calls is one call: that is exact.
        let (drive, work) = (cpu("drive"), cpu("work"));
        let share = work as f64 / drive as f64;
        assert!((0.85..1.15).contains(&share), "{work} of {drive}");
        let page = Tare::this().run(&["report", &file.display().to_string()]).ok().to_owned();
        assert!(page.contains("were timed: the first 64 of each context"), "{page}");
        let head = page.lines().find(|line| line.starts_with("   itself")).expect("a list");
        assert!(head.contains('±'), "{page}");
        // Of drive, which was called once, the whole is known, and not what it did itself.
        let json = Tare::this()
            .run(&["report", &file.display().to_string(), "--format", "json"]).ok().to_owned();
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let methods = json["methods"].as_array().expect("methods");
        let drive = methods.iter().find(|method| method["name"] == "SomeTimes.drive");
        let drive = drive.expect("drive");
        assert_eq!(drive["total_plus_minus"], 0, "{drive}");
        assert!(drive["self_plus_minus"].as_i64() > Some(0), "{drive}");
    }

    fn a_wait_is_nobodys_time(jdk) {
        let mut target = Target::java(jdk).class_path(classes()).main("FirstCalls").start();
        let scratch = Scratch::new();
        let file = scratch.path().join("x.tare");
        let name = target.name();
        let words = record(&["--root", "FirstCalls.root", "--no-skip-trivial", &name], &file);
        let recording = Tare::this().start(&words);
        wait_until_on(&name);
        target.tell("go");
        target.wait_for("done go");
        recording.signal(rustix::process::Signal::INT);
        let text = recording.wait().ok().to_owned();
        let took = target.text().lines().find_map(|line| {
            line.strip_prefix("took ")?.split(' ').next()?.parse::<i64>().ok()
        });
        let (took, waited) = (took.expect("a time"), waited_ns(&text));
        let recorded = recorded_ns(&Recorded::open(&file));
        assert!(waited > 0, "the root's first call has to wait: {text}");
        // Rounded to milliseconds; and the call itself is next to nothing.
        assert!(
            recorded <= took - waited + 2_000_000,
            "{recorded} ns recorded, of {took} ns of which {waited} were waited: {text}"
        );
        assert!(recorded > 0, "{text}");
        target.finish();
    }

    // Classes are woven while their loader's thread holds a lock, or initialises or links a class.
    fn nor_is_that_of_others_who_wait_for_the_one_that_waits(jdk) {
        let held = HeldLocks::recorded(jdk, &["go", "initialise", "link"]);
        let needy =
            ["needs", "needsByASubclass", "needsByReflection", "needsOnAVirtualThread"];
        let needy = &needy[..if jdk.major >= 21 { 4 } else { 3 }];
        for (who, waiters) in [
            ("holds", &["waits", "waitsForTheWaiter"][..]),
            ("initialises", needy),
            ("links", &["needsWhatIsLinked"]),
        ] {
            held.assert_shared(who, waiters);
        }
        assert_eq!(held.doubted(), 0);
        held.target.finish();
    }

    // The JVM's own loader has no lock.
    fn nor_who_waits_for_what_the_jvm_brings_another(jdk) {
        let held = HeldLocks::recorded(jdk, &["boot"]);
        held.assert_shared("hasClassesLoaded", &["wantsWhatIsLoaded"]);
        held.target.finish();
    }

    fn who_cannot_be_told_to_wait_for_us_is_counted(jdk) {
        let held = HeldLocks::recorded(jdk, &["doubt"]);
        let (kept, waited) = (held.kept_out("initialisesInDoubt"), held.kept_out("needsInDoubt"));
        assert!(waited < kept / 2, "{waited} ns kept out of {kept}");
        assert!(held.doubted() > 0);
        held.target.finish();
    }

    // The more threads there are, the more a look at them takes, and there is one for each class.
    fn not_all_threads_are_asked_for_every_class(jdk) {
        const THREADS: u64 = 300;
        const CLASSES: u64 = 800;
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let mut words = record(&["--include", "Loads*"], &file);
        words.extend(java(jdk, classes(), &["Loads", &THREADS.to_string(), &CLASSES.to_string()]));
        let text = Tare::this().run(&words).ok().to_owned();
        let took = text.lines().find_map(|line| line.strip_prefix("loaded 800 in "));
        let took = took.and_then(|took| took.strip_suffix(" ns")?.parse::<f64>().ok());
        let seconds = took.expect("a time") / 1e9;
        let losses = Recorded::open(&file).profile.run.losses;
        let unseen = losses.iter().find(|loss| loss.name == "looks at threads");
        let unseen = unseen.map_or(0, |loss| loss.count);
        // Two looks at each thread for a class; 40,000 of them at once, and 20,000 more in a
        // second.
        let allowed = (40_000.0 + 20_000.0 * seconds) / (2 * THREADS) as f64;
        let skipped = CLASSES.saturating_sub(allowed as u64 + 1);
        assert!(unseen >= THREADS * skipped, "{unseen} unseen in {seconds} s: {losses:?}");
    }
}
