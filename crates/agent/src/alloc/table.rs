//! The objects that are watched: looked at after collections, and thinned out when there are too
//! many. Owned by the control thread.
//!
//! A pass over the table goes in steps, because a large one takes milliseconds and because a front
//! end can take in only so many events at a time. It is either a *sweep*, which finds out who is
//! gone and who has survived, or a *thinning*: half of the objects, by a bit of a hash of their
//! numbers, are let go, and each that stays stands for twice as many. So sums stay right on
//! average, and no object is ever looked for.
//!
//! Entries are in the order of their numbers, which is that of their births. Those that were born
//! old (`born_old`) need a proof of their own, and it is told when one is gone before there was any.

use tare_arena::samples::BORN_OLD;

/// What the table needs of the JVM and of the stream. `R` is a reference.
pub trait Surroundings<R> {
    fn is_gone(&mut self, of: R) -> bool;
    fn delete(&mut self, of: R);
    /// Whether another event can be told. Then the next one gets through.
    fn has_room(&mut self) -> bool;
    fn survived(&mut self, entry: &Entry<R>, epoch: u64);
    /// `None` for one that is only watched no more.
    fn gone(&mut self, number: u64, epoch: Option<u64>);
    fn stands_for_more(&mut self, number: u64, level: u8);
}

/// What woven code says of an object that it made; nothing of a sampled one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Where in the arena the node of its site is.
    pub node: u32,
    words: u32,
}

impl Made {
    pub fn new(node: u32, bytes: u64) -> Self {
        Made { node, words: u32::try_from(bytes / 8).unwrap_or(u32::MAX) }
    }

    /// Objects take whole words.
    pub fn bytes(self) -> u64 {
        u64::from(self.words) * 8
    }
}

/// An object.
#[derive(Clone, Copy, Debug)]
pub struct Entry<R> {
    pub reference: R,
    pub number: u64,
    pub made: Made,
    /// Collections begun by its birth.
    pub born: u32,
    /// It stands for so many powers of two of objects.
    pub level: u8,
    /// No collection of young objects decides about it.
    old: bool,
    /// It was told as a survivor.
    told: bool,
}

impl<R> Entry<R> {
    pub fn new(reference: R, number: u64, born: u32, level: u8, old: bool) -> Self {
        Entry { reference, number, made: Made::default(), born, level, old, told: false }
    }

    /// One that woven code has handed over: it stands for itself.
    pub fn made(reference: R, number: u64, born: u32, made: Made, old: bool) -> Self {
        Entry { made, ..Entry::new(reference, number, born, 0, old) }
    }

    /// Whether it was sampled, and not handed over by woven code.
    pub fn is_sampled(&self) -> bool {
        self.made == Made::default()
    }

    /// What front ends know it by.
    pub fn name(&self) -> u64 {
        if self.old { self.number | BORN_OLD } else { self.number }
    }
}

/// What is being done to all entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Objects numbered below were there before a collection that is over, those below `old` before
    /// one of old objects; the number of collections by now.
    Sweep { below: u64, old: u64, epoch: u64 },
    /// Every other object is let go.
    Thin,
    /// The same of those that were not told as survivors.
    ThinUnproven,
}

struct Pass {
    task: Task,
    /// The next entry to look at, and where it goes if it stays.
    from: usize,
    to: usize,
    end: usize,
}

pub struct Table<R> {
    entries: Vec<Entry<R>>,
    pass: Option<Pass>,
    unproven: usize,
    /// What those are that woven code has made.
    unproven_bytes: u64,
    most: usize,
}

/// No entry stands for more.
const LEVEL_MOST: u8 = 60;

impl<R: Copy> Table<R> {
    pub fn new() -> Self {
        Table { entries: Vec::new(), pass: None, unproven: 0, unproven_bytes: 0, most: 0 }
    }

    /// Entries that are there.
    pub fn count(&self) -> usize {
        let hole = self.pass.as_ref().map_or(0, |pass| pass.from - pass.to);
        self.entries.len() - hole
    }

