//! What is written is read: everything, by parts, merged.

use crate::made::{SAMPLES, TIMES, dump, made};
use std::collections::BTreeMap;
use std::io::Cursor;
use tare_profile::facts::keys;
use tare_profile::{Profile, SeriesId};
use tare_recording::{LoadOptions, Loaded, Recording, Writer};

pub fn written(profile: &Profile) -> Vec<u8> {
    Writer::new(Vec::new()).unwrap().finish(profile).unwrap()
}

pub fn read(bytes: &[u8], options: &LoadOptions) -> Loaded {
    Recording::new(Cursor::new(bytes)).unwrap().load(options).unwrap()
}

#[test]
fn a_profile_comes_back_in_every_detail() {
    for seed in 0..20 {
        let profile = made(seed, 400);
        let bytes = written(&profile);
        let loaded = read(&bytes, &LoadOptions::default());
        assert_eq!(loaded.warnings, []);
        assert_eq!(dump(&loaded.profile), dump(&profile));
        assert_eq!(loaded.profile.check(), Ok(()));
    }
}

#[test]
fn an_empty_profile_comes_back_too() {
    let loaded = read(&written(&Profile::new()), &LoadOptions::default());
    assert_eq!((loaded.warnings, dump(&loaded.profile)), (vec![], dump(&Profile::new())));
}

#[test]
fn more_rows_than_fit_into_a_chunk() {
    let mut profile = made(1, 50);
    let frame = profile.special("[many]");
    let context = profile.contexts.stack([frame]);
    for n in 0..300_000_u64 {
        let row = tare_profile::Row::new(context, tare_profile::ThreadId::UNKNOWN, n as i64).at(n);
        profile.series_mut(SAMPLES).push(row);
        profile.contexts.child(context, tare_profile::FrameId::new(n as u32 % 3));
    }
    let loaded = read(&written(&profile), &LoadOptions::default());
    assert_eq!(loaded.warnings, []);
    assert!(dump(&loaded.profile) == dump(&profile));
}

#[test]
fn the_summary_needs_no_loading() {
    let profile = made(3, 200);
    let bytes = written(&profile);
    let summary = Recording::new(Cursor::new(&bytes)).unwrap().summary().unwrap();
    assert_eq!(summary.run, profile.run);
    let infos: Vec<_> =
        profile.all_series().map(|(_, series)| Some(series.info().clone())).collect();
    assert_eq!(summary.series, infos);
    let rows: Vec<u64> = profile.all_series().map(|(_, series)| series.len() as u64).collect();
    assert_eq!((summary.rows, summary.damaged), (rows, false));
}

#[test]
fn merged_values_are_the_sums() {
    let profile = made(4, 500);
    let options = LoadOptions { merge: true, ..LoadOptions::default() };
    let loaded = read(&written(&profile), &options).profile;
    for series in [SAMPLES, TIMES, SeriesId::new(2)] {
        let sums = |profile: &Profile| {
            let mut sums = BTreeMap::new();
            for row in profile.series(series).rows() {
                *sums.entry((row.context, row.thread)).or_insert(0) += row.value;
            }
            sums.retain(|_, sum| *sum != 0);
            sums
        };
        let merged = sums(&loaded);
        assert_eq!(merged, sums(&profile));
        assert_eq!(loaded.series(series).len(), merged.len());
    }
}

#[test]
fn parts_are_what_was_asked_for() {
    let profile = made(5, 500);
    let bytes = written(&profile);
    let range = profile.run.duration / 4..profile.run.duration / 2;
    let options = LoadOptions {
        series: Some(vec![0]),
        time: Some(range.clone()),
        events: false,
        ..LoadOptions::default()
    };
    let loaded = read(&bytes, &options).profile;
    assert_eq!(loaded.all_series().count(), 1);
    let expected: Vec<_> =
        profile.series(SAMPLES).rows().filter(|row| range.contains(&row.time)).collect();
    assert!(!expected.is_empty());
    assert_eq!(loaded.series(SAMPLES).rows().collect::<Vec<_>>(), expected);
    assert!(loaded.all_events().all(|(_, table)| table.is_empty()));
}

/// A file that counts what is read of it.
struct Counting<'a>(Cursor<&'a [u8]>, std::rc::Rc<std::cell::Cell<usize>>);
impl std::io::Read for Counting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.set(self.1.get() + read);
        Ok(read)
    }
}
impl std::io::Seek for Counting<'_> {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

fn bytes_read(file: &[u8], options: &LoadOptions) -> usize {
    let count = std::rc::Rc::new(std::cell::Cell::new(0));
    let input = Counting(Cursor::new(file), count.clone());
    Recording::new(input).unwrap().load(options).unwrap();
    count.get()
}

