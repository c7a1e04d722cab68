//! Following a recording while it grows: each poll reads the blocks that are new, and no others, so
//! that following costs what comes, however long the recording is. Who follows takes the rows out of
//! the profile and lets go of them; names, contexts and threads stay.

use crate::VERSION;
use crate::block::{self, BLOCK_HEADER, BlockHeader, FILE_HEADER, Kind};
use crate::chunk::Chunk;
use crate::decode::{Decoder, Refusal};
use crate::error::ReadError;
use crate::load::LoadOptions;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use tare_profile::Profile;

/// Bytes of the file that one poll reads: who comes late to a long recording takes it in pieces.
const AT_ONCE: u64 = 4 << 20;

/// Bytes of memory that the rows of one poll may take.
const BUDGET: u64 = 512 << 20;

static ALL: LoadOptions = LoadOptions {
    series: None,
    time: None,
    merge: false,
    events: true,
    without: Vec::new(),
    lasting: false,
    memory_limit: None,
};

/// What a poll found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Polled {
    /// All that there is by now was read.
    UpToNow,
    /// There is more, to be taken by another poll.
    More,
    /// The recording is complete, or cannot be read from here on. Nothing more will come.
    Ended,
}

/// A recording that is read as it grows.
pub struct Follower<R> {
    input: R,
    /// The number in the header of the file and of its blocks.
    file: u32,
    offset: u64,
    decoder: Decoder<'static>,
    /// Blocks that could not be read.
    damaged: u64,
}

impl Follower<File> {
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Follower::new(File::open(path)?)
    }
}

