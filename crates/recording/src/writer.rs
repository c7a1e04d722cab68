//! Writing a recording: what is new in a profile goes to the end of the file, block by block, each
//! in one write. What a row refers to is written before it, so that any prefix of the file makes
//! sense.

use crate::VERSION;
use crate::block::{self, Kind, MAX_CONTENT};
use crate::chunk::{ChunkWriter, MAX_ROWS};
use crate::encode;
use crate::error::WriteError;
use crate::run;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tare_profile::{Merger, Profile, RunInfo, Thread, TimeAxis};

/// Writes one profile, as it grows.
///
/// Call [`Writer::write`] about once a second, and [`Writer::finish`] at the end. In between the
/// profile may let go of rows that were written ([`Profile::forget_rows`]).
pub struct Writer<W: Write> {
    out: W,
    offset: u64,
    file: u32,
    sequence: u32,
    failed: bool,
    entries: Vec<Entry>,
    written: Written,
    told: Option<&'static AtomicU64>,
}

/// How far each table has been written.
#[derive(Default)]
struct Written {
    run: Option<RunInfo>,
    strings: usize,
    methods: usize,
    frames: usize,
    contexts: usize,
    threads: Vec<Thread>,
    /// By series: how many rows, counted from the beginning of the run.
    values: Vec<u64>,
    /// By series: what they come to, for series with times as long as it takes little memory.
    sums: Vec<Option<Merger>>,
    events: Vec<u64>,
}

/// Sums that would take more than this are not kept: a recorder is a guest too.
const MOST_FOR_SUMS: usize = 64 << 20;
/// Sums are worth storing if they are fewer than the rows by this factor.
const WORTH: u64 = 4;

/// What the index says of a block.
struct Entry {
    offset: u64,
    kind: Kind,
    number: u16,
    first_row: u64,
    rows: usize,
    times: Option<(u64, u64)>,
}

/// What is in a block that is about to be written.
struct Part {
    kind: Kind,
    number: u16,
    first_row: u64,
    rows: usize,
    times: Option<(u64, u64)>,
}

impl Part {
    fn of(kind: Kind, rows: &Range<usize>) -> Self {
        Part { kind, number: 0, first_row: rows.start as u64, rows: rows.len(), times: None }
    }
}

impl Writer<File> {
    /// Creates the file, or empties the one that is there.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        Writer::new(File::create(path)?)
    }

    /// Makes sure that a crash of the whole machine loses nothing of what was written so far. The
    /// crash of a process loses nothing anyway.
    pub fn sync(&self) -> io::Result<()> {
        self.out.sync_data()
    }
}

impl<W: Write> Writer<W> {
    /// Begins a recording. Give a sink without a buffer: each block is one write of its own.
    pub fn new(mut out: W) -> Result<Self, WriteError> {
        let file = RandomState::new().hash_one(0_u8) as u32;
        let header = block::file_header(VERSION, file);
        out.write_all(&header)?;
        Ok(Writer {
            out,
            offset: header.len() as u64,
            file,
            sequence: 0,
            failed: false,
            entries: Vec::new(),
            written: Written::default(),
            told: None,
        })
    }

    /// Appends everything that is new since the last call. It must always be the same profile.
    ///
    /// After an error the file keeps what was written before, and nothing more can be written.
    pub fn write(&mut self, profile: &Profile) -> Result<(), WriteError> {
        if self.failed {
            return Err(WriteError::FailedBefore);
        }
        self.failed = true;
        self.write_names(profile)?;
        self.write_threads(profile)?;
        self.write_values(profile)?;
        self.write_events(profile)?;
        self.write_run(profile, false)?;
        self.out.flush()?;
        self.failed = false;
        Ok(())
    }

