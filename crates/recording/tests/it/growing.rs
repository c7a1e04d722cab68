//! A recording that is written while the run goes on, and stopped at any moment.

use crate::made::{Run, SAMPLES, dump};
use crate::roundtrip::{read, written};
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use tare_profile::LossKind;
use tare_recording::{LoadOptions, Warning, WriteError, Writer};

/// A file that others can look into while it is written.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_every_write_all_so_far_is_readable_without_an_end() {
    for seed in 0..5 {
        let file = Shared::default();
        let mut writer = Writer::new(file.clone()).unwrap();
        let mut run = Run::new(seed);
        for _ in 0..20 {
            run.go_on(50);
            writer.write(&run.profile).unwrap();
            let mut loaded = read(&file.0.borrow(), &LoadOptions::default());
            assert_eq!(loaded.warnings, [Warning::NoEnd]);
            // The duration is not written every time, but never far behind.
            let (told, true_one) = (loaded.profile.run.duration, run.profile.run.duration);
            assert!(told <= true_one && true_one - told <= true_one / 8, "{told} of {true_one}");
            loaded.profile.run.duration = true_one;
            assert!(dump(&loaded.profile) == dump(&run.profile), "the profiles differ");
        }
        writer.finish(&run.profile).unwrap();
        let loaded = read(&file.0.borrow(), &LoadOptions::default());
        assert_eq!((loaded.warnings, dump(&loaded.profile)), (vec![], dump(&run.profile)));
    }
}

#[test]
fn rows_that_were_forgotten_after_writing_are_in_the_file() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let (mut forgetful, mut faithful) = (Run::new(7), Run::new(7));
    for _ in 0..20 {
        forgetful.go_on(50);
        faithful.go_on(50);
        writer.write(&forgetful.profile).unwrap();
        forgetful.profile.forget_rows();
    }
    let bytes = writer.finish(&forgetful.profile).unwrap();
    let loaded = read(&bytes, &LoadOptions::default());
    assert_eq!(dump(&loaded.profile), dump(&faithful.profile));
}

#[test]
fn what_is_missing_no_longer_is_not_said() {
    let mut run = Run::new(3);
    let mut writer = Writer::new(Vec::new()).unwrap();
    run.profile.run.lose(LossKind::Dropped, "contexts", 3, "on their way");
    writer.write(&run.profile).unwrap();
    run.profile.run.losses.clear();
    writer.write(&run.profile).unwrap();
    let bytes = writer.finish(&run.profile).unwrap();
    let loaded = read(&bytes, &LoadOptions::default());
    assert_eq!((loaded.warnings, loaded.profile.run.losses), (vec![], vec![]));
}

#[test]
fn a_file_cut_anywhere_gives_what_was_written_before() {
    let file = Shared::default();
    let mut writer = Writer::new(file.clone()).unwrap();
    let mut run = Run::new(11);
    let mut marks = vec![];
    for _ in 0..6 {
        run.go_on(20);
        writer.write(&run.profile).unwrap();
        marks.push((writer.size() as usize, run.profile.series(SAMPLES).len()));
    }
    let whole = writer.finish(&run.profile).map(|file| file.0.borrow().clone()).unwrap();
    for length in 32..whole.len() {
        let loaded = read_if_any(&whole[..length]);
        let Some(loaded) = loaded else {
            assert!(length < marks[0].0, "cut at {length}");
            continue;
        };
        assert!(
            loaded.warnings.contains(&Warning::NoEnd),
            "cut at {length}: {:?}",
            loaded.warnings
        );
        assert_eq!(loaded.profile.check(), Ok(()), "cut at {length}");
        let written = marks.iter().rev().find(|(size, _)| *size <= length).map_or(0, |mark| mark.1);
        let rows = loaded.profile.all_series().next().map_or(0, |(_, series)| series.len());
        assert!(rows >= written, "cut at {length}: {rows} rows of {written} written before");
    }
}

fn read_if_any(bytes: &[u8]) -> Option<tare_recording::Loaded> {
    let mut recording = tare_recording::Recording::new(io::Cursor::new(bytes)).ok()?;
    recording.load(&LoadOptions::default()).ok()
}

/// A disk that is full after so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.0.min(bytes.len());
        self.0 -= room;
        if room == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(room) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_and_not_more() {
    let mut run = Run::new(3);
    run.go_on(100);
    for room in [32, 100, 1000] {
        let mut writer = Writer::new(Full(room)).unwrap();
        assert!(matches!(writer.write(&run.profile), Err(WriteError::Io(_))));
        assert!(matches!(writer.write(&run.profile), Err(WriteError::FailedBefore)));
    }
    assert!(written(&run.profile).len() > 1000, "the last disk was too small as well");
}
