//! Keeps a recording on disk while it is being made: about once a second, what the sources have
//! measured since is appended to the file, which can be read at any moment. Whatever is killed
//! then, the tool, the JVM or both, the file lacks no more than what came after the last look.
//!
//! What is measured, and how, is the business of the [`Source`]s; what the file looks like that of
//! `tare-recording`.

use crate::backlog::Backlog;
use crate::completion;
use crate::error::{Context, Error, Result, refuse};
use crate::plan::{Link, Output};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_profile::{Profile, RunInfo};
use tare_recording::{WriteError, Writer};

/// Something that measures, and can tell at any moment what is new.
pub trait Source {
    /// Adds to the profile what was measured since the last look; `now` is in nanoseconds since the
    /// start of the run. Names, contexts and threads added before are still there, rows are not.
    fn look(&mut self, profile: &mut Profile, now: u64) -> Result<()>;

    /// Notes what is missing from all that was measured so far, in a run without any such notes.
    fn account(&self, run: &mut RunInfo);

    /// Adds what is true at the end only, to a profile with the contexts and threads of the last
    /// look: that of the recording when it ends, or of a copy of it meanwhile.
    fn complete(&self, _profile: &mut Profile) {}
}

/// From one look to the next, unless looking is dear.
const INTERVAL: Duration = Duration::from_secs(1);
/// A look is followed by a pause that is longer by this factor: large trees cost the machine, on
/// which the program runs too, a tenth of one processor at most.
const PAUSE: u32 = 9;
/// Rows of events that are written without waiting for more.
const WORTH_A_BLOCK: usize = 1 << 16;
/// A disk is called full when it has less than this left, or less than a fiftieth of its size. The
/// program needs it too.
const SPARE: u64 = 256 << 20;

/// A recording that is being made.
pub struct Recorder {
    /// None if it goes into no file.
    path: Option<PathBuf>,
    writer: Writer<Sink>,
    /// The same file, to have it on disk.
    file: Option<File>,
    profile: Profile,
    /// What is known of the run apart from what the sources tell.
    run: RunInfo,
    began: Instant,
    due: Instant,
    looked: Instant,
    longest: Duration,
    /// What waits for a slow link.
    backlog: Backlog,
}

/// A recording that has ended.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// None if it went into no file.
    pub path: Option<PathBuf>,
    /// In bytes.
    pub size: u64,
    /// The longest time between two looks, if looking was so dear that it was not about a second.
    pub stretched: Option<Duration>,
}

impl Recorder {
    /// Begins a recording, in place of a file that may be there. `began` is the zero of all times.
    pub fn begin(output: Output, run: RunInfo, began: Instant) -> Result<Self> {
        let mut profile = Profile::new();
        profile.run = run.clone();
        let path = match &output {
            Output::File(path) => Some(path.clone()),
            Output::Writer(_) | Output::Link(_) => None,
        };
        // It says whose it is from the beginning.
        let begun = create(output).and_then(|(mut writer, file)| {
            writer.tell(&completion::BYTES);
            writer.write(&profile)?;
            Ok((writer, file))
        });
        let (writer, file) = begun.with_context(|| cannot_write(path.as_deref()))?;
        let looked = Instant::now();
        let due = looked + INTERVAL;
        let (longest, backlog) = (INTERVAL, Backlog::default());
        Ok(Recorder { path, writer, file, profile, run, began, due, looked, longest, backlog })
    }

