//! Classes of a run: which were loaded and why, by which loaders, at what cost, which are unloaded,
//! and which are there more than once.

use crate::filter::{AnalysisError, Filter};
use crate::select::Selection;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tare_java_names::is_jdk;
use tare_profile::facts::keys;
use tare_profile::{
    ContextId, Event, EventKind, EventTable, FieldValue, MethodKind, Profile, StringId, ValueKind,
};

/// Nanoseconds that classes have cost, without other classes that had to be loaded for them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ClassCosts {
    /// Java code of class loaders.
    pub search: u64,
    /// Reading and making a class.
    pub define: u64,
    pub link: u64,
    pub verify: u64,
}

impl ClassCosts {
    #[must_use]
    pub fn sum(self) -> u64 {
        self.search + self.define + self.link + self.verify
    }

    fn add(&mut self, other: ClassCosts) {
        self.search += other.search;
        self.define += other.define;
        self.link += other.link;
        self.verify += other.verify;
    }
}

/// Loads that have something in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadSum {
    pub name: String,
    pub loads: u64,
    pub cost: ClassCosts,
    /// The class of them that cost most.
    pub example: String,
}

/// Loaders of one kind: of one name, or of one class.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct LoaderSum {
    pub name: String,
    /// How many there were; of how many a class is left.
    pub loaders: u64,
    pub alive: u64,
    /// Classes that were there before the recording; loaded in it; unloaded of both.
    pub present: u64,
    pub loads: u64,
    pub unloads: u64,
    pub cost: ClassCosts,
}

/// A class that was loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadedClass {
    pub class: String,
    pub loader: String,
    /// The jar or directory that it comes from; empty if that is not known.
    pub source: String,
    /// The method that needed it.
    pub cause: String,
    pub cost: ClassCosts,
}

/// A class that several loaders have at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Duplicate {
    pub class: String,
    pub loaders: Vec<String>,
}

/// What was loaded up to a time since the first class was: before that the program waits until it
/// is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartUp {
    pub until: u64,
    pub loads: u64,
    pub time: u64,
    /// Of the time, that of the thread that has spent most on it.
    pub busiest: u64,
}

/// What the JVM itself has counted and measured, beside what was recorded.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ClassCheck {
    pub loads: Option<(u64, u64)>,
    pub unloads: Option<(u64, u64)>,
    /// What it has measured, what of it the recording took, and what it has in two sums.
    pub measured: Option<Duration>,
    pub own: Duration,
    pub twice: Duration,
    /// What belongs to classes, and of that what may belong to another.
    pub told: Duration,
    pub shared: Duration,
}

impl ClassCheck {
    /// What the JVM has measured of the program's own classes, each once.
    #[must_use]
    pub fn expected(&self) -> Option<Duration> {
        Some(self.measured?.saturating_sub(self.own + self.twice))
    }
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Classes {
    pub loads: u64,
    pub unloads: u64,
    pub present: u64,
    /// Whether the JVM has measured what they cost.
    pub has_costs: bool,
    pub cost: ClassCosts,
    /// By the method that needed them, the dearest first.
    pub causes: Vec<LoadSum>,
    pub sources: Vec<LoadSum>,
    pub loaders: Vec<LoaderSum>,
    pub dearest: Vec<LoadedClass>,
    pub duplicates: Vec<Duplicate>,
    /// Of a program that was started to be recorded.
    pub start_up: Vec<StartUp>,
    /// What the JVM had measured when the recording began.
    pub before: Duration,
    pub check: ClassCheck,
}

/// Whether values of a kind are of classes.
#[must_use]
pub fn is_of_classes(kind: &ValueKind) -> bool {
    matches!(kind, ValueKind::ClassLoads | ValueKind::ClassLoadTime)
}

/// A row of one of the tables, by the names of the fields.
struct Rows<'p> {
    profile: &'p Profile,
    table: &'p EventTable,
}