    /// Those that are there, also during a pass.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<R>> {
        let (to, from) = self.pass.as_ref().map_or((0, 0), |pass| (pass.to, pass.from));
        self.entries[..to].iter().chain(&self.entries[from..])
    }

    /// The most there were at once.
    pub fn most(&self) -> usize {
        self.most
    }

    pub fn unproven(&self) -> usize {
        self.unproven
    }

    pub fn unproven_bytes(&self) -> u64 {
        self.unproven_bytes
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry<R>>()
    }

    /// Takes in new entries, whose numbers follow on those that are there.
    pub fn extend(&mut self, new: impl IntoIterator<Item = Entry<R>>) {
        let before = self.entries.len();
        self.entries.extend(new);
        self.unproven += self.entries.len() - before;
        self.unproven_bytes += self.entries[before..].iter().map(|e| e.made.bytes()).sum::<u64>();
        self.most = self.most.max(self.count());
    }

    /// The number of the first entry that was born in or after a collection, by its place in their
    /// order. Not during a pass.
    pub fn first_born_since(&self, collections: u32) -> Option<u64> {
        let at = self.entries.partition_point(|entry| entry.born < collections);
        self.entries.get(at).map(|entry| entry.number)
    }

    pub fn is_busy(&self) -> bool {
        self.pass.is_some()
    }

    /// Begins a pass; there is none.
    pub fn begin(&mut self, task: Task) {
        debug_assert!(self.pass.is_none());
        let from = match task {
            Task::ThinUnproven => {
                let first = self.entries.iter().position(|entry| !entry.told);
                first.unwrap_or(self.entries.len())
            }
            Task::Sweep { .. } | Task::Thin => 0,
        };
        self.pass = Some(Pass { task, from, to: from, end: self.entries.len() });
    }

    /// Goes on with the pass, for `most` entries or as long as there is room for events. The task
    /// when it is done.
    pub fn step(&mut self, most: usize, around: &mut impl Surroundings<R>) -> Option<Task> {
        let pass = self.pass.as_mut()?;
        for _ in 0..most {
            if pass.from == pass.end || !around.has_room() {
                break;
            }
            let mut entry = self.entries[pass.from];
            pass.from += 1;
            let told = entry.told;
            let stays = look_at(&mut entry, pass.task, around);
            if !told && (entry.told || !stays) {
                self.unproven -= 1;
                self.unproven_bytes -= entry.made.bytes();
            }
            if stays {
                self.entries[pass.to] = entry;
                pass.to += 1;
            }
        }
        if pass.from < pass.end {
            return None;
        }
        let (task, hole) = (pass.task, pass.to..pass.from);
        self.pass = None;
        self.entries.drain(hole);
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        Some(task)
    }

    /// Lets go of everything.
    pub fn clear(&mut self, around: &mut impl Surroundings<R>) {
        let hole = self.pass.take().map_or(0..0, |pass| pass.to..pass.from);
        self.entries.drain(hole);
        self.entries.drain(..).for_each(|entry| around.delete(entry.reference));
        (self.unproven, self.unproven_bytes) = (0, 0);
    }
}

/// Does to one entry what the pass is for; whether it stays.
fn look_at<R: Copy>(entry: &mut Entry<R>, task: Task, around: &mut impl Surroundings<R>) -> bool {
    match task {
        Task::Sweep { epoch, .. } if around.is_gone(entry.reference) => {
            around.delete(entry.reference);
            if entry.told || entry.old {
                around.gone(entry.name(), Some(epoch));
            }
            false
        }
        Task::Sweep { below, old, epoch } => {
            if !entry.told && entry.number < if entry.old { old } else { below } {
                entry.told = true;
                around.survived(entry, epoch);
            }
            true
        }
        Task::ThinUnproven if entry.told => true,
        Task::Thin | Task::ThinUnproven if entry.level >= LEVEL_MOST => true,
        Task::Thin | Task::ThinUnproven if !keeps(entry) => {
            around.delete(entry.reference);
            if entry.told || entry.old {
                around.gone(entry.name(), None);
            }
            false
        }
        Task::Thin | Task::ThinUnproven => {
            entry.level += 1;
            if entry.told {
                around.stands_for_more(entry.name(), entry.level);
            }
            true
        }
    }
}

/// Lets go of every other entry of a list that nobody was told of, as [`Task::Thin`] does; those that
/// go.
pub fn thin<R: Copy>(list: &mut Vec<Entry<R>>) -> Vec<Entry<R>> {
    list.extract_if(.., |entry| {
        let goes = entry.level < LEVEL_MOST && !keeps(entry);
        entry.level += u8::from(!goes && entry.level < LEVEL_MOST);
        goes
    })
    .collect()
}

/// Whether an entry stays when half of them go. Each level asks a bit of its own.
fn keeps<R>(entry: &Entry<R>) -> bool {
    mixed(entry.number) >> entry.level & 1 == 1
}

/// Whether the object of a number is taken in, where one in 2^level is.
pub fn is_taken_in(number: u64, level: u8) -> bool {
    // Other bits than those that thin out later.
    mixed(!number) & ((1 << level.min(LEVEL_MOST)) - 1) == 0
}

/// A number whose bits have nothing to do with each other.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