    /// The file that grows.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether it is time to look.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// Appends what is new. An error means that nothing more can be written; the file keeps what it
    /// has.
    pub fn append(&mut self, sources: &mut [&mut dyn Source]) -> Result<()> {
        self.leave_room()?;
        let start = Instant::now();
        let before = processor_time();
        let now = self.look_only(sources)?;
        if self.waits(now) {
            return Ok(());
        }
        self.account(sources, now);
        self.writer.write(&self.profile).map_err(|e| self.unwritten(e))?;
        self.profile.forget_rows();
        let cost = processor_time().saturating_sub(before);
        self.due = start + INTERVAL.max(cost * (PAUSE + 1));
        // Waiting for the disk is no work, so it does not count.
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_data);
        synced.or_else(cannot_sync).map_err(|e| self.unwritten(e.into()))
    }

    /// Takes what has come, for sources that cannot wait: it is written when it is worth a block,
    /// and once a second. Waits for no disk.
    pub fn take(&mut self, sources: &mut [&mut dyn Source]) -> Result<()> {
        let now = self.look_only(sources)?;
        let rows: usize = self.profile.all_events().map(|(_, table)| table.len()).sum();
        if rows >= WORTH_A_BLOCK || self.is_due() {
            self.write(sources, now)?;
        }
        Ok(())
    }

    /// The same, written at once: somebody wants to read it.
    pub fn write_now(&mut self, sources: &mut [&mut dyn Source]) -> Result<()> {
        let now = self.look_only(sources)?;
        self.write(sources, now)
    }

    /// Whether what was measured has to wait for a link that is behind.
    fn waits(&mut self, now: u64) -> bool {
        if !self.writer.sink().is_behind() {
            self.backlog.is_gone();
            return false;
        }
        self.backlog.hold(&mut self.profile, now);
        self.due = Instant::now() + INTERVAL;
        true
    }

    fn write(&mut self, sources: &[&mut dyn Source], now: u64) -> Result<()> {
        if self.waits(now) {
            return Ok(());
        }
        self.leave_room()?;
        self.account(sources, now);
        self.writer.write(&self.profile).map_err(|e| self.unwritten(e))?;
        self.profile.forget_rows();
        self.due = Instant::now() + INTERVAL;
        Ok(())
    }

    /// Takes a last look and completes the file.
    pub fn finish(mut self, sources: &mut [&mut dyn Source]) -> Result<Recorded> {
        let looked = self.look(sources);
        sources.iter().for_each(|source| source.complete(&mut self.profile));
        let doing = || cannot_write(self.path.as_deref());
        let size = self.writer.finish(&self.profile).with_context(doing)?.size;
        // The file is whole up to the look before; that is worth more than the last one.
        looked?;
        // A busy machine makes a second a little longer; that is not worth a word.
        let stretched = (self.longest > 2 * INTERVAL).then_some(self.longest);
        Ok(Recorded { path: self.path, size, stretched })
    }

    fn look(&mut self, sources: &mut [&mut dyn Source]) -> Result<()> {
        let now = self.look_only(sources)?;
        self.account(sources, now);
        Ok(())
    }

    /// The time of the look, in nanoseconds since the start.
    fn look_only(&mut self, sources: &mut [&mut dyn Source]) -> Result<u64> {
        self.longest = self.longest.max(self.looked.elapsed());
        self.looked = Instant::now();
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        for source in &mut *sources {
            source.look(&mut self.profile, now)?;
        }
        Ok(now)
    }

    fn account(&mut self, sources: &[&mut dyn Source], now: u64) {
        let mut run = RunInfo { duration: now, ..self.run.clone() };
        sources.iter().for_each(|source| source.account(&mut run));
        self.backlog.account(&mut run);
        self.profile.run = run;
    }

    fn unwritten(&self, error: WriteError) -> Error {
        let what = self.path.as_ref().map(|path| path.display().to_string());
        let what = what.unwrap_or_else(|| "the recording".to_owned());
        let told = format!("{what} ends after {:.0?}", self.began.elapsed());
        Error::from(error).during(told)
    }

    /// A disk that is nearly full ends a recording before it ends the program.
    fn leave_room(&self) -> Result<()> {
        match self.path.as_deref().filter(|path| has_no_room(path)) {
            Some(path) => refuse!(
                "the disk that holds {} is nearly full; the recording ends after {:.0?} with what it has",
                path.display(),
                self.began.elapsed()
            ),
            None => Ok(()),
        }
    }
}

/// What this thread has used of a processor: a look that has to wait for its turn costs no more.
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Whether the disk of this file or directory is as good as full.
pub fn has_no_room(path: &Path) -> bool {
    rustix::fs::statvfs(path)
        .is_ok_and(|disk| is_full(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize))
}

fn is_full(left: u64, size: u64) -> bool {
    size > 0 && left < SPARE.min(size / 50)
}

