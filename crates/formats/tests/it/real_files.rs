//! Files that real tools wrote, scrubbed of what names a machine: JDK 17's and 25's recorder, and
//! async-profiler 4.1. The expected counts are those of the JDK's own `jfr summary` and `jfr print`.

use std::path::Path;
use tare_formats::{open, series_name};
use tare_profile::{MethodKind, Profile};

fn file(name: &str) -> Profile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let profile = open(&path).unwrap();
    profile.check().unwrap();
    profile
}

fn check(name: &str, expected: &[(&str, usize, i64)]) -> Profile {
    let profile = file(name);
    let found: Vec<(String, usize, i64)> = profile
        .all_series()
        .map(|(_, series)| (series_name(series.info()), series.len(), series.total()))
        .collect();
    let found: Vec<(&str, usize, i64)> =
        found.iter().map(|(name, rows, total)| (name.as_str(), *rows, *total)).collect();
    assert_eq!(found, expected);
    profile
}

fn events(profile: &Profile) -> Vec<(String, usize)> {
    profile.all_events().map(|(_, table)| (table.kind().name.clone(), table.len())).collect()
}

#[test]
fn jdk_17() {
    let profile = check(
        "jdk17.jfr.gz",
        &[
            ("jdk.ExecutionSample:samples", 55, 55),
            ("jdk.NativeMethodSample:samples", 2, 2),
            ("jdk.ObjectAllocationSample:allocated-bytes", 660, 216_685_472),
            ("jdk.JavaMonitorEnter:blocked-time", 5, 77_108_298),
            ("jdk.ThreadPark:blocked-time", 69, 3_161_830_925),
            ("jdk.JavaMonitorWait:blocked-time", 6, 3_595_677_415),
        ],
    );
    assert_eq!(events(&profile), [("lock".to_owned(), 80), ("gc".to_owned(), 6)]);
    assert_eq!(profile.run.cpus, Some(2));
    let (_, samples) = profile.all_series().next().unwrap();
    let is_worker = |id| profile.thread_name(id).starts_with("order-worker");
    let row = samples.rows().find(|row| is_worker(row.thread)).unwrap();
    let frames: Vec<_> = profile.contexts.frames(row.context).collect();
    let outermost = profile.frames.get(*frames.last().unwrap());
    assert_eq!(profile.method_name(outermost.method), "java.lang.Thread.run");
    assert!(outermost.line.is_some() && outermost.bci.is_some());
    let method = profile.methods.get(outermost.method);
    assert_eq!(profile.strings.get(method.module), "java.base");
    assert_eq!(profile.strings.get(method.descriptor), "()V");
}

#[test]
fn jdk_25_with_cpu_time_samples() {
    let profile = check(
        "jdk25.jfr.gz",
        &[
            ("jdk.CPUTimeSample:samples", 123, 123),
            ("jdk.ExecutionSample:samples", 87, 87),
            ("jdk.NativeMethodSample:samples", 1, 1),
            ("jdk.ObjectAllocationSample:allocated-bytes", 662, 398_545_696),
            ("jdk.JavaMonitorEnter:blocked-time", 3, 59_660_130),
            ("jdk.ThreadPark:blocked-time", 32, 2_508_886_903),
            ("jdk.JavaMonitorWait:blocked-time", 1, 1_999_402_156),
        ],
    );
    assert_eq!(events(&profile), [("lock".to_owned(), 36), ("gc".to_owned(), 11)]);
    let losses: Vec<_> = profile.run.losses.iter().map(|loss| (&*loss.name, loss.count)).collect();
    assert_eq!(losses, [("samples", 20)]);
    let (_, series) = profile.all_series().next().unwrap();
    assert_eq!(series.info().period, 10_000_000);
    // Every thread of the load has a name, and allocation ends in a class.
    assert!(profile.threads.iter().any(|(id, _)| profile.thread_name(id) == "order-worker-1"));
    let (_, allocation) = profile.all_series().nth(3).unwrap();
    let leaf = |context| profile.contexts.frame(context).map(|id| profile.method_of(id).kind);
    assert!(allocation.rows().all(|row| leaf(row.context) == Some(MethodKind::Class)));
}

#[test]
fn async_profiler() {
    let profile = check(
        "async-profiler.jfr.gz",
        &[
            ("jdk.ExecutionSample:samples", 174, 174),
            ("jdk.ObjectAllocationInNewTLAB:allocated-bytes", 37, 77_594_624),
            ("jdk.JavaMonitorEnter:blocked-time", 32, 221_781_114),
            ("jdk.ThreadPark:blocked-time", 4, 35_408_868),
        ],
    );
    let has = |kind, name: &str| {
        profile
            .methods
            .iter()
            .any(|(id, method)| method.kind == kind && profile.method_name(id) == name)
    };
    assert!(has(MethodKind::Java, "shop.orders.OrderDesk.fulfil"));
    assert!(has(MethodKind::Native, "CompileBroker::compiler_thread_loop"));
    assert!(has(MethodKind::Class, "byte[]"));
}
