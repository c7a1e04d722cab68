//! Rows in, a caller list out.

use super::*;
use tare_profile::{
    Event, Execution, Frame, FrameId, Method, Row as SampleRow, SeriesInfo, ThreadId, TimeAxis,
    ValueKind,
};

fn frame(profile: &mut Profile, name: &str) -> FrameId {
    let mut intern = |text: &str| profile.strings.intern(text);
    let (class, name, descriptor) = (intern("a.B"), intern(name), intern("()V"));
    let method = Method { class, name, descriptor, ..Method::default() };
    let method = profile.methods.intern(method);
    profile.frames.intern(Frame { method, bci: None, line: None, execution: Execution::Unknown })
}

fn context(profile: &mut Profile, stack: &[&str]) -> ContextId {
    let frames: Vec<FrameId> = stack.iter().map(|name| frame(profile, name)).collect();
    profile.contexts.stack(frames)
}

fn push(profile: &mut Profile, kind: &str, fields: &[(&str, i64)], time: u64, context: ContextId) {
    let count = FieldType::Integer(Unit::Count);
    let types: Vec<(&str, FieldType)> = fields.iter().map(|(name, _)| (*name, count)).collect();
    let table = profile.events_of(&EventKind::new(kind, &types));
    let values: Vec<FieldValue> =
        fields.iter().map(|(_, value)| FieldValue::Integer(*value)).collect();
    let event = Event { time, duration: 100_000_000, thread: ThreadId::UNKNOWN, context };
    profile.events_mut(table).push(event, &values);
}

/// A hook in `leaf`, called by a in three of four calls; of them only some are told.
fn hooked(intervals: u64) -> Profile {
    let mut profile = Profile::new();
    let kind = EventKind::new(
        "hook",
        &[
            ("number", FieldType::Integer(Unit::Count)),
            ("method", FieldType::Text),
            ("on", FieldType::Integer(Unit::Count)),
        ],
    );
    let text = profile.strings.intern("a/B.leaf()V");
    let table = profile.events_of(&kind);
    let (number, on) = (FieldValue::Integer(1), FieldValue::Integer(1));
    profile.events_mut(table).push(Event::default(), &[number, FieldValue::Text(text), on]);
    let [a, b] = ["a", "b"].map(|caller| context(&mut profile, &[caller, "leaf"]));
    for at in 1..=intervals {
        let time = at * 100_000_000;
        // Twice as many in every second interval, of which fewer are told.
        let (calls, told) = if at % 2 == 0 { (2_000, 40) } else { (1_000, 400) };
        let values = [("number", 1), ("calls", calls), ("told", told)];
        push(&mut profile, "hook-calls", &values, time, ContextId::ROOT);
        for (caller, entered, wall) in [(a, told * 3 / 4, 100), (b, told / 4, 300)] {
            let sums = [("number", 1), ("calls", entered), ("ended", entered)];
            let times = [("wall", wall * entered), ("cpu", wall * entered), ("with-cpu", entered)];
            push(&mut profile, "hook-caller", &[sums, times].concat(), time, caller);
        }
    }
    push(
        &mut profile,
        "hook-times",
        &[("number", 1), ("from", 96), ("to", 104), ("count", 3)],
        1,
        ContextId::ROOT,
    );
    push(
        &mut profile,
        "hook-times",
        &[("number", 1), ("from", 288), ("to", 304), ("count", 1)],
        1,
        ContextId::ROOT,
    );
    profile
}

