//! Opening a recording: by its index, or without one by hopping from block to block and looking for
//! the next whole one after damage. Memory is bounded by the largest block, whatever a file claims.

use crate::VERSION;
use crate::block::{
    self, BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, FILE_HEADER, Kind, TRAILER, read_trailer,
};
use crate::bytes::Malformed;
use crate::chunk::Chunk;
use crate::decode::{Decoder, Refusal, series_infos};
use crate::error::{ReadError, Warning};
use crate::load::{LoadOptions, Loaded};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use tare_profile::{LossKind, RunInfo, SeriesInfo};

/// A recording that was opened, of which nothing is loaded yet.
pub struct Recording<R> {
    input: R,
    size: u64,
    /// The file's version; the first if its beginning is damaged, since that is read as all are.
    version: u16,
    blocks: Vec<Place>,
    warnings: Vec<Warning>,
    /// The bytes that were read last while looking for blocks, and where they are from.
    window: Vec<u8>,
    window_at: u64,
}

/// What is known of a recording without loading it.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub run: RunInfo,
    /// By number; `None` where a description is lost.
    pub series: Vec<Option<SeriesInfo>>,
    /// How many rows each series has, by number; zeros in a file without an index.
    pub rows: Vec<u64>,
    /// Whether some of these facts could not be read.
    pub damaged: bool,
}

/// Where a block is, and what is known of it before it is read.
#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    /// Where the next one begins. Blocks do not overlap: a few bytes must not be read as many.
    end: u64,
    kind: u8,
    number: u16,
    /// Rows and times, if the index told.
    rows: u64,
    times: Option<(u64, u64)>,
}

/// How much is read at once in search of the next block, and to look at a header.
const SEARCH: usize = 1 << 16;
const LOOK: usize = 1 << 12;

impl Recording<File> {
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Recording::new(File::open(path)?)
    }
}