    /// Appends what is new, and the index by which the file opens quickly.
    pub fn finish(mut self, profile: &Profile) -> Result<W, WriteError> {
        self.write(profile)?;
        self.write_run(profile, true)?;
        self.write_sums()?;
        let start = self.offset;
        let entries = std::mem::take(&mut self.entries);
        for (number, entries) in entries.chunks(MAX_ROWS as usize).enumerate() {
            let first_row = number as u64 * MAX_ROWS;
            let content = ChunkWriter::new(first_row, entries.len())
                .numbers("offset", entries.iter().map(|entry| entry.offset))
                .numbers("kind", entries.iter().map(|entry| u64::from(entry.kind as u8)))
                .numbers("number", entries.iter().map(|entry| u64::from(entry.number)))
                .numbers("first-row", entries.iter().map(|entry| entry.first_row))
                .numbers("rows", entries.iter().map(|entry| entry.rows as u64))
                .numbers("first-time", entries.iter().map(|e| e.times.map_or(0, |t| t.0)))
                .numbers("last-time", entries.iter().map(|e| e.times.map_or(u64::MAX, |t| t.1)))
                .finish();
            let rows = entries.len();
            self.block(
                Part { kind: Kind::Index, number: 0, first_row, rows, times: None },
                &content,
            )?;
        }
        self.out.write_all(&block::trailer(start, self.file))?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Adds the bytes of each block to this number, for whoever waits for all of them.
    pub fn tell(&mut self, written: &'static AtomicU64) {
        self.told = Some(written);
    }

    /// Where the recording goes.
    pub fn sink(&self) -> &W {
        &self.out
    }

    /// Bytes written so far.
    pub fn size(&self) -> u64 {
        self.offset
    }

    fn write_names(&mut self, profile: &Profile) -> Result<(), WriteError> {
        // Row 0 of strings and of contexts is the same in every profile, and not stored.
        self.written.strings = self.written.strings.max(1);
        self.written.contexts = self.written.contexts.max(1);
        while self.written.strings < profile.strings.len() {
            let from = self.written.strings;
            let rows = from..from + encode::strings_that_fit(profile, from, MAX_ROWS as usize);
            self.block(Part::of(Kind::Strings, &rows), &encode::strings(profile, rows.clone()))?;
            self.written.strings = rows.end;
        }
        for rows in pieces(self.written.methods..profile.methods.len()) {
            self.block(Part::of(Kind::Methods, &rows), &encode::methods(profile, rows.clone()))?;
            self.written.methods = rows.end;
        }
        for rows in pieces(self.written.frames..profile.frames.len()) {
            self.block(Part::of(Kind::Frames, &rows), &encode::frames(profile, rows.clone()))?;
            self.written.frames = rows.end;
        }
        for rows in pieces(self.written.contexts..profile.contexts.len()) {
            self.block(Part::of(Kind::Contexts, &rows), &encode::contexts(profile, rows.clone()))?;
            self.written.contexts = rows.end;
        }
        Ok(())
    }

    /// Threads get names and end while they are being recorded: rows that changed are written
    /// again.
    fn write_threads(&mut self, profile: &Profile) -> Result<(), WriteError> {
        let changed: Vec<(usize, &Thread)> = profile
            .threads
            .iter()
            .map(|(id, thread)| (id.index(), thread))
            .filter(|(row, thread)| match self.written.threads.get(*row) {
                Some(known) => known != *thread,
                None => *row != 0 || **thread != Thread::default(),
            })
            .collect();
        for rows in changed.chunks(MAX_ROWS as usize) {
            let part = Part::of(Kind::Threads, &(0..rows.len()));
            self.block(part, &encode::threads(rows))?;
        }
        let known = self.written.threads.len();
        for (row, thread) in changed.into_iter().filter(|(row, _)| *row < known) {
            self.written.threads[row] = thread.clone();
        }
        let new = profile.threads.iter().skip(known).map(|(_, thread)| thread.clone());
        self.written.threads.extend(new);
        Ok(())
    }

    fn write_values(&mut self, profile: &Profile) -> Result<(), WriteError> {
        for (number, (_, series)) in profile.all_series().enumerate() {
            let id = numbered(number, "series")?;
            if self.written.values.len() == number {
                let part = Part::of(Kind::Series, &(number..number + 1));
                self.block(part, &encode::series(number, series))?;
                self.written.values.push(series.first_row());
                let timed = series.info().time != TimeAxis::None && series.first_row() == 0;
                self.written.sums.push(timed.then(|| Merger::new(series.info().clone())));
            }
            let from = self.written.values[number].saturating_sub(series.first_row()) as usize;
            if let Some(sums) = &mut self.written.sums[number] {
                series.rows_from(from).for_each(|row| sums.add(row));
                if sums.memory() > MOST_FOR_SUMS {
                    self.written.sums[number] = None;
                }
            }
            for rows in pieces(from..series.len()) {
                let times = span(series.rows_in(rows.clone()).map(|row| row.time));
                let first_row = series.first_row() + rows.start as u64;
                let part = Part { number: id, times, first_row, ..Part::of(Kind::Values, &rows) };
                self.block(part, &encode::values(series, rows))?;
            }
            self.written.values[number] = series.first_row() + series.len() as u64;
        }
        Ok(())
    }

    /// With these a report of the whole run reads a hundredth of a large file.
    fn write_sums(&mut self) -> Result<(), WriteError> {
        for (number, sums) in std::mem::take(&mut self.written.sums).into_iter().enumerate() {
            let Some(sums) = sums.map(Merger::finish) else { continue };
            if (sums.len() as u64).saturating_mul(WORTH) > self.written.values[number] {
                continue;
            }
            let id = numbered(number, "series")?;
            for rows in pieces(0..sums.len()) {
                let part = Part { number: id, ..Part::of(Kind::Sums, &rows) };
                self.block(part, &encode::values(&sums, rows))?;
            }
        }
        Ok(())
    }

    fn write_events(&mut self, profile: &Profile) -> Result<(), WriteError> {
        for (number, (_, table)) in profile.all_events().enumerate() {
            let id = numbered(number, "kinds of events")?;
            if self.written.events.len() == number {
                let part = Part::of(Kind::EventKinds, &(number..number + 1));
                self.block(part, &encode::event_kind(number, table))?;
                let fields = 0..table.kind().fields.len();
                let part = Part::of(Kind::EventFields, &fields);
                self.block(part, &encode::event_fields(number, table))?;
                self.written.events.push(table.first_row());
            }
            let from = self.written.events[number].saturating_sub(table.first_row()) as usize;
            for rows in pieces(from..table.len()) {
                let times = span(table.times().range(rows.clone()));
                let first_row = table.first_row() + rows.start as u64;
                let part = Part { number: id, times, first_row, ..Part::of(Kind::Events, &rows) };
                self.block(part, &encode::events(table, rows))?;
            }
            self.written.events[number] = table.first_row() + table.len() as u64;
        }
        Ok(())
    }

    /// What is known of the run is small and written whole when it changed; the last ones count. A
    /// class path is not so small that it should be written every second: unless it is the end, a
    /// duration alone must have grown by an eighth.
    fn write_run(&mut self, profile: &Profile, end: bool) -> Result<(), WriteError> {
        let run = &profile.run;
        let known = self.written.run.take();
        let is_new = known.is_none();
        let before = known.unwrap_or_default();
        if before.losses != run.losses {
            self.write_losses(run)?;
        }
        if before.facts != run.facts {
            let rows = 0..run::fact_rows(&run.facts);
            self.block(Part::of(Kind::Facts, &rows), &run::encode_facts(&run.facts))?;
        }
        let mut now = run.clone();
        let same = RunInfo {
            duration: run.duration,
            losses: run.losses.clone(),
            facts: run.facts.clone(),
            ..before.clone()
        };
        let longer = run.duration.checked_sub(before.duration);
        let little = if end { 0 } else { before.duration / 8 };
        if !is_new && *run == same && longer.is_some_and(|longer| longer <= little) {
            now.duration = before.duration;
        } else {
            self.block(Part::of(Kind::Run, &(0..1)), &run::encode_run(run))?;
        }
        self.written.run = Some(now);
        Ok(())
    }

    fn write_losses(&mut self, run: &RunInfo) -> Result<(), WriteError> {
        // The first row tells a reader that the list begins anew.
        let mut first = 0;
        for losses in run.losses.chunks(2048) {
            let part = Part::of(Kind::Losses, &(first..first + losses.len()));
            self.block(part, &run::encode_losses(first, losses))?;
            first += losses.len();
        }
        if run.losses.is_empty() {
            // Nothing is missing any more: a list of no rows takes the place of the last one.
            self.block(Part::of(Kind::Losses, &(0..0)), &run::encode_losses(0, &[]))?;
        }
        Ok(())
    }

    fn block(&mut self, part: Part, content: &[u8]) -> Result<(), WriteError> {
        debug_assert!(content.len() <= MAX_CONTENT, "{:?} of {} bytes", part.kind, content.len());
        let bytes = block::pack(part.kind, part.number, self.sequence, self.file, content);
        self.out.write_all(&bytes)?;
        if part.kind != Kind::Index {
            let Part { kind, number, first_row, rows, times } = part;
            self.entries.push(Entry { offset: self.offset, kind, number, first_row, rows, times });
        }
        self.offset += bytes.len() as u64;
        if let Some(told) = self.told {
            told.fetch_add(bytes.len() as u64, Relaxed);
        }
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }
}

/// Rows in pieces that fit into a chunk.
fn pieces(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let step = MAX_ROWS as usize;
    rows.clone().step_by(step).map(move |start| start..rows.end.min(start + step))
}

fn span(times: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
    times.fold(None, |span, time| match span {
        None => Some((time, time)),
        Some((first, last)) => Some((time.min(first), time.max(last))),
    })
}

fn numbered(number: usize, what: &'static str) -> Result<u16, WriteError> {
    u16::try_from(number).map_err(|_| WriteError::TooMany { what })
}
