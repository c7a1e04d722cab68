//! Tests of the table of watched objects, with a world of numbers around it.

use super::*;
use std::collections::{BTreeMap, HashSet};

/// Objects are their numbers; events are noted.
#[derive(Default)]
struct World {
    dead: HashSet<u64>,
    deleted: HashSet<u64>,
    /// Of the survivors that are told and not gone: their levels.
    survivors: BTreeMap<u64, u8>,
    let_go: u64,
    events: usize,
    room: Option<usize>,
}

impl Surroundings<u64> for World {
    fn is_gone(&mut self, of: u64) -> bool {
        assert!(!self.deleted.contains(&of), "{of} was looked at after it was deleted");
        self.dead.contains(&of)
    }

    fn delete(&mut self, of: u64) {
        assert!(self.deleted.insert(of), "{of} was deleted twice");
    }

    fn has_room(&mut self) -> bool {
        self.room.is_none_or(|room| self.events < room)
    }

    fn survived(&mut self, entry: &Entry<u64>, _: u64) {
        self.events += 1;
        let (number, level) = (entry.name(), entry.level);
        assert_eq!(self.survivors.insert(number, level), None, "{number} came twice");
    }

    fn gone(&mut self, number: u64, epoch: Option<u64>) {
        self.events += 1;
        self.let_go += u64::from(epoch.is_none());
        let came = self.survivors.remove(&number).is_some();
        assert!(came || number & BORN_OLD != 0, "{number} never came");
    }

    fn stands_for_more(&mut self, number: u64, level: u8) {
        self.events += 1;
        let before = self.survivors.insert(number, level);
        assert_eq!(before, Some(level - 1));
    }
}

fn table(numbers: std::ops::Range<u64>, born: impl Fn(u64) -> u32) -> Table<u64> {
    let mut table = Table::new();
    table.extend(numbers.map(|number| Entry::new(number, number, born(number), 0, false)));
    table
}

fn whole(table: &mut Table<u64>, task: Task, world: &mut World) {
    table.begin(task);
    assert_eq!(table.step(usize::MAX, world), Some(task));
}

#[test]
fn survivors_are_told_once_and_the_dead_only_if_they_were() {
    let mut world = World::default();
    let mut table = table(1..101, |number| if number <= 50 { 0 } else { 1 });
    assert_eq!(table.first_born_since(1), Some(51));
    assert_eq!(table.first_born_since(2), None);
    world.dead.extend((1..101).filter(|number| number % 2 == 0));
    whole(&mut table, Task::Sweep { below: 51, old: 0, epoch: 1 }, &mut world);
    assert_eq!(world.survivors.len(), 25, "who was born later is not proven");
    assert_eq!((table.count(), table.unproven()), (50, 25));
    assert_eq!(world.events, 25, "who dies unproven costs no event");
    world.dead.extend(1..51);
    whole(&mut table, Task::Sweep { below: 101, old: 0, epoch: 2 }, &mut world);
    assert_eq!((table.count(), table.unproven(), table.most()), (25, 0, 100));
    assert!(world.survivors.keys().all(|number| *number > 50));
    assert_eq!(world.deleted.len(), 75);
    table.clear(&mut world);
    assert_eq!(world.deleted.len(), 100);
}

#[test]
fn who_is_born_old_needs_a_proof_of_its_own() {
    let mut world = World::default();
    let mut table = Table::new();
    let is_old = |number: u64| number.is_multiple_of(10);
    table.extend((1..101).map(|number| Entry::new(number, number, 0, 0, is_old(number))));
    whole(&mut table, Task::Sweep { below: 101, old: 41, epoch: 1 }, &mut world);
    assert_eq!(world.survivors.len(), 94);
    assert!(world.survivors.contains_key(&(40 | BORN_OLD)));
    assert!(!world.survivors.contains_key(&(50 | BORN_OLD)));
    assert_eq!(table.unproven(), 6);
    // One is gone before anything has proven it: that is told, since nothing else tells it.
    let events = world.events;
    world.dead.insert(60);
    whole(&mut table, Task::Sweep { below: 101, old: 41, epoch: 2 }, &mut world);
    assert_eq!(world.events, events + 1);
    // Thinning the unproven finds them among those that were told.
    whole(&mut table, Task::ThinUnproven, &mut world);
    assert_eq!(world.survivors.len(), 94);
    assert!(table.unproven() < 5, "{}", table.unproven());
    whole(&mut table, Task::Sweep { below: 101, old: 101, epoch: 3 }, &mut world);
    assert_eq!(table.unproven(), 0);
}

#[test]
fn a_list_is_thinned_as_the_table_is() {
    let mut list: Vec<_> =
        (1..10_001).map(|number| Entry::new(number, number, 0, 0, false)).collect();
    let mut table = Table::new();
    table.extend(list.iter().copied());
    let gone = thin(&mut list);
    assert!((4_800..5_200).contains(&gone.len()), "{}", gone.len());
    assert_eq!(gone.len() + list.len(), 10_000);
    assert!(list.iter().all(|entry| entry.level == 1));
    let mut world = World::default();
    whole(&mut table, Task::Thin, &mut world);
    assert!(gone.iter().all(|entry| world.deleted.contains(&entry.number)));
    assert_eq!(world.deleted.len(), gone.len());
}

