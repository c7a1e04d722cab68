//! Which objects live: proven by a collection that they survived, until one frees them.
//!
//! An object is known by its number. Those that no collection has proven yet are kept apart: most
//! of them die young, and nobody is told of each. What is kept here of an object is a few dozen
//! bytes, and the agent's table bounds how many there are.

use super::allocation::{Amount, Fractions, SeriesPair};
use std::collections::HashMap;
use tare_arena::samples::BORN_OLD;
use tare_profile::{
    ContextId, Event, EventKind, EventTableId, FieldValue, Profile, Row, ThreadId, ValueKind,
};

/// Told in place of an epoch: the object lives, and is no longer watched.
const UNWATCHED: u64 = u64::MAX;
/// No table is thinned out as often.
const HIGHEST_LEVEL: u64 = 63;

/// An object, as it was allocated.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    time: u64,
    size: u64,
    /// How many it stands for.
    objects: f64,
    context: ContextId,
    thread: ThreadId,
    /// Collections that had finished by then.
    born: u32,
}

impl Object {
    /// `row` says where and when.
    pub fn new(row: Row, size: u64, objects: f64, born: u64) -> Self {
        let Row { context, thread, time, .. } = row;
        let born = u32::try_from(born).unwrap_or(u32::MAX);
        Object { time, size, objects, context, thread, born }
    }

    fn amount(&self) -> Amount<f64> {
        Amount { bytes: self.size as f64 * self.objects, objects: self.objects }
    }

    /// Where it was allocated, at another time.
    fn row(&self, time: u64) -> Row {
        Row::new(self.context, self.thread, 0).at(time)
    }
}

/// An object that a collection has left alive.
#[derive(Clone, Copy, Debug)]
struct Survivor {
    object: Object,
    /// It stands for 2^level times what it stood for when it was met.
    level: u8,
    /// What it is in the series.
    counted: Amount<i64>,
}

impl Survivor {
    fn fields(&self, collections: u64) -> [FieldValue; 3] {
        fields(self.counted.bytes, self.object.objects * factor(self.level), collections)
    }

    fn age(&self, epoch: u64) -> u64 {
        epoch.saturating_sub(self.object.born.into()).max(1)
    }
}

fn fields(bytes: i64, objects: f64, collections: u64) -> [FieldValue; 3] {
    let collections = i64::try_from(collections).unwrap_or(i64::MAX);
    [FieldValue::Integer(bytes), FieldValue::Real(objects), FieldValue::Integer(collections)]
}

fn factor(level: u8) -> f64 {
    2_f64.powi(level.into())
}

fn small(level: u64) -> u8 {
    level.min(HIGHEST_LEVEL) as u8
}

/// What was told of an object before its allocation.
#[derive(Clone, Copy)]
struct Early {
    time: u64,
    level: u8,
}

/// Changes at one moment, by context and thread; and deaths, by the age that was reached.
#[derive(Default)]
struct Sums {
    changes: HashMap<(u64, ContextId, ThreadId), Amount<i64>>,
    deaths: HashMap<(u64, ContextId, ThreadId, u64), Amount<i64>>,
}

#[derive(Clone, Copy)]
struct Tables {
    series: SeriesPair,
    deaths: EventTableId,
}

/// All objects that are watched.
#[derive(Default)]
pub struct Live {
    newborn: HashMap<u64, Object>,
    survivors: HashMap<u64, Survivor>,
    early: HashMap<u64, Early>,
    fractions: Fractions,
    tables: Option<Tables>,
    /// Newborn objects are numbered from here on, and those that were born old from there on.
    below: u64,
    old_below: u64,
    /// Collections that have finished, as far as is known.
    pub epoch: u64,
    /// What was met since the last sweep and is not watched, for which there was no room.
    unwatched: Amount<f64>,
    /// Objects that lived and are gone, and whose allocations never came.
    pub unaccounted: u64,
    /// Every object stands for itself. There may be very many, and those that are alike are told
    /// together.
    sums: Option<Sums>,
}

impl Live {
    /// Of objects that were not sampled.
    pub fn exact() -> Self {
        Live { sums: Some(Sums::default()), ..Live::default() }
    }

