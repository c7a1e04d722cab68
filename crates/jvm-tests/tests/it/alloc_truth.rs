//! Sampled allocation and what lives, against a program that counts its own objects: by site, size
//! and life, on every collector, on platform and virtual threads.
//!
//! Bands are wide enough that chance breaks them less than once in ten thousand runs: a site of
//! which n objects were met is known to 1/√n, and no clock is involved. What a thread does again and
//! again counts once for n: HotSpot met the same number of objects, give or take one, in up to
//! five rounds after one another (17 and 21), so that rounds are no evidence of their own.

use crate::allocation::{Amount, Session, Sites, allocated, live, site};
use crate::recording::Recorded;
use std::collections::BTreeMap;
use tare_jvm_tests::{Jdk, Scratch, Target, TargetBuilder, classes, on_each_jdk, skip, wait_until};
use tare_profile::facts::keys;
use tare_profile::{EventTable, FieldValue};

/// The class whose methods are the sites.
const PROGRAM: &str = "AllocTruth";

/// Points by which a share may differ, and per cent by which a total may.
const POINTS: f64 = 3.0;
const PERCENT: f64 = 3.0;

/// So many standard deviations are as good as never.
const NEVER: f64 = 5.0;

/// The bytes that an object stands for which the JVM met by its own interval: each thread goes by
/// that one until it has met its first object.
const JVM_INTERVAL: f64 = 524_288.0;

/// Rounds of lives; the program has no more.
const ROUNDS: u64 = 6;

/// What each of up to four threads churns, in hundreds of megabytes.
const UNITS: u64 = 6;

/// After so many looks in vain there is one more collection.
const LOOKS: u32 = 100;

const COLLECTORS: [&str; 5] = ["Serial", "Parallel", "G1", "Z", "Shenandoah"];

/// Kept objects of one site and round.
struct Alive {
    site: String,
    amount: Amount,
    /// The program's own collections since its birth.
    collections: u64,
}

/// What the program says of itself.
struct Truth {
    allocated: Sites,
    alive: Vec<Alive>,
}

impl Truth {
    fn ask(target: &mut Target) -> Truth {
        target.ask("truth");
        let (mut allocated, mut alive) = (Sites::new(), Vec::new());
        for line in target.text().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word: &str| word.parse::<f64>().expect("a number");
            match words[..] {
                ["truth", site, class, objects, bytes] => {
                    let amount = Amount { objects: number(objects), bytes: number(bytes) };
                    if amount.objects > 0.0 {
                        allocated.insert(format!("{site} {class}"), amount);
                    }
                }
                ["alive", site, objects, bytes, collections] => alive.push(Alive {
                    site: site.to_owned(),
                    amount: Amount { objects: number(objects), bytes: number(bytes) },
                    collections: collections.parse().expect("a number"),
                }),
                _ => {}
            }
        }
        Truth { allocated, alive }
    }
}

/// Whether two numbers differ by no more than that; what is no number differs.
fn near(one: f64, other: f64, band: f64) -> bool {
    (one - other).abs() <= band
}

/// The share by which an amount of so many bytes may differ by chance, if it was allocated in so
/// many rounds.
fn chance(bytes: f64, interval: f64, rounds: u64) -> f64 {
    NEVER / (bytes / interval / rounds as f64).sqrt()
}

/// In how many rounds a site allocates: some have a round of their own.
fn rounds_of(site: &str, rounds: u64) -> u64 {
    if site.starts_with("stays") { 1 } else { rounds }
}

/// The bytes that samples stand for of which the recording says that it lost them: on a busy
/// machine the front end may read too slowly.
fn lost(recorded: &Recorded, interval: f64) -> f64 {
    let losses = recorded.profile.run.losses.iter();
    losses.map(|loss| loss.count as f64).sum::<f64>() * interval
}