#[test]
fn bytes_of_what_is_not_proven_go_with_it() {
    let mut world = World::default();
    let mut table = Table::new();
    let entry = |number: u64| Entry::made(number, number, 0, Made::new(7, number * 16), false);
    table.extend((1..5).map(entry));
    assert_eq!((table.unproven(), table.unproven_bytes()), (4, 160));
    world.dead.insert(4);
    whole(&mut table, Task::Sweep { below: 3, old: 0, epoch: 1 }, &mut world);
    assert_eq!((table.unproven(), table.unproven_bytes()), (1, 48), "the third is too young");
    table.clear(&mut world);
    assert_eq!(table.unproven_bytes(), 0);
    assert_eq!(Made::new(1, u64::MAX).bytes(), u64::from(u32::MAX) * 8, "as large as it can be");
}

#[test]
fn a_pass_in_steps_does_what_a_whole_one_does() {
    let mut world = World { room: Some(0), ..World::default() };
    let mut table = table(1..1001, |_| 0);
    let task = Task::Sweep { below: 1001, old: 0, epoch: 1 };
    table.begin(task);
    assert_eq!(table.step(100, &mut world), None);
    assert_eq!(world.events, 0, "there was no room");
    let mut done = None;
    for round in 0..1000 {
        world.room = Some(world.events + 7);
        world.dead.extend((round * 8..round * 8 + 3).filter(|n| !world.survivors.contains_key(n)));
        table.extend([Entry::new(2000 + round, 2000 + round, 1, 0, false)]);
        done = table.step(10, &mut world);
        if done.is_some() {
            break;
        }
    }
    assert_eq!(done, Some(task));
    let alive: Vec<u64> = (1..1001).filter(|n| !world.deleted.contains(n)).collect();
    assert!(world.survivors.keys().copied().eq(alive.iter().copied()));
    assert!(world.deleted.iter().all(|number| world.dead.contains(number)));
    assert_eq!(table.count() - table.unproven(), alive.len());
    assert!(table.unproven() > 100, "what came meanwhile is there");
    table.begin(task);
    table.step(500, &mut world);
    table.clear(&mut world);
    assert_eq!((table.count(), table.unproven()), (0, 0));
}

#[test]
fn thinning_keeps_the_sum() {
    const OBJECTS: u64 = 100_000;
    let mut world = World::default();
    let mut table = table(1..OBJECTS + 1, |_| 0);
    whole(&mut table, Task::Sweep { below: OBJECTS / 2, old: 0, epoch: 1 }, &mut world);
    let told = world.survivors.len();
    whole(&mut table, Task::ThinUnproven, &mut world);
    assert_eq!(world.survivors.len(), told, "a survivor was touched");
    assert_eq!(world.let_go, 0);
    for _ in 0..3 {
        whole(&mut table, Task::Thin, &mut world);
    }
    whole(&mut table, Task::Sweep { below: OBJECTS + 1, old: 0, epoch: 2 }, &mut world);
    assert_eq!(table.count(), world.survivors.len());
    let sum: u64 = world.survivors.values().map(|level| 1 << level).sum();
    let off = sum.abs_diff(OBJECTS);
    assert!(off < OBJECTS / 25, "{sum} for {OBJECTS}");
    let entries = table.count() as u64;
    assert!((OBJECTS / 13..OBJECTS / 9).contains(&entries), "{entries}");
}

#[test]
fn taking_in_and_thinning_out_ask_different_bits() {
    let taken: Vec<u64> = (0..400_000).filter(|number| is_taken_in(*number, 2)).collect();
    assert!((98_000..102_000).contains(&taken.len()), "{}", taken.len());
    let mut world = World::default();
    let mut table = Table::new();
    table.extend(taken.iter().map(|number| Entry::new(*number, *number, 0, 2, false)));
    whole(&mut table, Task::Thin, &mut world);
    assert!((48_500..51_500).contains(&table.count()), "{}", table.count());
    assert!((0..1000).all(|number| is_taken_in(number, 0)));
}

#[test]
fn entries_are_those_that_are_there_also_during_a_pass() {
    let mut world = World::default();
    let mut table = table(1..101, |_| 0);
    world.dead.extend((1..101).filter(|number| number % 3 == 0));
    let there = |table: &Table<u64>| table.entries().map(Entry::name).collect::<Vec<u64>>();
    assert_eq!(there(&table), (1..101).collect::<Vec<u64>>());
    table.begin(Task::Sweep { below: 101, old: 0, epoch: 1 });
    assert_eq!(table.step(40, &mut world), None);
    let half: Vec<u64> = (1..101).filter(|number| *number > 40 || number % 3 != 0).collect();
    assert_eq!(there(&table), half);
    assert_eq!(table.count(), half.len());
    table.step(usize::MAX, &mut world);
    assert_eq!(there(&table), (1..101).filter(|number| number % 3 != 0).collect::<Vec<u64>>());
    table.clear(&mut world);
}
