//! A program's stacks and calls in, hooks out.

use super::*;
use tare_profile::{
    ContextId, Event, EventKind, Execution, FieldType, FieldValue, Frame, FrameId, Method, Profile,
    Row, SeriesId, SeriesInfo, ThreadId, TimeAxis, Unit, ValueKind,
};

/// A recording as it grows.
struct Growing {
    profile: Profile,
    series: SeriesId,
    climb: Climb,
    hooks: i64,
    time: u64,
}

impl Growing {
    fn new() -> Self {
        let mut profile = Profile::new();
        let info = SeriesInfo::new("cpu", ValueKind::CpuTime).with_time(TimeAxis::Exact);
        let series = profile.add_series(info);
        Growing { profile, series, climb: Climb::default(), hooks: 0, time: 0 }
    }

    fn context(&mut self, stack: &[&str]) -> ContextId {
        let profile = &mut self.profile;
        let frame = |name: &&str| -> FrameId {
            let mut intern = |text: &str| profile.strings.intern(text);
            let (class, name, descriptor) = (intern("x.Y"), intern(name), intern("()V"));
            let method = Method { class, name, descriptor, ..Method::default() };
            let method = profile.methods.intern(method);
            let execution = Execution::Unknown;
            profile.frames.intern(Frame { method, bci: None, line: None, execution })
        };
        let frames: Vec<FrameId> = stack.iter().map(frame).collect();
        profile.contexts.stack(frames)
    }

    fn sample(&mut self, stack: &[&str], value: i64) {
        let context = self.context(stack);
        self.profile.series_mut(self.series).push(Row::new(context, ThreadId::UNKNOWN, value));
    }

    fn key(&mut self, method: &str) -> MethodKey {
        self.climb.names.key(&format!("x.Y.{method}()V"))
    }

    fn push(&mut self, kind: &str, fields: &[(&str, FieldValue)], context: ContextId) {
        let kind_of = |value: &FieldValue| match value {
            FieldValue::Text(_) => FieldType::Text,
            _ => FieldType::Integer(Unit::Count),
        };
        let types: Vec<_> = fields.iter().map(|(name, value)| (*name, kind_of(value))).collect();
        let table = self.profile.events_of(&EventKind::new(kind, &types));
        let values: Vec<FieldValue> = fields.iter().map(|(_, value)| *value).collect();
        let (time, duration) = (self.time, 100_000_000);
        let event = Event { time, duration, thread: ThreadId::UNKNOWN, context };
        self.profile.events_mut(table).push(event, &values);
    }

    /// A hook in a method that tells of so many calls a batch, by its callers, until it is stable.
    fn hook(&mut self, method: &str, callers: &[(&str, i64)]) {
        self.hooks += 1;
        let number = ("number", FieldValue::Integer(self.hooks));
        let text = self.profile.strings.intern(&format!("x/Y.{method}()V"));
        let on = ("on", FieldValue::Integer(1));
        self.push("hook", &[number, ("method", FieldValue::Text(text)), on], ContextId::ROOT);
        for _ in 0..40 {
            self.time += 100_000_000;
            let all: i64 = callers.iter().map(|(_, calls)| calls).sum();
            let all = FieldValue::Integer(all);
            self.push("hook-calls", &[number, ("calls", all), ("told", all)], ContextId::ROOT);
            for (caller, calls) in callers {
                let context = self.context(&[caller, method]);
                let cpu = FieldValue::Integer(calls * 1_000);
                let calls = FieldValue::Integer(*calls);
                let sums = [number, ("calls", calls), ("ended", calls), ("wall", cpu)];
                let more = [("cpu", cpu), ("with-cpu", calls)];
                self.push("hook-caller", &[&sums[..], &more].concat(), context);
            }
        }
        self.look();
    }

    fn look(&mut self) {
        self.climb.add(&self.profile);
        self.profile.forget_rows();
    }
}

fn aims() -> Aims {
    Aims {
        metric: ClimbMetric::Cpu,
        top: 3,
        min_share: 0.05,
        overhead: 0.02,
        again: false,
        warm_up: Duration::ZERO,
    }
}

/// run calls round, which calls left and right; a is called by both, b by right, leaf by a and b.
fn program() -> Growing {
    let mut growing = Growing::new();
    for _ in 0..100 {
        growing.sample(&["run", "round", "left", "a", "leaf"], 5);
        growing.sample(&["run", "round", "right", "a", "leaf"], 2);
        growing.sample(&["run", "round", "right", "b", "leaf"], 3);
    }
    growing.look();
    growing
}

/// One that has waited for long enough.
fn turn(climber: &mut Climber, growing: &mut Growing) -> Turn {
    climber.since = Instant::now() - SAMPLING;
    climber.turn(&mut growing.climb, LOAD)
}

