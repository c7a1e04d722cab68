//! Damaged and hostile files: what is readable is read, the rest is told, nothing panics, memory
//! stays bounded.

use crate::future::{block, header};
use crate::made::{Random, Run, SAMPLES, dump, made};
use crate::roundtrip::{read, written};
use std::io::Cursor;
use tare_profile::{Event, EventKind, FieldType, FieldValue, LossKind, Profile};
use tare_recording::{LoadOptions, ReadError, Recording, Warning, Writer};

fn try_all(bytes: &[u8], what: &str) {
    let options = [
        LoadOptions { memory_limit: Some(1 << 26), ..LoadOptions::default() },
        LoadOptions { merge: true, time: Some(0..1 << 40), ..LoadOptions::default() },
    ];
    let Ok(mut recording) = Recording::new(Cursor::new(bytes)) else { return };
    let _ = recording.summary();
    for options in options {
        if let Ok(loaded) = recording.load(&options) {
            assert_eq!(loaded.profile.check(), Ok(()), "{what}");
            let _ = loaded.warnings.iter().map(ToString::to_string).collect::<String>();
        }
    }
}

#[test]
fn seeded_mutations_never_panic_and_give_valid_profiles() {
    let whole = growing(6, 20);
    let random = &mut Random(99);
    for round in 0..rounds() {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(4) {
            mutate(&mut bytes, random);
        }
        try_all(&bytes, &format!("round {round}"));
    }
}

/// Damage that the checksums do not notice: the content changes, and is sealed again.
#[test]
fn mutations_under_good_checksums_never_panic_either() {
    let whole = growing(6, 20);
    let contents: Vec<(u8, u16, Vec<u8>)> = blocks(&whole)
        .into_iter()
        .map(|(start, kind, end)| {
            let number = u16::from_le_bytes([whole[start + 6], whole[start + 7]]);
            let size = u32::from_le_bytes(whole[start + 16..start + 20].try_into().unwrap());
            let stored = &whole[start + 32..end];
            let content = match whole[start + 5] {
                0 => stored.to_vec(),
                _ => lz4_flex::block::decompress(stored, size as usize).unwrap(),
            };
            (kind, number, content)
        })
        .collect();
    let random = &mut Random(77);
    for round in 0..rounds() {
        let mut contents = contents.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(contents.len() as u64) as usize;
            mutate(&mut contents[at].2, random);
        }
        let blocks = contents.iter().map(|(kind, number, content)| block(*kind, *number, content));
        let bytes: Vec<u8> = std::iter::once(header(2)).chain(blocks).flatten().collect();
        try_all(&bytes, &format!("round {round}"));
    }
}

/// `TARE_FUZZ_ROUNDS` asks for more than the gate has time for.
fn rounds() -> u64 {
    std::env::var("TARE_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(150)
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let end = (at + random.below(200) as usize).min(bytes.len());
    match random.below(6) {
        0 => bytes.truncate(at.max(1)),
        1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        2 if at < bytes.len() => bytes[at] = random.below(256) as u8,
        3 => drop(bytes.drain(at..end)),
        4 => {
            let piece = bytes[at..end].to_vec();
            let to = random.below(bytes.len() as u64 + 1) as usize;
            bytes.splice(to..to, piece);
        }
        _ => bytes[at..end].fill(0xff),
    }
    if bytes.is_empty() {
        bytes.push(0);
    }
}

/// A recording with blocks of many writes.
fn growing(writes: usize, steps: usize) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let mut run = Run::new(5);
    for _ in 0..writes {
        run.go_on(steps);
        writer.write(&run.profile).unwrap();
    }
    writer.finish(&run.profile).unwrap()
}

/// Offsets, kinds and ends of all blocks, by the format's description and not by our reader.
pub fn blocks(bytes: &[u8]) -> Vec<(usize, u8, usize)> {
    let mut found = Vec::new();
    let mut at = 32;
    while bytes[at..].starts_with(b"\xf5TBk") {
        let stored = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().unwrap()) as usize;
        found.push((at, bytes[at + 4], at + 32 + stored));
        at += 32 + stored;
    }
    found
}

#[test]
fn any_one_damaged_block_costs_that_block_only() {
    let whole = growing(8, 40);
    let sound = read(&whole, &LoadOptions::default()).profile;
    for (start, kind, end) in blocks(&whole) {
        let mut bytes = whole.clone();
        bytes[end - 1] ^= 0x10;
        let loaded = read(&bytes, &LoadOptions::default());
        assert_eq!(loaded.profile.check(), Ok(()));
        if kind == 255 {
            // Without the index the blocks themselves are found.
            assert_eq!(dump(&loaded.profile), dump(&sound));
            continue;
        }
        let told = Warning::DamagedBlock { offset: start as u64, reason: "its checksum is wrong" };
        assert!(loaded.warnings.contains(&told), "{:?}", loaded.warnings);
        let damaged = |loss: &&tare_profile::Loss| loss.kind == LossKind::Damaged;
        assert!(loaded.profile.run.losses.iter().any(|loss| damaged(&loss)));
        if kind != 9 {
            // Whatever else is lost, no value is.
            for (id, series) in sound.all_series() {
                let other = loaded.profile.all_series().map(|(_, other)| other);
                let kept = other
                    .filter(|other| other.len() == series.len())
                    .any(|other| other.total() == series.total());
                assert!(kept, "kind {kind}: values of series {id:?} are lost");
            }
        }
    }
}