/// A pipe or a device has no disk to wait for.
fn cannot_sync(error: std::io::Error) -> std::io::Result<()> {
    match error.kind() {
        std::io::ErrorKind::InvalidInput => Ok(()),
        _ => Err(error),
    }
}

/// Where a recording goes, and how much has gone there.
pub struct Sink {
    out: Out,
    pub size: u64,
}

enum Out {
    Waits(Box<dyn Write + Send>),
    Link(Box<dyn Link>),
}

impl Sink {
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Sink { out: Out::Waits(Box::new(out)), size: 0 }
    }

    pub fn of_link(link: Box<dyn Link>) -> Self {
        Sink { out: Out::Link(link), size: 0 }
    }

    fn is_behind(&self) -> bool {
        matches!(&self.out, Out::Link(link) if link.is_behind())
    }

    fn out(&mut self) -> &mut dyn Write {
        match &mut self.out {
            Out::Waits(out) => out,
            Out::Link(link) => link,
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let length = self.out().write(bytes)?;
        self.size += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out().flush()
    }
}

fn cannot_write(path: Option<&Path>) -> String {
    match path {
        Some(path) => format!("cannot write {}", path.display()),
        None => "cannot write the recording".to_owned(),
    }
}

fn create(output: Output) -> Result<(Writer<Sink>, Option<File>)> {
    match output {
        Output::File(path) => {
            let (writer, file) = create_file(&path)?;
            Ok((writer, Some(file)))
        }
        Output::Writer(out) => Ok((Writer::new(Sink::new(out))?, None)),
        Output::Link(link) => Ok((Writer::new(Sink::of_link(link))?, None)),
    }
}

fn open_file(path: &Path) -> Result<(Writer<Sink>, File)> {
    let file = File::create(path)?;
    Ok((Writer::new(Sink::new(file.try_clone()?))?, file))
}