/// A processor is busy, and a call takes a nanosecond to pass by.
const LOAD: Load = Load { cpu: 1e9, pass_ns: 1.0, compiling: 0.0 };

/// The methods that are to tell.
#[track_caller]
fn telling(turn: Turn) -> Vec<MethodKey> {
    let Turn::Hook(hooks) = turn else { panic!("no hooks: {turn:?}") };
    hooks.telling
}

/// All that was asked for is there, and the code is compiled again.
fn settled(climber: &mut Climber, growing: &mut Growing, hooks: &Hooks) {
    climber.hooked(&mut growing.climb, hooks, &HashMap::new(), true, 0);
    let anew = turn(climber, growing);
    assert_eq!(anew, Turn::Hook(Hooks { anew: true, ..hooks.clone() }));
    climber.hooked(&mut growing.climb, hooks, &HashMap::new(), false, 0);
}

#[test]
fn hooks_go_up_by_levels_to_the_roots() {
    let mut growing = program();
    let mut climber = Climber::new(aims());
    assert_eq!(climber.turn(&mut growing.climb, LOAD), Turn::Wait, "samples take their time");
    let [leaf, a, b] = ["leaf", "a", "b"].map(|method| growing.key(method));
    let [left, right] = ["left", "right"].map(|method| growing.key(method));
    let hooks = Hooks { telling: vec![leaf], waiting: vec![a, b, left, right], anew: false };
    let Turn::Hook(first) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    assert_eq!(first, hooks, "samples know what is above");
    settled(&mut climber, &mut growing, &hooks);
    assert_eq!(turn(&mut climber, &mut growing), Turn::Wait);
    growing.hook("leaf", &[("a", 70), ("b", 30)]);
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![a, b]);
    growing.hook("a", &[("left", 50), ("right", 20)]);
    assert_eq!(turn(&mut climber, &mut growing), Turn::Wait, "b is not known yet");
    growing.hook("b", &[("right", 30)]);
    // Nothing is woven for it: those that wait are others.
    let Turn::Hook(last) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    assert_eq!(last.telling, [left, right]);
    assert_eq!(last.waiting, [leaf, a, b]);
    growing.hook("left", &[("round", 10)]);
    growing.hook("right", &[("round", 10)]);
    assert_eq!(turn(&mut climber, &mut growing), Turn::Done);
    let [round, run] = ["round", "run"].map(|method| growing.key(method));
    let state = |method| growing.climb.node(method).map(|node| (node.level, node.state));
    assert_eq!(state(leaf), Some((0, State::Stable)));
    assert_eq!(state(b), Some((1, State::Stable)));
    assert_eq!(state(right), Some((2, State::Stable)));
    assert_eq!(state(round), Some((3, State::Passed)));
    assert_eq!(state(run), Some((3, State::Root)));
    let notes = climber.notes();
    assert!(notes.iter().any(|note| note.contains("paid by Y.a 70 %, Y.b 30 %")), "{notes:#?}");
    assert_eq!(climber.decided().len(), 12, "each decision goes into the recording once");
}

#[test]
fn without_a_hook_the_samples_show_the_way() {
    let mut growing = program();
    let mut climber = Climber::new(aims());
    let [leaf, a, b] = ["leaf", "a", "b"].map(|method| growing.key(method));
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![leaf]);
    let why = "it has no code of its own".to_owned();
    let hooks = Hooks { telling: vec![leaf], ..Hooks::default() };
    let refused = HashMap::from([(leaf, why.clone())]);
    climber.hooked(&mut growing.climb, &hooks, &refused, true, 0);
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![a, b]);
    let node = growing.climb.node(leaf).unwrap();
    assert_eq!((node.state, &node.why), (State::Sampled, &why));
}

#[test]
fn the_only_caller_of_what_has_no_hook_gets_one() {
    let mut growing = Growing::new();
    for _ in 0..100 {
        growing.sample(&["run", "serve", "parse", "trim"], 5);
    }
    growing.look();
    let mut climber = Climber::new(aims());
    let [trim, parse] = ["trim", "parse"].map(|method| growing.key(method));
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![trim]);
    let why = HashMap::from([(trim, "an intrinsic".to_owned())]);
    let hooks = Hooks { telling: vec![trim], ..Hooks::default() };
    climber.hooked(&mut growing.climb, &hooks, &why, true, 0);
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![parse]);
    // That one is known then, and what is above it has one caller each.
    growing.hook("parse", &[("serve", 50)]);
    assert_eq!(turn(&mut climber, &mut growing), Turn::Done);
    let serve = growing.key("serve");
    assert_eq!(growing.climb.node(serve).map(|node| node.state), Some(State::Passed));
}