#[test]
fn blocks_of_other_times_are_not_read() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let mut run = crate::made::Run::new(1);
    for _ in 0..10 {
        run.go_on(100);
        writer.write(&run.profile).unwrap();
    }
    let end = run.profile.run.duration;
    let whole = writer.finish(&run.profile).unwrap();
    let whole_time = LoadOptions::default();
    let last = LoadOptions { time: Some(end - end / 20..end), ..LoadOptions::default() };
    let (all, tenth) = (bytes_read(&whole, &whole_time), bytes_read(&whole, &last));
    assert!(tenth < all * 8 / 10, "{tenth} of {all} bytes were read");
}

/// A run whose samples are many and whose contexts few.
fn long_run() -> Profile {
    let mut profile = made(6, 200);
    let contexts = profile.contexts.len() as u64;
    let random = &mut crate::made::Random(3);
    for n in 0..200_000_u64 {
        let context = tare_profile::ContextId::new(random.below(contexts) as u32);
        let thread = tare_profile::ThreadId::new(random.below(2) as u32);
        let time = n * 1_000_000 + random.below(1_000_000);
        let row = tare_profile::Row::new(context, thread, n as i64 % 5 + 1).at(time);
        profile.series_mut(SAMPLES).push(row);
    }
    profile
}

#[test]
fn sums_are_read_instead_of_values_if_they_are_sound() {
    let profile = long_run();
    let bytes = written(&profile);
    let merge = LoadOptions { merge: true, series: Some(vec![0]), ..LoadOptions::default() };
    let all = LoadOptions { series: Some(vec![0]), ..LoadOptions::default() };
    let (summed, whole) = (bytes_read(&bytes, &merge), bytes_read(&bytes, &all));
    assert!(summed * 4 < whole, "{summed} bytes of {whole}");
    let sums = |bytes: &[u8], options: &LoadOptions| {
        let loaded = read(bytes, options);
        let mut sums = BTreeMap::new();
        for row in loaded.profile.series(SAMPLES).rows() {
            *sums.entry((row.context, row.thread)).or_insert(0) += row.value;
        }
        (sums, loaded.warnings)
    };
    let expected = sums(&bytes, &all);
    assert_eq!(sums(&bytes, &merge), expected);
    for (_, kind, end) in crate::damage::blocks(&bytes) {
        if kind == 13 {
            let mut damaged = bytes.clone();
            damaged[end - 1] ^= 1;
            assert_eq!(sums(&damaged, &merge), expected, "the values themselves are sound");
        }
    }
    let mut unfinished = bytes.clone();
    unfinished.truncate(bytes.len() - 1);
    assert_eq!(sums(&unfinished, &merge).0, expected.0);
}

#[test]
fn one_damaged_block_of_sums_spoils_them_all() {
    // More pairs than fit into one block, and four rows for each.
    let pairs = 140_000_u32;
    let mut profile = Profile::new();
    let frame = profile.special("[any]");
    for _ in 0..pairs {
        let parent = tare_profile::ContextId::new(profile.contexts.len() as u32 - 1);
        profile.contexts.child(parent, frame);
    }
    let info = tare_profile::SeriesInfo::new("cpu", tare_profile::ValueKind::Samples);
    profile.add_series(info.with_time(tare_profile::TimeAxis::Exact));
    for n in 0..4 * pairs {
        let context = tare_profile::ContextId::new(n % pairs);
        let row = tare_profile::Row::new(context, tare_profile::ThreadId::UNKNOWN, 1);
        profile.series_mut(SAMPLES).push(row.at(u64::from(n)));
    }
    let mut bytes = written(&profile);
    let sums: Vec<_> = crate::damage::blocks(&bytes).into_iter().filter(|b| b.1 == 13).collect();
    assert_eq!(sums.len(), 2);
    bytes[sums[1].2 - 1] ^= 1;
    let merge = LoadOptions { merge: true, ..LoadOptions::default() };
    let loaded = read(&bytes, &merge).profile;
    assert_eq!(loaded.series(SAMPLES).total(), i64::from(4 * pairs));
}

/// Facts fit into one block, however long a table is; single values are the last to go.
#[test]
fn facts_that_are_too_many_are_cut() {
    let mut profile = Profile::new();
    profile.run.facts.set(keys::NOTES, &vec!["long ".repeat(1000); 100_000]);
    profile.run.facts.set(keys::THREADS_SAMPLED, &7);
    let loaded = read(&written(&profile), &LoadOptions::default());
    assert_eq!(loaded.warnings, []);
    let facts = loaded.profile.run.facts;
    assert_eq!(facts.get(keys::THREADS_SAMPLED), Some(7));
    let notes = facts.rows(keys::NOTES);
    assert!(notes.len() > 1000 && notes.iter().all(|note| note.starts_with("long long")));
}

/// The list of keys in FORMAT.md is the list of keys.
#[test]
fn the_description_lists_every_fact() {
    let text = include_str!("../../FORMAT.md");
    let list = text.split("## Facts").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let rows = list.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    let described: Vec<(&str, &str)> =
        rows.map(|row| (row[0].trim_end_matches('`'), row[1])).collect();
    assert_eq!(described, keys::ALL);
}
