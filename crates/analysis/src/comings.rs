//! Threads that came and went while a recording was made: how many, when most of them, which, and
//! how long they lived.
//! Virtual ones are as cheap as objects, the JVM's own come by its load, and of those that run no
//! Java nobody tells the start: none of these count.

use std::collections::HashMap;
use std::ops::Range;
use tare_java_names::is_jdk;
use tare_profile::{ContextId, FieldValue, MethodId, MethodKind, Profile, ThreadId, ThreadKind};

const SECOND: u64 = 1_000_000_000;

/// Threads that were started or have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comings {
    /// In the order in which they came; those that were there before come first.
    pub threads: Vec<Coming>,
    pub started: u64,
    pub ended: u64,
    /// The second in which most of them were started: when it began, and how many.
    pub densest: (u64, u64),
    /// Starts by name, without the numbers in it, the most frequent first.
    pub names: Vec<(String, u64)>,
    /// Starts by the method that the program's own code was in, as far as that was recorded.
    pub starters: Vec<(String, u64)>,
    /// Those that both came and went, by name and starter, the most frequent first.
    pub lives: Vec<Lives>,
}

/// Threads of one name, without the numbers in it, and of one starter, that came and went. Times in
/// nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lives {
    pub name: String,
    /// The method that started them, if that was recorded.
    pub starter: Option<String>,
    pub count: u64,
    /// How long all of them lived, and the one that lived longest.
    pub total: u64,
    pub longest: u64,
    /// When the first was started, and when the last ended.
    pub first: u64,
    pub last: u64,
}

impl Lives {
    #[must_use]
    pub fn mean(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or(0)
    }
}

/// One of them; times in nanoseconds since the recording began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coming {
    pub thread: ThreadId,
    pub started: Option<u64>,
    pub ended: Option<u64>,
    /// Who started it, and where, if that was recorded.
    pub by: Option<(ThreadId, ContextId)>,
}

impl Comings {
    /// Of a run, or of a part of it; `None` if nobody came or went then.
    #[must_use]
    pub fn of(profile: &Profile, time: Option<&Range<u64>>) -> Option<Self> {
        let within = |at: Option<u64>| at.filter(|at| time.is_none_or(|time| time.contains(at)));
        let all = profile.threads.iter().filter(|(_, thread)| thread.kind == ThreadKind::Java);
        let starts = starts(profile);
        let mut threads: Vec<Coming> = all
            .map(|(id, one)| Coming {
                thread: id,
                started: within(one.started),
                ended: within(one.ended),
                by: one.java_id.and_then(|id| starts.get(&id).copied()),
            })
            .filter(|one| one.started.is_some() || one.ended.is_some())
            .collect();
        threads.sort_by_key(|one| one.started);
        let times: Vec<u64> = threads.iter().filter_map(|one| one.started).collect();
        let new = || threads.iter().filter(|one| one.started.is_some());
        let names = new().map(|one| without_numbers(&profile.thread_name(one.thread)));
        let starters = new().filter_map(|one| one.starter(profile));
        let (names, starters) = (counted(names), counted(starters));
        let lives = lives(profile, &threads);
        (!threads.is_empty()).then(|| Comings {
            started: times.len() as u64,
            ended: threads.iter().filter(|one| one.ended.is_some()).count() as u64,
            densest: densest(&times, SECOND),
            names,
            starters,
            lives,
            threads,
        })
    }

    /// How many both came and went, and how long these lived in all.
    #[must_use]
    pub fn went(&self) -> (u64, u64) {
        let each = self.lives.iter().map(|lives| (lives.count, lives.total));
        each.fold((0, 0), |(n, sum), (count, total)| (n + count, sum.saturating_add(total)))
    }
}

impl Coming {
    /// How long it lived, if all of that was seen.
    #[must_use]
    pub fn lived(&self) -> Option<u64> {
        Some(self.ended?.saturating_sub(self.started?))
    }

    /// The method that started it: the innermost of its starter's stack that is not the JDK's.
    #[must_use]
    pub fn starter(&self, profile: &Profile) -> Option<String> {
        let (_, context) = self.by?;
        let methods = || {
            let frames = profile.contexts.frames(context);
            frames.map(|frame| profile.frames.get(frame).method)
        };
        let own = |method: &MethodId| {
            let method = profile.methods.get(*method);
            method.kind == MethodKind::Java && !is_jdk(profile.strings.get(method.class))
        };
        let method = methods().find(own).or_else(|| methods().next())?;
        Some(profile.method_name(method))
    }
}

/// Who started threads, by the ids of these.
fn starts(profile: &Profile) -> HashMap<u64, (ThreadId, ContextId)> {
    let mut starts = HashMap::new();
    for (_, table) in profile.all_events().filter(|(_, table)| table.kind().name == "thread-start")
    {
        let Some(field) = table.field_named("java-id") else { continue };
        for (row, event) in table.events().enumerate() {
            if let Some(FieldValue::Integer(id)) = table.field(row, field) {
                starts.insert(id.cast_unsigned(), (event.thread, event.context));
            }
        }
    }
    starts
}