#[test]
fn a_method_that_is_called_too_often_loses_its_hook() {
    let mut growing = program();
    let mut climber = Climber::new(aims());
    let [leaf, a, b] = ["leaf", "a", "b"].map(|method| growing.key(method));
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![leaf]);
    growing.hook("leaf", &[("a", 7_000_000), ("b", 3_000_000)]);
    // A nanosecond each, 100 million a second: 10 % of a processor, where 5 % are allowed.
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![a, b]);
    let node = growing.climb.node(leaf).unwrap();
    assert_eq!(node.state, State::Sampled);
    assert!(node.why.contains("100.0 M calls a second"), "{}", node.why);
}

#[test]
fn a_method_that_is_called_very_often_may_cost_more_and_that_is_said() {
    let mut growing = program();
    let mut climber = Climber::new(aims());
    let leaf = growing.key("leaf");
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![leaf]);
    growing.hook("leaf", &[("a", 2_800_000), ("b", 1_200_000)]);
    climber.notes();
    // 40 million calls a second take 4 %.
    assert!(matches!(turn(&mut climber, &mut growing), Turn::Hook(_)));
    assert_eq!(growing.climb.node(leaf).map(|node| node.state), Some(State::Stable));
    let notes = climber.notes();
    assert!(notes.iter().any(|note| note.contains("may take 5 %")), "{notes:#?}");
    // 4 million take 4 % if a call takes 10 ns, and have no such allowance.
    let mut growing = program();
    let mut climber = Climber::new(aims());
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![leaf]);
    growing.hook("leaf", &[("a", 280_000), ("b", 120_000)]);
    climber.since = Instant::now() - MEASURING;
    assert!(matches!(
        climber.turn(&mut growing.climb, Load { pass_ns: 10.0, ..LOAD }),
        Turn::Hook(_)
    ));
    assert_eq!(growing.climb.node(leaf).map(|node| node.state), Some(State::Sampled));
}

#[test]
fn never_more_hooks_than_sixteen() {
    let mut growing = Growing::new();
    let callers: Vec<String> = (0..40).map(|n| format!("c{n:02}")).collect();
    for (weight, caller) in (1..).zip(&callers) {
        growing.sample(&["run", caller, "leaf"], 100 + weight);
    }
    growing.look();
    let mut climber = Climber::new(Aims { min_share: 0.0, ..aims() });
    let leaf = growing.key("leaf");
    climber.since = Instant::now() - SAMPLING_AT_MOST;
    assert_eq!(telling(climber.turn(&mut growing.climb, LOAD)), [leaf]);
    let by: Vec<(&str, i64)> = callers.iter().take(25).map(|name| (name.as_str(), 10)).collect();
    growing.hook("leaf", &by);
    let Turn::Hook(next) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    assert_eq!((next.telling.len(), next.waiting.len()), (MOST_HOOKS, 0));
    let left_out = growing.climb.nodes.iter().filter(|node| node.why.contains("more than 16"));
    assert!(left_out.count() > 0);
}

#[test]
fn in_the_background_it_begins_again() {
    let mut growing = program();
    let mut climber = Climber::new(Aims { again: true, ..aims() });
    let leaf = growing.key("leaf");
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![leaf]);
    climber.phase = Phase::Resting;
    assert_eq!(turn(&mut climber, &mut growing), Turn::Wait);
    climber.since = Instant::now() - REST;
    assert_eq!(climber.turn(&mut growing.climb, LOAD), Turn::Wait);
    assert_eq!(growing.climb.samples.count, 0, "the load may be another");
    growing.sample(&["run", "other"], 1_000);
    for _ in 0..SAMPLES {
        growing.sample(&["run", "other"], 10);
    }
    growing.look();
    let other = growing.key("other");
    assert_eq!(telling(turn(&mut climber, &mut growing)), vec![other]);
}

#[test]
fn names_are_short() {
    for (name, expected) in [("com.acme.Orders.place", "Orders.place"), ("A.b", "A.b"), ("x", "x")]
    {
        assert_eq!(short(name), expected);
    }
}

#[test]
fn what_is_met_above_and_was_not_foretold_is_set_in_another_batch() {
    let mut growing = program();
    let mut climber = Climber::new(aims());
    let [leaf, a, b, c] = ["leaf", "a", "b", "c"].map(|method| growing.key(method));
    let Turn::Hook(first) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    settled(&mut climber, &mut growing, &first);
    growing.hook("leaf", &[("a", 40), ("b", 30), ("c", 30)]);
    let Turn::Hook(next) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    assert_eq!(next.telling, [a, b, c]);
    let [left, right] = ["left", "right"].map(|method| growing.key(method));
    assert_eq!(next.waiting, [left, right], "{leaf:?} is below");
}

