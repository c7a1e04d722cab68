//! Chunk by chunk: header, where the events are, then types, constants and events in turn.

use super::cursor::Cursor;
use super::events::{Clock, Collected, Plan};
use super::metadata::Types;
use super::pools::Pools;
use super::{FORMAT, HEADER, MAGIC, METADATA_EVENT, POOL_EVENT};
use crate::error::ReadError;
use tare_profile::{LossKind, Profile};

/// The numbers at the beginning of a chunk.
struct Header {
    /// Zero while the chunk is being written.
    size: u64,
    metadata: u64,
    started: i64,
    duration: u64,
    ticks: i64,
    frequency: u64,
    compressed: bool,
}

impl Header {
    fn read(bytes: &[u8], base: usize) -> Result<Self, ReadError> {
        let problem = |offset, problem: &str| ReadError::malformed(FORMAT, base + offset, problem);
        if !bytes.starts_with(MAGIC) {
            return Err(problem(0, "no chunk where one should begin"));
        }
        let Some(header) = bytes.get(..HEADER) else {
            return Err(problem(0, "a header that is cut short"));
        };
        let long = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&header[at..at + 8]);
            u64::from_be_bytes(number)
        };
        let major = u16::from_be_bytes([header[4], header[5]]);
        let minor = u16::from_be_bytes([header[6], header[7]]);
        // Version 1 is JDK 8's, whose numbers of types and texts are laid out differently.
        if major != 2 {
            return Err(ReadError::Version { format: FORMAT, found: format!("{major}.{minor}") });
        }
        Ok(Header {
            size: long(8),
            metadata: long(24),
            started: long(32) as i64,
            duration: long(40),
            ticks: long(48) as i64,
            frequency: long(56),
            compressed: header[67] & 1 != 0,
        })
    }
}

/// What stands between the events of a chunk.
#[derive(Default)]
struct Outline {
    pools: Vec<usize>,
    metadata: Option<usize>,
    /// Where the events end, if that is before the end of the chunk.
    damage: Option<usize>,
}

pub fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    let mut collected = Collected::default();
    collected.profile.run.tool = "JDK Flight Recorder".to_owned();
    let mut base = 0;
    let mut first = None;
    let mut chunks = 0_u64;
    let mut failed: Option<ReadError> = None;
    while base < bytes.len() {
        let header = match Header::read(&bytes[base..], base) {
            Ok(header) => header,
            Err(error) if base == 0 => return Err(error),
            Err(error) => {
                let lost = (bytes.len() - base) as u64;
                let run = &mut collected.profile.run;
                run.lose(LossKind::Damaged, "bytes", lost, &error.reason());
                break;
            }
        };
        let whole = usize::try_from(header.size).ok().filter(|size| *size >= HEADER);
        let end = whole.and_then(|size| base.checked_add(size)).filter(|end| *end <= bytes.len());
        if end.is_none() {
            let reason = "the last chunk was not finished or is cut; what it holds was read";
            collected.profile.run.lose(LossKind::Damaged, "chunks", 1, reason);
        }
        let end = end.unwrap_or(bytes.len());
        let started = *first.get_or_insert(header.started);
        if let Err(error) = read_chunk(&bytes[base..end], base, &header, started, &mut collected) {
            let reason = error.reason();
            collected.profile.run.lose(LossKind::Damaged, "chunks", 1, &reason);
            failed = failed.or(Some(error));
        }
        let since = u64::try_from(header.started.saturating_sub(started)).unwrap_or(0);
        let run = &mut collected.profile.run;
        run.duration = run.duration.max(since.saturating_add(header.duration));
        chunks += 1;
        base = end;
    }
    collected.profile.run.started = first.filter(|started| *started != 0);
    match failed {
        Some(error) if chunks == 1 && collected.tracks.is_empty() => Err(error),
        _ => Ok(collected.finish()),
    }
}

fn read_chunk(
    chunk: &[u8],
    base: usize,
    header: &Header,
    started: i64,
    collected: &mut Collected,
) -> Result<(), ReadError> {
    let cursor = Cursor::new(chunk, base, header.compressed);
    let outline = outline(&cursor);
    // The header of a chunk that is still being written points nowhere.
    let pointed = usize::try_from(header.metadata).ok();
    let pointed = pointed.filter(|at| (HEADER..chunk.len()).contains(at));
    let places = [pointed, outline.metadata];
    let mut outcome = Err(cursor.problem("no metadata in a chunk"));
    for at in places.into_iter().flatten() {
        outcome = Types::read(cursor.at(at));
        if outcome.is_ok() {
            break;
        }
    }
    let mut pools = Pools::new(cursor.clone(), outcome?);
    let run = &mut collected.profile.run;
    for at in outline.pools {
        if let Err(error) = pools.add(cursor.at(at)) {
            run.lose(LossKind::Damaged, "constant pools", 1, &error.reason());
        }
    }
    if let Some(at) = outline.damage {
        let problem =
            cursor.at(at).problem("an event that is cut or of an impossible size").reason();
        run.lose(LossKind::Damaged, "bytes", (chunk.len() - at) as u64, &problem);
    }
    let plans: Vec<Option<Plan>> =
        (0..).zip(&pools.types.rows).map(|(n, t)| Plan::of(n, t)).collect();
    let nanos = u64::try_from(header.started.saturating_sub(started)).unwrap_or(0);
    let clock = Clock { ticks: header.ticks, nanos, frequency: header.frequency };
    let mut slots = Vec::new();
    let mut at = HEADER;
    collected.begin_chunk();
    while let Some(event) = Event::at(&cursor, at) {
        at = event.end;
        let Some(row) = pools.types.row(event.kind) else { continue };
        let Some(plan) = &plans[row] else { continue };
        if let Err(error) = collected.take(plan, event.start, &mut pools, clock, &mut slots) {
            let name = &pools.types.rows[row].name;
            let run = &mut collected.profile.run;
            // One word for all of them: a damaged chunk may have a million.
            let known = run.losses.iter_mut().find(|loss| loss.name == *name);
            match known {
                Some(loss) => loss.count += 1,
                None => run.lose(LossKind::Damaged, name, 1, &error.reason()),
            }
        }
    }
    Ok(())
}

/// An event: its type's number, where its first field stands, and where it ends.
struct Event {
    kind: i64,
    start: usize,
    end: usize,
}

impl Event {
    /// The event that begins at a place; `None` at the end, or if its size is impossible.
    fn at(chunk: &Cursor<'_>, at: usize) -> Option<Event> {
        let mut cursor = chunk.at(at);
        let remaining = cursor.remaining();
        let size = usize::try_from(cursor.int().ok()?).ok()?;
        let kind = cursor.long().ok()?;
        (size > 0 && size <= remaining).then(|| Event {
            kind,
            start: cursor.position(),
            end: at + size,
        })
    }
}

/// Goes from event to event by their sizes, for what must be known before the first is read.
fn outline(chunk: &Cursor<'_>) -> Outline {
    let mut outline = Outline::default();
    let mut at = HEADER;
    while let Some(event) = Event::at(chunk, at) {
        match event.kind {
            METADATA_EVENT => outline.metadata = Some(at),
            POOL_EVENT => outline.pools.push(at),
            _ => {}
        }
        at = event.end;
    }
    outline.damage = Some(at).filter(|at| *at < chunk.remaining());
    outline
}