/// What is wrong with what was allocated in so many rounds, if so many bytes are known to be lost.
fn compare(truth: &Sites, sampled: &Sites, interval: f64, rounds: u64, lost: f64) -> Vec<String> {
    // Other methods of the program make strings, which nobody counts.
    let method = |site: &str| site.split(' ').next().unwrap_or_default().to_owned();
    let known = |site: &str| truth.keys().any(|other| method(other) == method(site));
    let sampled: Sites =
        sampled.iter().filter(|(site, _)| known(site)).map(|(k, v)| (k.clone(), *v)).collect();
    let total = |sites: &Sites| sites.values().map(|amount| amount.bytes).sum::<f64>();
    let (all, met) = (total(truth), total(&sampled));
    let mut wrong = Vec::new();
    if !near(met, all, all * chance(all, interval, rounds).max(PERCENT / 100.0) + lost) {
        wrong.push(format!("{all:.0} bytes in all, sampled {met:.0}"));
    }
    for (site, amount) in truth {
        let found = sampled.get(site).copied().unwrap_or_default();
        let (right, got) = (amount.bytes / all * 100.0, found.bytes / met * 100.0);
        let by_chance = chance(amount.bytes, interval, rounds_of(site, rounds));
        if !near(right, got, POINTS.max(right * by_chance) + lost / all * 100.0) {
            wrong.push(format!("{site}: {right:.1} % of the bytes, sampled {got:.1} %"));
        }
        let band = PERCENT / 100.0 + by_chance + lost / amount.bytes;
        if !near(found.objects / amount.objects, 1.0, band) {
            wrong.push(format!("{site}: {} objects, sampled {}", amount.objects, found.objects));
        }
    }
    let strangers = sampled.keys().filter(|site| !truth.contains_key(*site));
    wrong.extend(strangers.map(|site| format!("{site}: of another type")));
    wrong
}

/// Waits until all that was born so far is known to live or to be dead, by a collection after those
/// that were known before; how many collections the program had to make for it. Collectors that
/// work beside the program may need another one for what was born just before.
fn proven(session: &mut Session, target: &mut Target, known: u64) -> u64 {
    let (mut looks, mut more) = (0, 0);
    wait_until("all that was born is proven", || {
        let status = session.status();
        // What a program allocates for a line of output is met, too.
        if status.collections > known && status.unproven < 100 {
            return true;
        }
        looks += 1;
        if looks % LOOKS == 0 {
            target.ask("collect");
            more += 1;
        }
        false
    });
    more
}

fn program(jdk: &Jdk, collector: &str, heap: &str) -> TargetBuilder {
    Target::java(jdk)
        .vm(format!("-Xms{heap}"))
        .vm(format!("-Xmx{heap}"))
        .vm(format!("-XX:+Use{collector}GC"))
        .class_path(classes())
        .main(PROGRAM)
}

/// Whether this runtime was built with the collector.
fn has(jdk: &Jdk, collector: &str) -> bool {
    let mut java = std::process::Command::new(jdk.java());
    let output = java.args([&format!("-XX:+Use{collector}GC"), "-version"]).output();
    output.expect("java can be started").status.success()
}