impl<'p> Rows<'p> {
    fn integer(&self, row: usize, name: &str) -> u64 {
        let field = self.table.field_named(name).and_then(|field| self.table.field(row, field));
        match field {
            Some(FieldValue::Integer(value)) => u64::try_from(value).unwrap_or(0),
            _ => 0,
        }
    }

    fn text(&self, row: usize, name: &str) -> &'p str {
        let field = self.table.field_named(name).and_then(|field| self.table.field(row, field));
        match field {
            Some(FieldValue::Text(text)) => self.profile.strings.get(text),
            _ => self.profile.strings.get(StringId::EMPTY),
        }
    }

    fn events(&self) -> impl Iterator<Item = (usize, Event)> + '_ {
        self.table.events().enumerate()
    }
}

fn tables<'p>(profile: &'p Profile, kind: &EventKind) -> impl Iterator<Item = Rows<'p>> {
    let name = kind.name.clone();
    let tables = profile.all_events().map(|(_, table)| table);
    tables.filter(move |table| table.kind().name == name).map(move |table| Rows { profile, table })
}

/// A class by its number, while all is put together.
struct Class<'p> {
    name: &'p str,
    loader: &'p str,
    loader_number: u64,
    source: &'p str,
    cause: Option<String>,
    is_there: bool,
    cost: ClassCosts,
}

impl Classes {
    /// `None` if the profile tells nothing of classes.
    pub fn of(profile: &Profile, filter: &Filter) -> Result<Option<Self>, AnalysisError> {
        let selection = Selection::new(profile, filter)?;
        let mut all: HashMap<u64, Class<'_>> = HashMap::new();
        let mut found = Classes::default();
        let mut is_known = profile.run.facts.has(keys::CLASSES_LOADED);
        let mut unnumbered = u64::MAX;
        for rows in tables(profile, &EventKind::class_present()) {
            for (row, _) in rows.events() {
                let number = rows.integer(row, "number");
                all.insert(number, class(&rows, row, None));
                found.present += 1;
            }
        }
        let mut starts = Vec::new();
        let mut causes: HashMap<ContextId, String> = HashMap::new();
        for rows in tables(profile, &EventKind::class_load()) {
            for (row, event) in rows.events() {
                is_known = true;
                if !selection.has_event(&event, filter) {
                    continue;
                }
                found.loads += 1;
                let outer = profile.contexts.parent(event.context).unwrap_or(event.context);
                let cause = causes.entry(outer).or_insert_with(|| cause(profile, outer)).clone();
                let number = match rows.integer(row, "number") {
                    // Another recorder's.
                    0 => {
                        unnumbered -= 1;
                        unnumbered
                    }
                    number => number,
                };
                let mut class = class(&rows, row, Some(cause));
                if number == unnumbered {
                    class.cost.define = event.duration;
                    found.cost.define += event.duration;
                    found.has_costs |= event.duration > 0;
                }
                all.insert(number, class);
                starts.push((event, 1, 0));
            }
        }
        if !is_known {
            return Ok(None);
        }
        for rows in tables(profile, &EventKind::class_cost()) {
            for (row, event) in rows.events() {
                if !selection.has_event(&event, filter) {
                    continue;
                }
                let [search, define, link, verify] =
                    ["search", "define", "link", "verify"].map(|name| rows.integer(row, name));
                let cost = ClassCosts { search, define, link, verify };
                found.has_costs = true;
                found.cost.add(cost);
                starts.push((event, 0, cost.sum()));
                if let Some(class) = all.get_mut(&rows.integer(row, "number")) {
                    class.cost.add(cost);
                }
            }
        }
        for rows in tables(profile, &EventKind::class_unload()) {
            for (row, _) in rows.events() {
                found.unloads += 1;
                if let Some(class) = all.get_mut(&rows.integer(row, "number")) {
                    class.is_there = false;
                }
            }
        }
        found.sum_up(&all);
        found.check = check(profile);
        found.before = profile.run.facts.get(keys::CLASS_TIME_BEFORE).unwrap_or_default();
        if profile.run.facts.get(keys::CLASSES_FROM_START) == Some(true) {
            found.start_up = start_up(profile, starts);
        }
        Ok(Some(found))
    }

