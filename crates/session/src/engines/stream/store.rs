//! What becomes of what a stream tells: all of it goes into a file as it comes, or the last minutes
//! are kept in memory.

use crate::command_socket;
use crate::error::{Context, Error, Result, refuse};
use crate::files::replace_by;
use crate::last_minutes::LastMinutes;
use crate::plan::Output;
use crate::recorder::{Recorded, Recorder, Sink, Source};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use tare_profile::RunInfo;
use tare_recording::{LoadOptions, Recording, Writer};

pub enum Store {
    /// All of it is written as it comes.
    Recorder(Box<Recorder>),
    /// The last minutes are kept in memory, and go there at the end.
    Memory(Box<LastMinutes>, Output),
}

impl Store {
    /// With `keep`, only that much of the end is kept.
    pub fn begin(
        output: Output,
        keep: Option<Duration>,
        run: RunInfo,
        began: Instant,
    ) -> Result<Self> {
        Ok(match keep {
            None => Store::Recorder(Box::new(Recorder::begin(output, run, began)?)),
            Some(span) => Store::Memory(Box::new(LastMinutes::begin(span, run, began)), output),
        })
    }

    pub fn is_due(&self) -> bool {
        match self {
            Store::Recorder(recorder) => recorder.is_due(),
            Store::Memory(last, _) => last.is_due(),
        }
    }

    /// Takes what was told since the last look.
    pub fn look(&mut self, source: &mut dyn Source) -> Result<()> {
        match self {
            Store::Recorder(recorder) => recorder.append(&mut [source]),
            Store::Memory(last, _) => last.look(source),
        }
    }

    /// Writes what there is so far, or what is kept.
    pub fn dump(&mut self, source: &mut dyn Source, file: File) -> Result<String> {
        self.look(source)?;
        let size = match self {
            Store::Memory(last, output) => {
                let growing = match output {
                    Output::File(path) => path,
                    Output::Writer(_) | Output::Link(_) => Path::new(""),
                };
                let (_, file) = last.write(command_socket::emptied(file, growing)?, source)?;
                file.metadata()?.len()
            }
            Store::Recorder(recorder) => rewrite(recorder.path(), file, source)?,
        };
        Ok(format!("{} KiB", size.div_ceil(1024)))
    }

    /// Takes the last, and completes the file; also after a look has failed.
    pub fn finish(self, source: &mut dyn Source, failed: Option<Error>) -> Result<Recorded> {
        match self {
            Store::Recorder(recorder) => {
                let finished = recorder.finish(&mut [source]);
                failed.map_or(Ok(()), Err)?;
                finished
            }
            Store::Memory(mut last, output) => {
                last.look(source)?;
                keep(&last, source, output)
            }
        }
    }
}

/// Writes the last minutes to where they were wanted.
fn keep(last: &LastMinutes, source: &dyn Source, output: Output) -> Result<Recorded> {
    let (path, size) = match output {
        Output::File(path) => {
            let doing = || format!("cannot write {}", path.display());
            let size = replace_by(&path, |file| {
                let (_, file) = last.write(file, source)?;
                Ok(file.metadata()?.len())
            })
            .with_context(doing)?;
            (Some(path), size)
        }
        Output::Writer(out) => (None, last.write(Sink::new(out), source)?.1.size),
        Output::Link(link) => (None, last.write(Sink::of_link(link), source)?.1.size),
    };
    Ok(Recorded { path, size, stretched: None })
}

/// Makes a whole file of one that still grows, and of what its source would tell at the end; its
/// size.
pub fn rewrite(growing: Option<&Path>, file: File, source: &dyn Source) -> Result<u64> {
    let Some(growing) = growing else {
        refuse!("this recording is sent elsewhere as it is made, so there is no file to dump from")
    };
    let file = command_socket::emptied(file, growing)?;
    let doing = || "cannot write the dump";
    let mut profile = Recording::open(growing)?.load(&LoadOptions::default())?.profile;
    source.complete(&mut profile);
    let file = Writer::new(file).with_context(doing)?.finish(&profile).with_context(doing)?;
    Ok(file.metadata().with_context(doing)?.len())
}