impl<R: Read + Seek> Recording<R> {
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let size = input.seek(SeekFrom::End(0))?;
        let mut recording = Recording {
            input,
            size,
            version: 1,
            blocks: Vec::new(),
            warnings: Vec::new(),
            window: Vec::new(),
            window_at: 0,
        };
        let header = match recording.read_array::<FILE_HEADER>(0)? {
            Some(bytes) => block::read_file_header(&bytes),
            None => None,
        };
        let Some((version, file)) = header else {
            // Perhaps only the beginning is damaged. Blocks tell which file they are of.
            recording.scan(None)?;
            if recording.blocks.is_empty() {
                return Err(ReadError::NotARecording);
            }
            recording.warnings.insert(0, Warning::DamagedHeader);
            return Ok(recording);
        };
        if version > VERSION {
            return Err(ReadError::TooNew { version });
        }
        recording.version = version;
        if !recording.read_index(file)? {
            recording.scan(Some(file))?;
        }
        Ok(recording)
    }

    /// What was wrong with the file as far as it was looked at.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The run's facts and the list of series: a few small blocks, however large the file.
    pub fn summary(&mut self) -> Result<Summary, ReadError> {
        let options = LoadOptions { merge: true, events: false, ..LoadOptions::default() };
        let mut decoder = Decoder::new(&options, options.limit(self.size));
        let mut summary = Summary::default();
        // A later block usually has the same again; loading tells exactly what is damaged.
        let mut damaged = false;
        let mut note = |taken: Result<(), Refusal>| damaged |= taken.is_err();
        for place in self.blocks.clone() {
            match Kind::from_number(place.kind) {
                Some(kind @ (Kind::Run | Kind::Losses | Kind::Facts)) => {
                    let taken = self.with_chunk(place, |chunk| decoder.take(kind, 0, chunk))?;
                    note(taken);
                }
                Some(Kind::Series) => {
                    let taken = self.with_chunk(place, |chunk| {
                        for (row, info) in (chunk.first_row..).zip(series_infos(chunk)?) {
                            if let Ok(number) = u16::try_from(row) {
                                *at(&mut summary.series, number) = Some(info);
                            }
                        }
                        Ok(())
                    })?;
                    note(taken);
                }
                Some(Kind::Values) => *at(&mut summary.rows, place.number) += place.rows,
                _ => {}
            }
        }
        summary.run = decoder.finish(self.version).0.run;
        summary.damaged = damaged;
        let series = summary.series.len().max(summary.rows.len());
        summary.series.resize(series, None);
        summary.rows.resize(series, 0);
        Ok(summary)
    }

    /// Loads what is asked for. Damaged blocks are left out, and told among the warnings and the
    /// profile's losses.
    pub fn load(&mut self, options: &LoadOptions) -> Result<Loaded, ReadError> {
        let limit = options.limit(self.size);
        let mut decoder = Decoder::new(options, limit);
        let mut warnings = self.warnings.clone();
        let summed =
            if options.merge && options.time.is_none() { self.sound_sums()? } else { Vec::new() };
        let (mut damaged, mut unknown) = (0_u64, 0_u64);
        for place in self.blocks.clone() {
            let Some(kind) = Kind::from_number(place.kind) else {
                unknown += 1;
                continue;
            };
            let instead = match kind {
                Kind::Values => summed.contains(&place.number),
                Kind::Sums => !summed.contains(&place.number),
                _ => false,
            };
            let left_out = kind == Kind::Events && decoder.leaves_out(place.number);
            if instead || left_out || !is_wanted(&place, kind, options) {
                continue;
            }
            match self.with_chunk(place, |chunk| decoder.take(kind, place.number, chunk))? {
                Ok(()) => {}
                Err(Refusal::Malformed(Malformed(reason))) => {
                    damaged += 1;
                    warnings.push(Warning::DamagedBlock { offset: place.offset, reason });
                }
                Err(Refusal::TooLarge) => {
                    warnings.push(Warning::TooLarge { limit });
                    break;
                }
            }
        }
        if warnings.contains(&Warning::NoEnd) {
            decoder.without_end();
        }
        let (mut profile, orphans) = decoder.finish(self.version);
        warnings.extend(orphans);
        if unknown > 0 {
            warnings.push(Warning::Unknown { blocks: unknown });
        }
        if let Some(first) = warnings.iter().find(|warning| warning.is_damage()) {
            let count = damaged.max(1);
            let reason = format!("the recording is damaged: {first}");
            profile.run.lose(LossKind::Damaged, "blocks of the recording", count, &reason);
        }
        Ok(Loaded { profile, warnings })
    }

    /// The series whose sums are all there and sound, so that their values need not be read.
    fn sound_sums(&mut self) -> Result<Vec<u16>, ReadError> {
        let (mut sound, mut spoilt) = (Vec::new(), Vec::new());
        for place in self.blocks.clone() {
            // Without the index nobody knows whether one is missing.
            if place.kind == Kind::Sums as u8 && place.times.is_some() {
                let good = self.with_chunk(place, |_| Ok(()))?.is_ok();
                if good { sound.push(place.number) } else { spoilt.push(place.number) }
            }
        }
        sound.sort_unstable();
        sound.dedup();
        sound.retain(|number| !spoilt.contains(number));
        Ok(sound)
    }

    /// Reads, checks and unpacks a block. The outer error is the file's, the inner the block's.
    fn with_chunk(
        &mut self,
        place: Place,
        mut take: impl FnMut(&Chunk<'_>) -> Result<(), Refusal>,
    ) -> Result<Result<(), Refusal>, ReadError> {
        let header = match self.read_array(place.offset)? {
            Some(bytes) => BlockHeader::from_bytes(&bytes),
            None => None,
        };
        let same =
            |header: &BlockHeader| (header.kind, header.number) == (place.kind, place.number);
        let Some(header) = header.filter(same) else {
            return Ok(Err(Malformed("its header is damaged").into()));
        };
        let start = place.offset + BLOCK_HEADER as u64;
        if place.end.min(self.size).saturating_sub(start) < u64::from(header.stored) {
            return Ok(Err(Malformed("it overlaps the next one").into()));
        }
        let mut stored = vec![0; header.stored as usize];
        self.input.seek(SeekFrom::Start(start))?;
        self.input.read_exact(&mut stored)?;
        let content = match header.unpack(&stored) {
            Ok(content) => content,
            Err(malformed) => return Ok(Err(malformed.into())),
        };
        Ok(Chunk::parse(&content).map_err(Refusal::from).and_then(|chunk| take(&chunk)))
    }

    /// Whether there is an index, all of it sound.
    fn read_index(&mut self, file: u32) -> Result<bool, ReadError> {
        let Some(end) = self.size.checked_sub(TRAILER as u64) else { return Ok(false) };
        let trailer = self.read_array(end)?.and_then(|bytes| read_trailer(&bytes, file));
        let Some(mut offset) = trailer.filter(|offset| *offset < end) else { return Ok(false) };
        let index = offset;
        let mut blocks: Vec<Place> = Vec::new();
        while offset < end {
            let header = self.read_array(offset)?.and_then(|bytes| BlockHeader::from_bytes(&bytes));
            let Some(header) = header.filter(|header| header.kind == Kind::Index as u8) else {
                return Ok(false);
            };
            let (kind, number) = (header.kind, header.number);
            let place = Place { offset, end, kind, number, rows: 0, times: None };
            let read = self.with_chunk(place, |chunk| {
                blocks.extend(index_entries(chunk, index)?);
                Ok(())
            })?;
            if read.is_err() {
                return Ok(false);
            }
            offset += BLOCK_HEADER as u64 + u64::from(header.stored);
        }
        for at in 1..blocks.len() {
            blocks[at - 1].end = blocks[at].offset;
        }
        let sorted = blocks.is_sorted_by(|a, b| a.offset < b.offset);
        let sound = offset == end && sorted;
        self.blocks = if sound { blocks } else { Vec::new() };
        Ok(sound)
    }

    /// Finds all whole blocks without an index.
    fn scan(&mut self, file: Option<u32>) -> Result<(), ReadError> {
        self.blocks.clear();
        let mut file = file;
        let mut offset = if file.is_some() { FILE_HEADER as u64 } else { 0 };
        let mut skipped_from = None;
        let mut ended = false;
        while offset < self.size {
            let header = self.read_array(offset)?.and_then(|bytes| BlockHeader::from_bytes(&bytes));
            let header = header.filter(|header| {
                let whole = self.size - offset - BLOCK_HEADER as u64 >= u64::from(header.stored);
                whole && file.is_none_or(|file| file == header.file)
            });
            if let Some(header) = header {
                self.note_skipped(skipped_from.take(), offset);
                file = Some(header.file);
                let end = offset + BLOCK_HEADER as u64 + u64::from(header.stored);
                if header.kind != Kind::Index as u8 {
                    let BlockHeader { kind, number, .. } = header;
                    self.blocks.push(Place { offset, end, kind, number, rows: 0, times: None });
                }
                offset = end;
                continue;
            }
            let trailer = self.read_array(offset)?;
            if trailer.is_some_and(|bytes| file.is_some_and(|f| read_trailer(&bytes, f).is_some()))
            {
                ended = true;
                self.note_skipped(skipped_from.take(), offset);
                offset += TRAILER as u64;
                continue;
            }
            skipped_from = skipped_from.or(Some(offset));
            offset = self.next_magic(offset + 1)?;
        }
        // A torn last block is what a stopped writer leaves, and no damage.
        if ended {
            self.note_skipped(skipped_from, self.size);
        } else {
            self.warnings.push(Warning::NoEnd);
        }
        Ok(())
    }

    fn note_skipped(&mut self, from: Option<u64>, to: u64) {
        if let Some(offset) = from {
            self.warnings.push(Warning::Skipped { offset, bytes: to - offset });
        }
    }

    /// Where the next block may begin, or the end of the file.
    fn next_magic(&mut self, from: u64) -> Result<u64, ReadError> {
        let mut offset = from;
        loop {
            let text = self.look(offset, BLOCK_HEADER, SEARCH)?;
            let read = text.len() as u64;
            let starts = [&BLOCK_MAGIC[..], b"\x89TAR"];
            let found = text.windows(4).position(|window| starts.contains(&window));
            match found {
                Some(at) => return Ok(offset + at as u64),
                None if offset + read >= self.size => return Ok(self.size),
                // The last three bytes may be the beginning of one.
                None => offset += read - 3,
            }
        }
    }

    /// `None` if the file ends before.
    fn read_array<const N: usize>(&mut self, offset: u64) -> io::Result<Option<[u8; N]>> {
        Ok(self.look(offset, N, LOOK)?.first_chunk().copied())
    }

    /// At least `least` bytes from an offset on, if the file has them; more if they are at hand.
    fn look(&mut self, offset: u64, least: usize, at_once: usize) -> io::Result<&[u8]> {
        let have = self.window_at + self.window.len() as u64;
        let wanted = self.size.min(offset.saturating_add(least as u64));
        if offset < self.window_at || wanted > have {
            self.window.resize(at_once, 0);
            self.window_at = offset;
            self.input.seek(SeekFrom::Start(offset))?;
            let read = read_up_to(&mut self.input, &mut self.window)?;
            self.window.truncate(read);
        }
        let into = usize::try_from(offset - self.window_at).unwrap_or(usize::MAX);
        Ok(self.window.get(into..).unwrap_or_default())
    }
}