    fn sum_up(&mut self, all: &HashMap<u64, Class<'_>>) {
        let loaded = all.values().filter(|class| class.cause.is_some());
        self.causes = sums(loaded.clone().map(|c| (c.cause.as_deref().unwrap_or(""), c)));
        self.sources = sums(loaded.clone().filter(|c| !c.source.is_empty()).map(|c| (c.source, c)));
        self.loaders = loaders(all);
        let mut dearest: Vec<LoadedClass> = loaded
            .filter(|class| class.cost.sum() > 0)
            .map(|class| LoadedClass {
                class: class.name.to_owned(),
                loader: class.loader.to_owned(),
                source: class.source.to_owned(),
                cause: class.cause.clone().unwrap_or_default(),
                cost: class.cost,
            })
            .collect();
        dearest.sort_by(|a, b| (b.cost.sum(), &a.class).cmp(&(a.cost.sum(), &b.class)));
        self.dearest = dearest;
        let mut by_name: BTreeMap<&str, BTreeSet<(u64, &str)>> = BTreeMap::new();
        for class in all.values().filter(|class| class.is_there) {
            let loader = (class.loader_number, class.loader);
            by_name.entry(class.name).or_default().insert(loader);
        }
        let several = by_name.into_iter().filter(|(_, loaders)| loaders.len() > 1);
        self.duplicates = several
            .map(|(class, loaders)| Duplicate {
                class: class.to_owned(),
                loaders: loaders.into_iter().map(|(_, loader)| loader.to_owned()).collect(),
            })
            .collect();
        self.duplicates.sort_by_key(|one| std::cmp::Reverse(one.loaders.len()));
    }
}

fn class<'p>(rows: &Rows<'p>, row: usize, cause: Option<String>) -> Class<'p> {
    Class {
        name: rows.text(row, "class"),
        loader: rows.text(row, "loader"),
        loader_number: rows.integer(row, "loader-number"),
        source: rows.text(row, "source"),
        cause,
        is_there: true,
        cost: ClassCosts::default(),
    }
}

