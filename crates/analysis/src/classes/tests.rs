//! Classes made up here, and what is told of them.

use super::*;
use tare_profile::{Frame, Method, ThreadId};

struct Made(Profile);

impl Made {
    fn context(&mut self, frames: &[(&str, &str)]) -> ContextId {
        let Made(profile) = self;
        let frames: Vec<_> = frames
            .iter()
            .map(|(class, name)| {
                let kind = if name.is_empty() { MethodKind::Class } else { MethodKind::Java };
                let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
                let method = Method { kind, class, name, ..Method::default() };
                let method = profile.methods.intern(method);
                profile.frames.intern(Frame::of(method))
            })
            .collect();
        profile.contexts.stack(frames)
    }

    fn push(
        &mut self,
        kind: &EventKind,
        time: u64,
        stack: &[(&str, &str)],
        (class, loader, source): (&str, &str, &str),
        [number, loader_number]: [i64; 2],
    ) {
        let mut frames = stack.to_vec();
        frames.push((class, ""));
        let context = self.context(&frames);
        let Made(profile) = self;
        let [class, loader, source] =
            [class, loader, source].map(|text| FieldValue::Text(profile.strings.intern(text)));
        let [number, loader_number] = [number, loader_number].map(FieldValue::Integer);
        let event = Event { time, duration: 0, thread: ThreadId::UNKNOWN, context };
        let table = profile.events_of(kind);
        profile.events_mut(table).push(event, &[class, loader, source, number, loader_number]);
    }

    fn cost(&mut self, time: u64, number: i64, costs: [i64; 4]) {
        let Made(profile) = self;
        let [search, define, link, verify] = costs.map(FieldValue::Integer);
        let table = profile.events_of(&EventKind::class_cost());
        let event = Event { time, ..Event::default() };
        let fields = [FieldValue::Integer(number), search, define, link, verify];
        profile.events_mut(table).push(event, &fields);
    }
}

const MAIN: (&str, &str) = ("com.acme.Main", "main");

fn made() -> Made {
    let mut made = Made(Profile::new());
    let load = EventKind::class_load();
    let loading = [MAIN, ("jdk.internal.loader.BuiltinClassLoader", "loadClass")];
    made.push(&EventKind::class_present(), 0, &[], ("com.acme.A", "app", "a.jar"), [1, 1]);
    made.push(&load, 40_000_000, &loading, ("com.acme.B", "app", "a.jar"), [2, 1]);
    let plugin = "com.acme.Loader #7";
    made.push(&load, 60_000_000, &loading, ("com.acme.A", plugin, ""), [3, 7]);
    let another = "com.acme.Loader #8";
    made.push(&load, 70_000_000, &[], ("com.acme.A", another, ""), [4, 8]);
    let jdk = [("java.util.HashMap", "get"), ("java.lang.ClassLoader", "loadClass")];
    made.push(&load, 80_000_000, &jdk, ("java.util.X", "boot", "jdk"), [5, 0]);
    made.cost(41_000_000, 2, [100, 20, 0, 0]);
    made.cost(90_000_000, 2, [0, 0, 5, 7]);
    made.cost(91_000_000, 3, [1, 2, 3, 4]);
    made.push(&EventKind::class_unload(), 95_000_000, &[], ("com.acme.A", another, ""), [4, 8]);
    made
}

#[test]
fn loads_are_told_by_cause_loader_and_cost() {
    let Made(profile) = made();
    let classes = Classes::of(&profile, &Filter::default()).unwrap().unwrap();
    assert_eq!((classes.present, classes.loads, classes.unloads), (1, 4, 1));
    assert_eq!(classes.cost, ClassCosts { search: 101, define: 22, link: 8, verify: 11 });
    let causes: Vec<_> = classes.causes.iter().map(|c| (c.name.as_str(), c.loads)).collect();
    let main = ("com.acme.Main.main", 2);
    assert_eq!(causes[0], main);
    assert!(causes.contains(&("java.util.HashMap.get", 1)), "{causes:?}");
    assert!(causes.contains(&("[the JVM itself]", 1)), "{causes:?}");
    assert_eq!(classes.causes[0].example, "com.acme.B");
    let plugins = classes.loaders.iter().find(|one| one.name == "com.acme.Loader").unwrap();
    assert_eq!((plugins.loaders, plugins.alive, plugins.loads, plugins.unloads), (2, 1, 2, 1));
    assert_eq!(classes.dearest[0].class, "com.acme.B");
    assert_eq!(classes.dearest[0].cost.sum(), 132);
    assert_eq!(classes.dearest.len(), 2);
    assert_eq!(classes.sources[0].name, "a.jar");
    let [duplicate] = &classes.duplicates[..] else { panic!("{:?}", classes.duplicates) };
    assert_eq!(duplicate.loaders, ["app", "com.acme.Loader #7"], "the other is gone");
    assert!(classes.start_up.is_empty(), "nobody knows when the program began");
}

#[test]
fn the_first_moments_of_a_program_are_summed_up() {
    let Made(mut profile) = made();
    profile.run.facts.set(keys::CLASSES_FROM_START, &true);
    profile.run.duration = 95_000_000;
    let classes = Classes::of(&profile, &Filter::default()).unwrap().unwrap();
    let [first, last] = classes.start_up[..] else { panic!("{:?}", classes.start_up) };
    assert_eq!(first, StartUp { until: 50_000_000, loads: 4, time: 132, busiest: 132 });
    assert_eq!(last, StartUp { until: 55_000_000, loads: 4, time: 142, busiest: 142 });
}

#[test]
fn what_a_filter_leaves_out_is_not_told() {
    let Made(profile) = made();
    let filter = Filter { time: Some(50_000_000..75_000_000), ..Filter::default() };
    let classes = Classes::of(&profile, &filter).unwrap().unwrap();
    assert_eq!((classes.loads, classes.cost.sum()), (2, 0));
    assert_eq!(Classes::of(&Profile::new(), &Filter::default()).unwrap(), None);
}

#[test]
fn what_the_jvm_has_measured_is_compared_without_what_is_ours() {
    let Made(mut profile) = made();
    let facts = &mut profile.run.facts;
    facts.set(keys::CLASSES_LOADED, &4);
    facts.set(keys::CLASSES_LOADED_BY_JVM, &5);
    facts.set(keys::CLASS_TIME_BY_JVM, &Duration::from_micros(10));
    facts.set(keys::CLASS_TIME_OWN, &Duration::from_micros(2));
    facts.set(keys::CLASS_TIME_TWICE, &Duration::from_micros(1));
    let check = Classes::of(&profile, &Filter::default()).unwrap().unwrap().check;
    assert_eq!((check.loads, check.unloads), (Some((4, 5)), None));
    assert_eq!(check.expected(), Some(Duration::from_micros(7)));
}