/// The place for a number in a list that grows as needed; numbers have sixteen bits.
fn at<T: Clone + Default>(list: &mut Vec<T>, number: u16) -> &mut T {
    let number = usize::from(number);
    if list.len() <= number {
        list.resize(number + 1, T::default());
    }
    &mut list[number]
}

fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match input.read(&mut buffer[read..])? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

/// `index` is where the index begins, and all other blocks end.
fn index_entries(chunk: &Chunk<'_>, index: u64) -> Result<Vec<Place>, Malformed> {
    let (offsets, kinds) = (chunk.numbers("offset")?, chunk.numbers("kind")?);
    let (numbers, rows) = (chunk.numbers("number")?, chunk.numbers("rows")?);
    let (first, last) = (chunk.numbers("first-time")?, chunk.numbers("last-time")?);
    let small = Malformed("an entry of the index is out of range");
    (0..chunk.rows)
        .map(|at| {
            let offset = Some(offsets[at]).filter(|offset| *offset < index).ok_or(small)?;
            let kind = u8::try_from(kinds[at]).map_err(|_| small)?;
            let number = u16::try_from(numbers[at]).map_err(|_| small)?;
            let rows = rows[at].min(crate::chunk::MAX_ROWS);
            let times = Some((first[at], last[at]));
            Ok(Place { offset, end: index, kind, number, rows, times })
        })
        .collect()
}

/// Whether a block has anything that was asked for, as far as can be told without reading it.
fn is_wanted(place: &Place, kind: Kind, options: &LoadOptions) -> bool {
    let in_time = match (&options.time, place.times) {
        (Some(wanted), Some((first, last))) => {
            let lasts = options.lasting && kind == Kind::Events;
            first < wanted.end && (lasts || last >= wanted.start)
        }
        _ => true,
    };
    match kind {
        Kind::Values | Kind::Sums => {
            let wanted = options.series.as_ref().is_none_or(|list| list.contains(&place.number));
            wanted && in_time
        }
        Kind::Events => options.events && in_time,
        _ => true,
    }
}