#[test]
fn calls_of_callers_are_estimated_by_those_that_are_told() {
    let profile = hooked(40);
    let mut climb = Climb::default();
    climb.add(&profile);
    let leaf = climb.names.key("a.B.leaf()V");
    let hook = climb.measured(leaf).unwrap();
    assert_eq!((hook.calls, hook.told), (60_000, 8_800));
    assert_eq!((hook.quantile(0.5), hook.quantile(0.99)), (Some(100), Some(296)));
    assert_eq!(hook.mean(ClimbMetric::Wall), Some(150.0));
    assert!((hook.calls_per_second() - 15_000.0).abs() < 1e-6);
    let [a, b] = ["a.B.a()V", "a.B.b()V"].map(|text| climb.names.key(text));
    let payers = climb.payers(leaf, ClimbMetric::Calls);
    assert_eq!(payers.iter().map(|payer| payer.method).collect::<Vec<_>>(), [Some(a), Some(b)]);
    assert!((payers[0].calls - 45_000.0).abs() < 1e-6, "{}", payers[0].calls);
    assert!((payers[0].share() - 0.75).abs() < 1e-9);
    // By time, the dear calls of b weigh as much.
    let payers = climb.payers(leaf, ClimbMetric::Wall);
    assert!(payers.iter().all(|payer| (payer.share() - 0.5).abs() < 1e-9));
}

#[test]
fn an_estimate_is_stable_with_enough_batches_that_agree() {
    let of = |intervals| {
        let profile = hooked(intervals);
        let mut climb = Climb::default();
        climb.add(&profile);
        let leaf = climb.names.key("a.B.leaf()V");
        stability(climb.measured(leaf).unwrap(), ClimbMetric::Wall)
    };
    assert!(!of(20).is_stable(), "too few batches");
    let known = of(40);
    assert!(known.is_stable(), "{known:?}");
    assert!(known.half_width < 1e-9 && known.shift < 1e-9);
    // Another caller comes in the second half.
    let mut profile = hooked(40);
    let c = context(&mut profile, &["c", "leaf"]);
    for at in 21..=40_u64 {
        let sums = [("number", 1), ("calls", 400), ("ended", 400)];
        let times = [("wall", 60_000), ("cpu", 60_000), ("with-cpu", 400)];
        push(&mut profile, "hook-caller", &[sums, times].concat(), at * 100_000_000, c);
    }
    let mut climb = Climb::default();
    climb.add(&profile);
    let leaf = climb.names.key("a.B.leaf()V");
    let moved = stability(climb.measured(leaf).unwrap(), ClimbMetric::Wall);
    assert!(!moved.is_stable() && moved.shift > 0.3, "{moved:?}");
}

#[test]
fn samples_tell_callers_and_of_a_recursion_the_outermost() {
    let mut profile = Profile::new();
    let info = SeriesInfo::new("cpu", ValueKind::CpuTime).with_time(TimeAxis::Exact);
    let series = profile.add_series(info);
    for (stack, value) in
        [(&["main", "a", "leaf"][..], 30), (&["main", "a", "a", "leaf"], 40), (&["main", "b"], 30)]
    {
        let context = context(&mut profile, stack);
        profile.series_mut(series).push(SampleRow::new(context, ThreadId::UNKNOWN, value));
    }
    let mut climb = Climb::default();
    climb.add(&profile);
    let [main, a, leaf] = ["main", "a", "leaf"].map(|m| climb.names.key(&format!("a.B.{m}()V")));
    assert_eq!(climb.samples.hot().first(), Some(&(leaf, 70)));
    assert_eq!(climb.samples.callers(leaf), [(Some(a), 70)]);
    assert_eq!(climb.samples.callers(a), [(Some(main), 70)]);
    assert_eq!(climb.samples.callers(main), [(None, 100)]);
    assert_eq!((climb.samples.within(main), climb.samples.own(main)), (100, 0));
}

#[test]
fn names_are_those_of_class_files_on_the_wire() {
    let mut names = Names::default();
    let key = names.of_wire("com/acme/Orders.place(ILjava/lang/String;)V");
    assert_eq!(names.text(key), "com.acme.Orders.place(ILjava/lang/String;)V");
    assert_eq!(names.name(key), "com.acme.Orders.place");
    assert_eq!(names.wire(key), "com/acme/Orders.place(ILjava/lang/String;)V");
}