/// Loads by something that they have in common, the dearest first.
fn sums<'a>(classes: impl Iterator<Item = (&'a str, &'a Class<'a>)>) -> Vec<LoadSum> {
    let mut by_name: BTreeMap<&str, (u64, ClassCosts, &Class<'_>)> = BTreeMap::new();
    for (name, class) in classes {
        let sum = by_name.entry(name).or_insert((0, ClassCosts::default(), class));
        sum.0 += 1;
        sum.1.add(class.cost);
        let rank = |class: &Class<'a>| (class.cost.sum(), std::cmp::Reverse(class.name));
        if rank(class) > rank(sum.2) {
            sum.2 = class;
        }
    }
    let sums = by_name.into_iter().map(|(name, (loads, cost, example))| LoadSum {
        name: name.to_owned(),
        loads,
        cost,
        example: example.name.to_owned(),
    });
    let mut sums: Vec<LoadSum> = sums.collect();
    sums.sort_by_key(|sum| std::cmp::Reverse((sum.cost.sum(), sum.loads)));
    sums
}

/// A loader's name without its number, so that those of a kind are one.
fn kind_of(loader: &str) -> &str {
    loader.split_once(" #").map_or(loader, |(kind, _)| kind)
}

fn loaders(all: &HashMap<u64, Class<'_>>) -> Vec<LoaderSum> {
    let mut kinds: BTreeMap<&str, (LoaderSum, HashMap<u64, bool>)> = BTreeMap::new();
    for class in all.values() {
        let (sum, loaders) = kinds.entry(kind_of(class.loader)).or_default();
        let alive = loaders.entry(class.loader_number).or_default();
        *alive |= class.is_there;
        sum.unloads += u64::from(!class.is_there);
        match class.cause.is_some() {
            true => sum.loads += 1,
            false => sum.present += 1,
        }
        sum.cost.add(class.cost);
    }
    let sums = kinds.into_iter().map(|(name, (sum, loaders))| LoaderSum {
        name: name.to_owned(),
        alive: loaders.values().filter(|alive| **alive).count() as u64,
        loaders: loaders.len() as u64,
        ..sum
    });
    let mut sums: Vec<LoaderSum> = sums.collect();
    sums.sort_by_key(|sum| std::cmp::Reverse((sum.cost.sum(), sum.loads, sum.present)));
    sums
}

/// The method for whose sake a class was loaded: the innermost that is not the JDK's; else the
/// innermost of the JDK that is not about loading classes.
fn cause(profile: &Profile, context: ContextId) -> String {
    const LOADING: [&str; 7] = [
        "java.lang.ClassLoader",
        "java.security.SecureClassLoader",
        "java.net.URLClassLoader",
        "jdk.internal.loader.",
        "java.lang.Class",
        "java.lang.System$",
        "java.security.AccessController",
    ];
    let mut of_jdk = None;
    for frame in profile.contexts.frames(context) {
        let frame = profile.frames.get(frame);
        let method = profile.methods.get(frame.method);
        let class = profile.strings.get(method.class);
        match method.kind {
            MethodKind::Java if !is_jdk(class) => return profile.method_name(frame.method),
            MethodKind::Java if LOADING.iter().any(|loading| class.starts_with(loading)) => {}
            MethodKind::Java => of_jdk = of_jdk.or(Some(frame.method)),
            _ => {}
        }
    }
    match of_jdk {
        Some(method) => profile.method_name(method),
        None => "[the JVM itself]".to_owned(),
    }
}

fn check(profile: &Profile) -> ClassCheck {
    let facts = &profile.run.facts;
    let both = |ours, theirs| Some((facts.get(ours)?, facts.get(theirs)?));
    let time = |key| facts.get(key).unwrap_or_default();
    ClassCheck {
        loads: both(keys::CLASSES_LOADED, keys::CLASSES_LOADED_BY_JVM),
        unloads: both(keys::CLASSES_UNLOADED, keys::CLASSES_UNLOADED_BY_JVM),
        measured: facts.get(keys::CLASS_TIME_BY_JVM),
        own: time(keys::CLASS_TIME_OWN),
        twice: time(keys::CLASS_TIME_TWICE),
        told: time(keys::CLASS_TIME),
        shared: time(keys::CLASS_TIME_SHARED),
    }
}

/// Times since the start that are looked at, in milliseconds.
const STARTS: [u64; 9] = [50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000];

fn start_up(profile: &Profile, mut events: Vec<(Event, u64, u64)>) -> Vec<StartUp> {
    events.sort_by_key(|(event, ..)| event.time);
    let first = events.first().map_or(0, |(event, ..)| event.time);
    events.iter_mut().for_each(|(event, ..)| event.time -= first);
    let last = events.last().map_or(0, |(event, ..)| event.time);
    let end = profile.run.duration.saturating_sub(first).max(last);
    let (mut loads, mut time) = (0, 0);
    let mut threads = HashMap::new();
    let mut events = events.into_iter().peekable();
    let mut steps = Vec::new();
    let ends = STARTS.into_iter().map(|ms| ms * 1_000_000).filter(|until| *until < end);
    // What ends later than the program is the program's whole life.
    let whole = (end <= STARTS[STARTS.len() - 1] * 1_000_000).then_some(end);
    for until in ends.chain(whole) {
        while let Some((event, more, cost)) = events.next_if(|(event, ..)| event.time <= until) {
            loads += more;
            time += cost;
            *threads.entry(event.thread).or_insert(0_u64) += cost;
        }
        let busiest = threads.values().copied().max().unwrap_or(0);
        steps.push(StartUp { until, loads, time, busiest });
    }
    steps
}

#[cfg(test)]
mod tests;