    /// Before the first of it: a recording in which nothing survives says so.
    pub fn begin(&mut self, profile: &mut Profile) {
        self.tables(profile);
    }

    fn tables(&mut self, profile: &mut Profile) -> Tables {
        let name = if self.sums.is_some() { "exact" } else { "live" };
        *self.tables.get_or_insert_with(|| {
            let kinds = [ValueKind::LiveBytes, ValueKind::LiveObjects];
            let series = SeriesPair::add(profile, name, kinds, None);
            Tables { series, deaths: profile.events_of(&EventKind::death()) }
        })
    }

    pub fn knows(&self, number: u64) -> bool {
        self.newborn.contains_key(&number) || self.survivors.contains_key(&number)
    }

    /// An object was met; number zero is one that is not watched.
    pub fn born(&mut self, profile: &mut Profile, number: u64, object: Object) {
        if number == 0 {
            self.unwatched.add(object.amount());
        } else if let Some(Early { time, level }) = self.early.remove(&number) {
            self.prove(profile, number, object, level, time);
        } else if !self.is_decided(number) {
            self.newborn.insert(number, object);
        }
    }

    pub fn survived(
        &mut self,
        profile: &mut Profile,
        number: u64,
        level: u64,
        epoch: u64,
        time: u64,
    ) {
        self.epoch = self.epoch.max(epoch);
        match self.newborn.remove(&number) {
            Some(object) => self.prove(profile, number, object, small(level), time),
            None if self.survivors.contains_key(&number) => {}
            None => {
                self.early.insert(number, Early { time, level: small(level) });
            }
        }
    }

    fn prove(&mut self, profile: &mut Profile, number: u64, object: Object, level: u8, time: u64) {
        let mut survivor = Survivor { object, level, counted: Amount::default() };
        self.count(profile, &mut survivor, factor(level), time);
        self.survivors.insert(number, survivor);
    }

    /// A survivor stands for 2^level from now on.
    pub fn level(&mut self, profile: &mut Profile, number: u64, level: u64, time: u64) {
        let level = small(level);
        if let Some(early) = self.early.get_mut(&number) {
            early.level = level;
        }
        if let Some(mut survivor) = self.survivors.remove(&number) {
            let more = factor(level) - factor(survivor.level);
            survivor.level = level;
            self.count(profile, &mut survivor, more, time);
            self.survivors.insert(number, survivor);
        }
    }

    /// Adds so many times what a survivor stood for when it was met.
    fn count(&mut self, profile: &mut Profile, survivor: &mut Survivor, times: f64, time: u64) {
        let object = &survivor.object;
        let more = self.fractions.whole(object.context, object.amount().times(times));
        self.change(profile, object.row(time), more);
        survivor.counted.add(more);
    }

    fn change(&mut self, profile: &mut Profile, row: Row, more: Amount<i64>) {
        match &mut self.sums {
            Some(sums) => {
                let Row { time, context, thread, .. } = row;
                sums.changes.entry((time, context, thread)).or_default().add(more);
            }
            None => self.tables(profile).series.push(profile, row, more),
        }
    }

    /// Has what was summed up in the profile.
    pub fn flush(&mut self, profile: &mut Profile) {
        let Some(Sums { changes, deaths }) = self.sums.as_mut().map(std::mem::take) else { return };
        let tables = self.tables(profile);
        let mut changes: Vec<_> = changes.into_iter().collect();
        changes.sort_unstable_by_key(|(at, _)| *at);
        for ((time, context, thread), more) in changes {
            tables.series.push(profile, Row::new(context, thread, 0).at(time), more);
        }
        let mut deaths: Vec<_> = deaths.into_iter().collect();
        deaths.sort_unstable_by_key(|(at, _)| *at);
        for ((time, context, thread, age), Amount { bytes, objects }) in deaths {
            let event = Event { time, duration: 0, thread, context };
            let fields = fields(bytes, objects as f64, age);
            profile.events_mut(tables.deaths).push(event, &fields);
        }
    }