#[test]
fn values_of_lost_contexts_are_accounted_for() {
    let whole = growing(8, 40);
    let sound = read(&whole, &LoadOptions::default()).profile;
    let (.., end) = blocks(&whole).into_iter().find(|block| block.1 == 6).unwrap();
    let mut bytes = whole.clone();
    bytes[end - 1] ^= 1;
    let loaded = read(&bytes, &LoadOptions::default());
    assert_eq!(loaded.profile.series(SAMPLES).total(), sound.series(SAMPLES).total());
    let orphans = |w: &Warning| matches!(w, Warning::Orphans { table: "values and events", .. });
    assert!(loaded.warnings.iter().any(orphans), "{:?}", loaded.warnings);
    let damaged = loaded.profile.series(SAMPLES).rows().filter(|row| {
        let mut frames = loaded.profile.contexts.frames(row.context);
        let method = |frame| loaded.profile.frames.get(frame).method;
        frames.any(|frame| loaded.profile.method_name(method(frame)) == "[unknown: damaged]")
    });
    assert!(damaged.count() > 0);
}

/// What a field of an event names may be lost as well as the event's own stack.
#[test]
fn fields_that_name_lost_contexts_say_so() {
    let mut profile = Profile::new();
    let frame = profile.special("[held]");
    let kind = EventKind::new("lock", &[("owner's stack", FieldType::Context)]);
    let locks = profile.events_of(&kind);
    let stack = profile.contexts.stack([frame]);
    profile.events_mut(locks).push(Event::default(), &[FieldValue::Context(stack)]);
    let mut bytes = written(&profile);
    let (.., end) = blocks(&bytes).into_iter().find(|block| block.1 == 6).unwrap();
    bytes[end - 1] ^= 1;
    let loaded = read(&bytes, &LoadOptions::default());
    let orphans = Warning::Orphans { table: "values and events", rows: 1 };
    assert!(loaded.warnings.contains(&orphans), "{:?}", loaded.warnings);
    let (_, table) = loaded.profile.all_events().next().unwrap();
    let Some(FieldValue::Context(stack)) = table.field(0, 0) else { panic!("no stack") };
    let name = loaded.profile.innermost_name(stack);
    assert_eq!(name.as_deref(), Some("[unknown: damaged]"));
    assert_eq!(loaded.profile.check(), Ok(()));
}

#[test]
fn a_damaged_beginning_or_end_is_survived() {
    let whole = growing(4, 40);
    let sound = dump(&read(&whole, &LoadOptions::default()).profile);
    let mut beginning = whole.clone();
    beginning[..16].fill(0);
    let loaded = read(&beginning, &LoadOptions::default());
    assert_eq!(loaded.warnings[0], Warning::DamagedHeader);
    let series = loaded.profile.series(SAMPLES).total();
    assert_eq!(series, read(&whole, &LoadOptions::default()).profile.series(SAMPLES).total());
    let mut end = whole.clone();
    end.truncate(whole.len() - 1);
    let loaded = read(&end, &LoadOptions::default());
    assert_eq!((loaded.warnings, dump(&loaded.profile)), (vec![Warning::NoEnd], sound));
}

#[test]
fn rubbish_between_blocks_is_skipped_and_told() {
    let whole = growing(4, 40);
    let (start, ..) = blocks(&whole)[5];
    let mut bytes = whole.clone();
    bytes.splice(start..start, b"rubbish \xf5TBk more rubbish".repeat(10_000));
    let loaded = read(&bytes, &LoadOptions::default());
    assert_eq!(
        loaded.warnings,
        [Warning::Skipped { offset: start as u64, bytes: (bytes.len() - whole.len()) as u64 }]
    );
    let sound = read(&whole, &LoadOptions::default()).profile;
    assert_eq!(loaded.profile.series(SAMPLES), sound.series(SAMPLES));
}

#[test]
fn blocks_of_another_file_are_not_mixed_in() {
    let (one, other) = (written(&made(1, 50)), written(&made(2, 50)));
    let (start, _, end) = blocks(&other)[0];
    let mut bytes = one.clone();
    bytes.splice(32..32, other[start..end].to_vec());
    let loaded = read(&bytes, &LoadOptions::default());
    assert_eq!(loaded.profile.strings.get(tare_profile::StringId::new(1)), "[dropped]");
    let skipped = Warning::Skipped { offset: 32, bytes: (end - start) as u64 };
    assert_eq!(loaded.warnings, [skipped]);
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b""[..], b"PK\x03\x04", &[0; 5000], "text ".repeat(50_000).as_bytes()] {
        let refused = Recording::new(Cursor::new(bytes)).err();
        assert!(matches!(refused, Some(ReadError::NotARecording)));
    }
}

#[test]
fn memory_is_bounded() {
    let profile = made(1, 3000);
    let bytes = written(&profile);
    let options = LoadOptions { memory_limit: Some(50_000), ..LoadOptions::default() };
    let loaded = read(&bytes, &options);
    assert!(loaded.warnings.contains(&Warning::TooLarge { limit: 50_000 }));
    assert!(loaded.profile.memory() < 400_000, "{}", loaded.profile.memory());
}