/// An ordinary file gets its name when it is readable: nobody finds an empty one.
fn create_file(path: &Path) -> Result<(Writer<Sink>, File)> {
    if fs::metadata(path).is_ok_and(|known| !known.is_file()) {
        return open_file(path);
    }
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut part = path.clone().into_os_string();
    part.push(".part");
    let begun = open_file(part.as_ref());
    let named =
        begun.and_then(|begun| fs::rename(&part, &path).map(|()| begun).map_err(Into::into));
    if named.is_err() {
        // The error that is reported is the first one.
        let _ = fs::remove_file(&part);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{LossKind, Row, SeriesId, SeriesInfo, ThreadId, ValueKind};
    use tare_recording::{LoadOptions, Recording, Warning};

    /// Counts to ten at each look, in a context of its own.
    #[derive(Default)]
    struct Counter {
        looks: u64,
    }

    impl Source for Counter {
        fn look(&mut self, profile: &mut Profile, _now: u64) -> Result<()> {
            if self.looks == 0 {
                profile.add_series(SeriesInfo::new("test", ValueKind::Samples));
            }
            let frame = profile.special(&format!("look {}", self.looks));
            let context = profile.contexts.stack([frame]);
            profile.series_mut(SeriesId::new(0)).push(Row::new(context, ThreadId::UNKNOWN, 10));
            self.looks += 1;
            Ok(())
        }

        fn account(&self, run: &mut RunInfo) {
            run.lose(LossKind::Dropped, "looks", self.looks, "for the test");
        }
    }

    /// The total, how many looks the losses tell of, and whether the file has an end.
    fn read(path: &Path) -> (i64, u64, bool) {
        let loaded = Recording::open(path).unwrap().load(&LoadOptions::default()).unwrap();
        let ended = match loaded.warnings.as_slice() {
            [] => true,
            [Warning::NoEnd] => false,
            other => panic!("{other:?}"),
        };
        let series = loaded.profile.all_series().next();
        let total = series.map_or(0, |(_, series)| series.total());
        (total, loaded.profile.run.losses.iter().map(|loss| loss.count).sum(), ended)
    }

    #[test]
    fn the_file_is_readable_after_every_look() {
        let path = std::env::temp_dir().join(format!("tare-recorder-{}.tare", std::process::id()));
        fs::write(&path, "an older file").unwrap();
        let mut counter = Counter::default();
        let mut recorder =
            Recorder::begin(Output::File(path.clone()), RunInfo::default(), Instant::now())
                .unwrap();
        assert_eq!(read(&path), (0, 0, false));
        for looks in 1..4 {
            recorder.append(&mut [&mut counter]).unwrap();
            assert_eq!(read(&path), (10 * looks as i64, looks, false));
        }
        let recorded = recorder.finish(&mut [&mut counter]).unwrap();
        assert_eq!(read(&path), (40, 4, true));
        assert_eq!(recorded.size, fs::metadata(&path).unwrap().len());
        fs::remove_file(&path).unwrap();
    }

    /// Bytes that somebody else takes as they come, as a web page would.
    #[derive(Clone, Default)]
    struct Taken(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl Write for Taken {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_recording_goes_to_whatever_can_be_written() {
        let (taken, mut counter) = (Taken::default(), Counter::default());
        let output = Output::Writer(Box::new(taken.clone()));
        let mut recorder = Recorder::begin(output, RunInfo::default(), Instant::now()).unwrap();
        assert_eq!(recorder.path(), None);
        recorder.append(&mut [&mut counter]).unwrap();
        let recorded = recorder.finish(&mut [&mut counter]).unwrap();
        let bytes = taken.0.lock().unwrap().clone();
        assert_eq!(recorded.size, bytes.len() as u64);
        let mut read = Recording::new(std::io::Cursor::new(bytes)).unwrap();
        let loaded = read.load(&LoadOptions::default()).unwrap();
        assert_eq!(loaded.profile.all_series().next().unwrap().1.total(), 20);
        assert_eq!(loaded.warnings, []);
    }

    /// A link that is behind for as long as somebody says so.
    #[derive(Clone, Default)]
    struct Slow(Taken, std::sync::Arc<std::sync::atomic::AtomicBool>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Link for Slow {
        fn is_behind(&self) -> bool {
            self.1.load(std::sync::atomic::Ordering::Relaxed)
        }
    }

    #[test]
    fn a_link_that_is_behind_gets_nothing_and_later_everything() {
        let (link, mut counter) = (Slow::default(), Counter::default());
        let output = Output::Link(Box::new(link.clone()));
        let mut recorder = Recorder::begin(output, RunInfo::default(), Instant::now()).unwrap();
        let size = || link.0.0.lock().unwrap().len();
        let begun = size();
        link.1.store(true, std::sync::atomic::Ordering::Relaxed);
        recorder.append(&mut [&mut counter]).unwrap();
        recorder.write_now(&mut [&mut counter]).unwrap();
        assert_eq!((size(), counter.looks), (begun, 2), "it looks, and writes nothing");
        link.1.store(false, std::sync::atomic::Ordering::Relaxed);
        recorder.append(&mut [&mut counter]).unwrap();
        recorder.finish(&mut [&mut counter]).unwrap();
        let bytes = link.0.0.lock().unwrap().clone();
        let mut read = Recording::new(std::io::Cursor::new(bytes)).unwrap();
        let loaded = read.load(&LoadOptions::default()).unwrap();
        assert_eq!(loaded.profile.all_series().next().unwrap().1.total(), 40);
        assert_eq!(loaded.warnings, []);
    }

    #[test]
    fn a_file_that_cannot_be_begun_leaves_nothing_and_replaces_nothing() {
        let path = std::env::temp_dir().join(format!("tare-full-{}.tare", std::process::id()));
        let part = path.with_extension("tare.part");
        fs::write(&path, "an older file").unwrap();
        // What is written there meets a full disk.
        std::os::unix::fs::symlink("/dev/full", &part).unwrap();
        let error = create_file(&path).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("space"), "{error:#}");
        assert!(!part.is_symlink(), "the part is left behind");
        assert_eq!(fs::read_to_string(&path).unwrap(), "an older file");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_disk_is_full_before_nothing_is_left() {
        let gib = 1 << 30;
        assert!(!is_full(gib, 100 * gib) && is_full(gib / 5, 100 * gib));
        assert!(!is_full(gib / 32, gib) && is_full(gib / 64, gib), "a small disk keeps a fiftieth");
        assert!(!is_full(0, 0), "what has no size is no disk");
    }
}