    /// A survivor is gone, or is no longer watched.
    pub fn gone(&mut self, profile: &mut Profile, number: u64, epoch: u64, time: u64) {
        let Some(survivor) = self.survivors.remove(&number) else {
            // Of those that are born old it is told before they are proven, too.
            self.newborn.remove(&number);
            self.unaccounted += u64::from(self.early.remove(&number).is_some());
            return;
        };
        let Amount { bytes, objects } = survivor.counted;
        let less = Amount { bytes: -bytes, objects: -objects };
        self.change(profile, survivor.object.row(time), less);
        if epoch == UNWATCHED {
            return;
        }
        self.epoch = self.epoch.max(epoch);
        let Object { thread, context, .. } = survivor.object;
        // The collection that freed it is none that it survived.
        let age = survivor.age(epoch.saturating_sub(1));
        if let Some(sums) = &mut self.sums {
            sums.deaths.entry((time, context, thread, age)).or_default().add(survivor.counted);
            return;
        }
        let event = Event { time, duration: 0, thread, context };
        let deaths = self.tables(profile).deaths;
        profile.events_mut(deaths).push(event, &survivor.fields(age));
    }

    /// What is numbered below and did not survive is gone; with `old_below` for objects that were
    /// born old.
    pub fn swept(&mut self, below: u64, old_below: u64, epoch: u64) {
        self.below = self.below.max(below);
        self.old_below = self.old_below.max(old_below);
        self.epoch = self.epoch.max(epoch);
        let mut newborn = std::mem::take(&mut self.newborn);
        newborn.retain(|number, _| !self.is_decided(*number));
        self.newborn = newborn;
        self.unwatched = Amount::default();
    }

    /// Whether a collection has decided about the object with this number.
    fn is_decided(&self, number: u64) -> bool {
        match number & BORN_OLD {
            0 => number < self.below,
            bit => number ^ bit < self.old_below,
        }
    }

    /// Objects that are proven to live.
    pub fn proven(&self) -> usize {
        self.survivors.len()
    }

    /// Objects that survived and whose allocations have not come.
    pub fn lost(&self) -> u64 {
        self.unaccounted + self.early.len() as u64
    }

    /// What no collection has proven to live or to be dead.
    pub fn unproven(&self) -> Amount<f64> {
        let mut all = self.unwatched;
        self.newborn.values().for_each(|object| all.add(object.amount()));
        all
    }

    /// Adds what lives now to a profile with the same contexts and threads.
    pub fn add_survivors(&self, profile: &mut Profile) {
        let table = profile.events_of(&EventKind::survivor());
        if self.sums.is_some() {
            return self.add_alike(profile, table);
        }
        let mut numbers: Vec<u64> = self.survivors.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            let Some(survivor) = self.survivors.get(&number) else { continue };
            let Object { time, size, thread, context, .. } = survivor.object;
            let event = Event { time, duration: 0, thread, context };
            let size = FieldValue::Integer(i64::try_from(size).unwrap_or(i64::MAX));
            let [bytes, objects, collections] = survivor.fields(survivor.age(self.epoch));
            let number = FieldValue::Integer(number.cast_signed());
            profile.events_mut(table).push(event, &[size, bytes, objects, collections, number]);
        }
    }

    /// Survivors of one size and age from one place together, with the time of the first.
    fn add_alike(&self, profile: &mut Profile, table: EventTableId) {
        let mut alike: HashMap<_, (u64, Amount<i64>)> = HashMap::new();
        for survivor in self.survivors.values() {
            let Object { time, size, thread, context, .. } = survivor.object;
            let key = (context, thread, size, survivor.age(self.epoch));
            let (first, sum) = alike.entry(key).or_insert((time, Amount::default()));
            *first = time.min(*first);
            sum.add(survivor.counted);
        }
        let mut alike: Vec<_> = alike.into_iter().collect();
        alike.sort_unstable_by_key(|(key, _)| *key);
        for ((context, thread, size, age), (time, Amount { bytes, objects })) in alike {
            let event = Event { time, duration: 0, thread, context };
            let size = FieldValue::Integer(i64::try_from(size).unwrap_or(i64::MAX));
            let [bytes, objects, collections] = fields(bytes, objects as f64, age);
            let number = FieldValue::Integer(0);
            profile.events_mut(table).push(event, &[size, bytes, objects, collections, number]);
        }
    }
}