impl<R: Read + Seek> Follower<R> {
    /// The header of the file must be there.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let mut header = [0; FILE_HEADER];
        input.seek(SeekFrom::Start(0))?;
        match input.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(ReadError::NotARecording);
            }
            read => read?,
        }
        let Some((version, file)) = block::read_file_header(&header) else {
            return Err(ReadError::NotARecording);
        };
        if version > VERSION {
            return Err(ReadError::TooNew { version });
        }
        let (offset, decoder) = (FILE_HEADER as u64, Decoder::new(&ALL, BUDGET));
        Ok(Follower { input, file, offset, decoder, damaged: 0 })
    }

    /// Takes in what is new.
    pub fn poll(&mut self) -> Result<Polled, ReadError> {
        self.decoder.refill(BUDGET);
        let size = self.input.seek(SeekFrom::End(0))?;
        let until = size.min(self.offset + AT_ONCE);
        while self.offset < until {
            let mut bytes = [0; BLOCK_HEADER];
            let left = size - self.offset;
            if left < BLOCK_HEADER as u64 {
                return Ok(Polled::UpToNow);
            }
            self.input.seek(SeekFrom::Start(self.offset))?;
            self.input.read_exact(&mut bytes)?;
            let header = BlockHeader::from_bytes(&bytes).filter(|header| header.file == self.file);
            // The trailer, or what is no block.
            let Some(header) = header else { return Ok(Polled::Ended) };
            if left - (BLOCK_HEADER as u64) < u64::from(header.stored) {
                // Its writer is not done with it.
                return Ok(Polled::UpToNow);
            }
            let mut stored = vec![0; header.stored as usize];
            self.input.read_exact(&mut stored)?;
            self.offset += BLOCK_HEADER as u64 + u64::from(header.stored);
            self.take(&header, &stored);
        }
        Ok(if until < size { Polled::More } else { Polled::UpToNow })
    }

    fn take(&mut self, header: &BlockHeader, stored: &[u8]) {
        // Sums have what the values have.
        let kind = match Kind::from_number(header.kind) {
            Some(Kind::Sums | Kind::Index) | None => return,
            Some(kind) => kind,
        };
        let taken = header
            .unpack(stored)
            .map_err(Refusal::from)
            .and_then(|content| self.decoder.take(kind, header.number, &Chunk::parse(&content)?));
        self.damaged += u64::from(taken.is_err());
    }

    /// Blocks that were damaged, and are missing.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// All names, and the rows that nobody has let go of yet.
    pub fn profile(&self) -> &Profile {
        self.decoder.profile()
    }

    /// The same, for who lets go of rows. Other tables are to be left as they are.
    pub fn profile_mut(&mut self) -> &mut Profile {
        self.decoder.profile_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;
    use std::sync::{Arc, Mutex};
    use tare_profile::{
        Event, EventKind, FieldValue, Row, SeriesId, SeriesInfo, ThreadId, TimeAxis, ValueKind,
    };

    /// A file that one writes and another reads.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Reading(Shared, u64);

    impl Read for Reading {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.0.lock().unwrap();
            let rest = bytes.get(self.1 as usize..).unwrap_or_default();
            let length = rest.len().min(out.len());
            out[..length].copy_from_slice(&rest[..length]);
            self.1 += length as u64;
            Ok(length)
        }
    }

    impl Seek for Reading {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            let length = self.0.0.lock().unwrap().len() as u64;
            self.1 = match to {
                SeekFrom::Start(at) => at,
                SeekFrom::End(by) => length.saturating_add_signed(by),
                SeekFrom::Current(by) => self.1.saturating_add_signed(by),
            };
            Ok(self.1)
        }
    }

    /// Adds a second of a run: a sample in a context of its own, and a marker.
    fn second(profile: &mut Profile, number: u64) {
        let frame = profile.special(&format!("[second {number}]"));
        let context = profile.contexts.stack([frame]);
        if number == 0 {
            let info = SeriesInfo::new("cpu", ValueKind::CpuTime).with_time(TimeAxis::Exact);
            profile.add_series(info);
        }
        let row = Row::new(context, ThreadId::UNKNOWN, 10 + number as i64).at(number * 1000);
        profile.series_mut(SeriesId::new(0)).push(row);
        let text = profile.strings.intern(&format!("marker {number}"));
        let table = profile.events_of(&EventKind::marker());
        let event = Event { time: number * 1000, context, ..Event::default() };
        profile.events_mut(table).push(event, &[FieldValue::Text(text)]);
    }

    #[test]
    fn each_poll_has_what_is_new_and_all_names() {
        let shared = Shared::default();
        let mut profile = Profile::new();
        let mut writer = Writer::new(shared.clone()).unwrap();
        let mut follower = Follower::new(Reading(shared.clone(), 0)).unwrap();
        assert_eq!(follower.poll().unwrap(), Polled::UpToNow);
        for number in 0..5 {
            second(&mut profile, number);
            writer.write(&profile).unwrap();
            profile.forget_rows();
            assert_eq!(follower.poll().unwrap(), Polled::UpToNow);
            let read = follower.profile();
            let rows: Vec<Row> = read.series(SeriesId::new(0)).rows().collect();
            assert_eq!(rows.len(), 1);
            assert_eq!((rows[0].value, rows[0].time), (10 + number as i64, number * 1000));
            assert_eq!(read.innermost_name(rows[0].context), Some(format!("[second {number}]")));
            let (_, table) = read.all_events().next().unwrap();
            let Some(FieldValue::Text(text)) = table.field(0, 0) else { panic!("no text") };
            assert_eq!((table.len(), read.strings.get(text)), (1, &*format!("marker {number}")));
            follower.profile_mut().forget_rows();
            assert_eq!(follower.poll().unwrap(), Polled::UpToNow, "nothing is read twice");
            assert!(follower.profile().series(SeriesId::new(0)).is_empty());
        }
        writer.finish(&profile).unwrap();
        assert_eq!(follower.poll().unwrap(), Polled::Ended);
        assert!(follower.profile().series(SeriesId::new(0)).is_empty(), "sums are no more rows");
        assert_eq!(follower.damaged(), 0);
    }

    #[test]
    fn a_block_that_is_not_whole_yet_is_waited_for_and_a_damaged_one_is_left_out() {
        let shared = Shared::default();
        let mut profile = Profile::new();
        let mut writer = Writer::new(shared.clone()).unwrap();
        second(&mut profile, 0);
        writer.write(&profile).unwrap();
        let whole = shared.0.lock().unwrap().clone();
        let growing = Shared::default();
        let mut follower = None;
        for length in 0..=whole.len() {
            *growing.0.lock().unwrap() = whole[..length].to_vec();
            match &mut follower {
                None => follower = Follower::new(Reading(growing.clone(), 0)).ok(),
                Some(follower) => assert_eq!(follower.poll().unwrap(), Polled::UpToNow),
            }
        }
        let read = follower.unwrap();
        assert_eq!(read.profile().series(SeriesId::new(0)).total(), 10);
        // Any byte of any block.
        for at in FILE_HEADER..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            *growing.0.lock().unwrap() = bytes;
            let mut follower = Follower::new(Reading(growing.clone(), 0)).unwrap();
            let polled = follower.poll().unwrap();
            assert!(follower.damaged() > 0 || polled == Polled::Ended, "byte {at}");
        }
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        let bytes = |bytes: &[u8]| Follower::new(io::Cursor::new(bytes.to_vec())).map(|_| ());
        assert!(matches!(bytes(b""), Err(ReadError::NotARecording)));
        assert!(matches!(bytes(&[7; 100]), Err(ReadError::NotARecording)));
    }
}