/// Those that came and went, by name and starter.
fn lives(profile: &Profile, threads: &[Coming]) -> Vec<Lives> {
    let mut found: HashMap<(String, Option<String>), Lives> = HashMap::new();
    for one in threads {
        let (Some(lived), Some(started), Some(ended)) = (one.lived(), one.started, one.ended)
        else {
            continue;
        };
        let name = without_numbers(&profile.thread_name(one.thread));
        let starter = one.starter(profile);
        let key = (name.clone(), starter.clone());
        let lives = found.entry(key).or_insert(Lives {
            name,
            starter,
            count: 0,
            total: 0,
            longest: 0,
            first: started,
            last: ended,
        });
        lives.count += 1;
        lives.total = lives.total.saturating_add(lived);
        lives.longest = lives.longest.max(lived);
        lives.first = lives.first.min(started);
        lives.last = lives.last.max(ended);
    }
    let mut found: Vec<Lives> = found.into_values().collect();
    found.sort_by(|one, other| {
        let names = || (&one.name, &one.starter).cmp(&(&other.name, &other.starter));
        other.count.cmp(&one.count).then_with(names)
    });
    found
}

/// How often there is each, the most frequent first.
fn counted(all: impl Iterator<Item = String>) -> Vec<(String, u64)> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    counts
}

/// The stretch of some length with the most of some times, which are in order: when it begins, and
/// how many there are in it.
#[must_use]
pub fn densest(times: &[u64], length: u64) -> (u64, u64) {
    let mut first = 0;
    let (mut at, mut most) = (0, 0);
    for (last, time) in times.iter().enumerate() {
        while time - times[first] > length {
            first += 1;
        }
        if last + 1 - first > most {
            (at, most) = (times[first], last + 1 - first);
        }
    }
    (at, most as u64)
}

/// `pool-#-thread-#`: threads of one pool have one name.
fn without_numbers(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter.is_ascii_digit() {
            true if short.ends_with('#') => {}
            true => short.push('#'),
            false => short.push(letter),
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Event, EventKind, Execution, FieldType, Frame, Method, Thread, Unit};

    #[test]
    fn who_came_and_went_is_counted_by_name() {
        let mut profile = Profile::new();
        assert_eq!(Comings::of(&profile, None), None);
        let mut add = |name: &str, kind, started, ended| {
            let name = profile.strings.intern(name);
            profile.threads.push(Thread { name, kind, started, ended, ..Thread::default() });
        };
        add("main", ThreadKind::Java, None, Some(9 * SECOND));
        add("pool-1-thread-12", ThreadKind::Java, Some(2 * SECOND), Some(3 * SECOND));
        add("pool-3-thread-4", ThreadKind::Java, Some(2 * SECOND + 5), None);
        add("late", ThreadKind::Java, Some(8 * SECOND), None);
        add("C2 CompilerThread3", ThreadKind::Vm, Some(1), None);
        add("late", ThreadKind::Native, None, Some(9 * SECOND));
        add("virtual thread 34", ThreadKind::Virtual, Some(1), None);
        add("Reference Handler", ThreadKind::Java, None, None);
        let all = Comings::of(&profile, None).expect("some");
        assert_eq!((all.started, all.ended, all.densest), (3, 2, (2 * SECOND, 2)));
        assert_eq!(all.names[0], ("pool-#-thread-#".to_owned(), 2));
        assert_eq!(all.threads[0].started, None, "main was there before");
        let part = Comings::of(&profile, Some(&(SECOND..2 * SECOND + 1))).expect("one");
        assert_eq!((part.started, part.ended), (1, 0));
        assert_eq!(Comings::of(&profile, Some(&(0..1))), None);
    }

    #[test]
    fn who_started_a_thread_is_the_programs_own_method() {
        let mut profile = Profile::new();
        let method = |profile: &mut Profile, class: &str, name: &str| {
            let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
            let method = Method { class, name, ..Method::default() };
            let method = profile.methods.intern(method);
            let execution = Execution::Unknown;
            profile.frames.intern(Frame { method, bci: None, line: None, execution })
        };
        let stack =
            [("a.Pool", "grow"), ("java.lang.Thread", "start"), ("java.lang.Thread", "start0")];
        let stack = stack.map(|(class, name)| method(&mut profile, class, name));
        let context = profile.contexts.stack(stack);
        let name = profile.strings.intern("main");
        let main = profile.threads.push(Thread { name, ..Thread::default() });
        for id in [7, 8] {
            let name = profile.strings.intern("worker");
            let (java_id, started, ended) = (Some(id), Some(5), Some(id * 10));
            profile.threads.push(Thread { name, java_id, started, ended, ..Thread::default() });
        }
        let fields = [("java-id", FieldType::Integer(Unit::Count))];
        let table = profile.events_of(&EventKind::new("thread-start", &fields));
        let event = Event { thread: main, context, ..Event::default() };
        profile.events_mut(table).push(event, &[FieldValue::Integer(8)]);
        let all = Comings::of(&profile, None).expect("two");
        assert_eq!(all.threads[0].by, None, "nobody saw it");
        assert_eq!(all.threads[1].by, Some((main, context)));
        assert_eq!(all.starters, [("a.Pool.grow".to_owned(), 1)]);
        let lives = |starter: Option<&str>, ended| Lives {
            name: "worker".to_owned(),
            starter: starter.map(str::to_owned),
            count: 1,
            total: ended - 5,
            longest: ended - 5,
            first: 5,
            last: ended,
        };
        assert_eq!(all.lives, [lives(None, 70), lives(Some("a.Pool.grow"), 80)]);
        assert_eq!((all.went(), all.lives[1].mean()), ((2, 140), 75));
        // Of one that ended later nobody knows how long it lives.
        let early = Comings::of(&profile, Some(&(0..75))).expect("two");
        assert_eq!((early.started, early.ended, early.went().0), (2, 1, 1));
    }

    #[test]
    fn the_densest_stretch_may_begin_anywhere() {
        assert_eq!(densest(&[], 5), (0, 0));
        assert_eq!(densest(&[1, 9, 12, 13, 30], 5), (9, 3));
    }
}