on_each_jdk! {
    /// A volume of which 64 KB apart more than 30,000 objects are met.
    fn shares_and_totals_are_those_of_the_program(jdk) {
        let scratch = Scratch::new();
        let file = scratch.join("x.tare");
        let mut target = program(jdk, "G1", "256m").start();
        let session = Session::start(&target, "64K", &file);
        target.ask(&format!("churn {}", 400 * UNITS));
        session.stop();
        let truth = Truth::ask(&mut target);
        let recorded = Recorded::open(&file);
        let (interval, sampled) = (65536.0, allocated(&recorded.profile, PROGRAM));
        let lost = lost(&recorded, interval);
        let wrong = compare(&truth.allocated, &sampled, interval, UNITS, lost);
        assert!(wrong.is_empty(), "{wrong:#?}\nlosses: {:?}", recorded.losses());
        let samples = recorded.fact(keys::ALLOCATION_SAMPLES);
        assert!(samples.is_some_and(|samples| samples > 30_000), "{samples:?}");
        target.finish();
    }

    fn lives_and_ages_are_right_under_every_collector(jdk) {
        let mut wrong = Vec::new();
        for collector in COLLECTORS {
            if has(jdk, collector) {
                let found = lives(jdk, collector);
                wrong.extend(found.into_iter().map(|text| format!("{collector}: {text}")));
            } else {
                skip(
                    &format!("allocation under {collector}GC on Java {}", jdk.major),
                    "this runtime was built without it",
                );
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// Rounds of lives under one collector; what is wrong with what was recorded.
fn lives(jdk: &Jdk, collector: &str) -> Vec<String> {
    // Generational ZGC proves nothing until a collection of the whole heap, and until then only so
    // many objects are watched.
    let (interval, option) = if collector == "Z" { (32768.0, "32K") } else { (8192.0, "8K") };
    let scratch = Scratch::new();
    let file = scratch.join("x.tare");
    let mut target = program(jdk, collector, "512m").start();
    let mut session = Session::start(&target, option, &file);
    let mut collections = 0;
    for _ in 0..ROUNDS {
        let known = session.status().collections;
        target.ask("round");
        collections += 1 + proven(&mut session, &mut target, known);
    }
    session.stop();
    let truth = Truth::ask(&mut target);
    target.finish();
    let recorded = Recorded::open(&file);
    let profile = &recorded.profile;
    let lost = lost(&recorded, interval);
    let sampled = allocated(profile, PROGRAM);
    let mut wrong = compare(&truth.allocated, &sampled, interval, ROUNDS, lost);

    let live = live(profile, PROGRAM);
    let mut expected = Sites::new();
    for alive in &truth.alive {
        let prefix = format!("{} ", alive.site);
        let key = truth.allocated.keys().find(|key| key.starts_with(&prefix));
        let amount = expected.entry(key.expect("an allocated site").clone()).or_default();
        amount.objects += alive.amount.objects;
        amount.bytes += alive.amount.bytes;
    }
    for (site, amount) in &expected {
        let found = live.get(site).copied().unwrap_or_default();
        let rounds = rounds_of(site, ROUNDS);
        let band = chance(amount.bytes, interval, rounds) + lost / amount.bytes;
        for (right, got) in [(amount.bytes, found.bytes), (amount.objects, found.objects)] {
            if !near(got / right, 1.0, band) {
                wrong.push(format!("{site}: {right} live, sampled {got}"));
            }
        }
    }
    // What died is gone, but for an object that a register still held when the last collection came.
    // Where few are watched at a time, one such object stands for many, and so does a thread's first.
    for (site, found) in live.iter().filter(|(site, _)| !expected.contains_key(*site)) {
        if found.bytes > (64.0 * interval).max(2.0 * JVM_INTERVAL) {
            wrong.push(format!("{site} is dead, sampled {} bytes live", found.bytes));
        }
    }
    let in_pauses = !["Z", "Shenandoah"].contains(&collector);
    wrong.extend(ages(&recorded, &truth, collections, in_pauses));
    if !wrong.is_empty() {
        wrong.push(format!("losses: {:?}, facts: {:?}", recorded.losses(), profile.run.facts));
    }
    wrong
}

/// Ages of survivors. Collections that were not the program's own make everybody older. Where a
/// collection is no pause, two that follow at once may count as one; what is certain is that one in
/// each round was known before the next round began.
fn ages(recorded: &Recorded, truth: &Truth, own: u64, in_pauses: bool) -> Vec<String> {
    let profile = &recorded.profile;
    let all = recorded.fact(keys::COLLECTIONS).expect("a number of collections");
    let others = all.saturating_sub(own);
    let table = profile.all_events().find(|(_, table)| table.kind().name == "survivor");
    let (_, table) = table.expect("a table of survivors");
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (row, event) in table.events().enumerate() {
        let Some(site) = site(profile, event.context, PROGRAM) else { continue };
        let age = integer(table, row, "collections");
        let (least, most) = seen.entry(site).or_insert((age, age));
        (*least, *most) = ((*least).min(age), (*most).max(age));
    }
    for alive in truth.alive.iter().filter(|alive| alive.site.starts_with("stays")) {
        let key = seen.iter().find(|(site, _)| site.starts_with(&alive.site));
        let round: u64 = alive.site.trim_start_matches("stays").parse().expect("a number");
        let right = match in_pauses {
            true => alive.collections..=alive.collections + others,
            false => ROUNDS + 1 - round..=(all + 1).saturating_sub(round),
        };
        match key {
            Some((_, (least, most))) if right.contains(least) && right.contains(most) => {}
            other => {
                wrong.push(format!("{}: {other:?} collections old, not {right:?}", alive.site))
            }
        }
    }
    if all < if in_pauses { own } else { ROUNDS } {
        wrong.push(format!("{all} collections, and the program asked for {own}"));
    }
    wrong
}

fn integer(table: &EventTable, row: usize, name: &str) -> u64 {
    let field = table.field_named(name).expect("a field");
    match table.field(row, field) {
        Some(FieldValue::Integer(value)) => u64::try_from(value).expect("no negative age"),
        other => panic!("{name} is {other:?}"),
    }
}