#[test]
fn until_the_compilers_have_settled_nothing_is_stable() {
    let mut growing = program();
    let mut climber = Climber::new(aims());
    let Turn::Hook(first) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    climber.hooked(&mut growing.climb, &first, &HashMap::new(), true, 0);
    growing.hook("leaf", &[("a", 70), ("b", 30)]);
    let busy = Load { compiling: 0.8, ..LOAD };
    climber.since = Instant::now() - SAMPLING;
    assert_eq!(climber.turn(&mut growing.climb, busy), Turn::Wait);
    climber.since = Instant::now() - SETTLING;
    let Turn::Hook(anew) = climber.turn(&mut growing.climb, busy) else { panic!("for ever") };
    assert_eq!(anew, Hooks { anew: true, ..first });
}

#[test]
fn what_was_not_foretold_and_pays_for_little_is_no_reason_to_load_classes_again() {
    let mut growing = program();
    let mut climber = Climber::new(aims());
    let [a, b, c] = ["a", "b", "c"].map(|method| growing.key(method));
    let Turn::Hook(first) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    settled(&mut climber, &mut growing, &first);
    growing.hook("leaf", &[("a", 50), ("b", 38), ("c", 12)]);
    let Turn::Hook(next) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    assert_eq!(next.telling, [a, b]);
    let is_woven =
        |method: &MethodKey| [&first.telling[..], &first.waiting].concat().contains(method);
    assert!(next.waiting.iter().all(is_woven), "{next:?}");
    let node = growing.climb.node(c).unwrap();
    assert_eq!((node.level, node.state), (1, State::Sampled));
    assert!(node.why.contains("12 % of Y.leaf"), "{}", node.why);
}

#[test]
fn a_caller_that_next_to_nothing_of_what_is_hot_comes_by_has_no_hook() {
    let mut growing = Growing::new();
    for _ in 0..100 {
        growing.sample(&["run", "p", "x", "leaf"], 840);
        growing.sample(&["run", "s", "y", "leaf"], 136);
        growing.sample(&["run", "r", "y", "leaf"], 24);
    }
    growing.look();
    let mut climber = Climber::new(aims());
    let [leaf, x, y, r, s] = ["leaf", "x", "y", "r", "s"].map(|method| growing.key(method));
    let Turn::Hook(first) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    assert_eq!((&first.telling[..], &first.waiting[..]), (&[leaf][..], &[x, y, s][..]));
    settled(&mut climber, &mut growing, &first);
    growing.hook("leaf", &[("x", 84), ("y", 16)]);
    assert_eq!(telling(turn(&mut climber, &mut growing)), [x, y]);
    // Of one a seventh of a sixth comes; the other nobody foretold.
    growing.hook("x", &[("p", 84)]);
    growing.hook("y", &[("s", 28), ("r", 5), ("t", 8)]);
    let Turn::Hook(next) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    assert_eq!(next.telling, [s]);
    let t = growing.key("t");
    for (method, why) in [(r, "only 2 % of what is hot"), (t, "it pays for 20 % of Y.y, which")] {
        let node = growing.climb.node(method).unwrap();
        assert_eq!((node.level, node.state), (2, State::Sampled));
        assert!(node.why.starts_with(why), "{}", node.why);
    }
}

#[test]
fn a_hook_that_others_take_is_set_again_once() {
    let mut growing = program();
    let mut climber = Climber::new(aims());
    let [leaf, a, b] = ["leaf", "a", "b"].map(|method| growing.key(method));
    let Turn::Hook(first) = turn(&mut climber, &mut growing) else { panic!("no hooks") };
    settled(&mut climber, &mut growing, &first);
    assert_eq!(climber.taken(&mut growing.climb, &[]), Turn::Wait);
    assert_eq!(climber.taken(&mut growing.climb, &[a]), Turn::Wait, "it was to wait");
    let Turn::Hook(again) = climber.taken(&mut growing.climb, &[leaf]) else { panic!("no hooks") };
    assert_eq!(again.telling, [leaf]);
    assert!(!again.waiting.contains(&a) && again.waiting.contains(&b), "{again:?}");
    settled(&mut climber, &mut growing, &again);
    assert_eq!(climber.taken(&mut growing.climb, &[leaf]), Turn::Wait);
    let node = growing.climb.node(leaf).unwrap();
    assert_eq!(node.state, State::Sampled);
    assert!(node.why.contains("again and again"), "{}", node.why);
    // Samples show the way, and the hook of the first caller is set once more.
    assert_eq!(telling(turn(&mut climber, &mut growing)), [a, b]);
}
