//! The memory that a JVM shares with us, read with ordinary reads into memory of ours.
//!
//! How long it is, and how much of it is in use, the JVM says. What we allocate for it is therefore
//! bounded by what the JVM truly holds there: a length alone costs nobody anything, and a program
//! that is broken, or means ill, must not bring down the machine by way of its profiler.

use crate::error::{Context, Error, Result, refuse};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::Duration;
use tare_arena::{Names, Pruning, Snapshot};

/// How often to read the trees again before one that is being pruned is taken as it is.
const READINGS: usize = 20;

/// More than the names of all methods of the largest program.
const LONGEST_LOG: u64 = 1 << 30;

/// The memory that the JVM shares with us. It outlives the JVM for as long as we hold it.
pub struct Arena {
    trees: File,
    names: NameFile,
}

/// The log of names. Every name is logged before it occurs in a tree or a ring, so it is to be read
/// after those.
#[derive(Clone)]
pub struct NameFile(Arc<File>);

impl NameFile {
    pub fn new(file: File) -> Self {
        NameFile(Arc::new(file))
    }

    /// The names logged so far.
    pub fn read(&self) -> Result<Names> {
        let length = self.0.metadata().context("cannot ask for the length of the names")?.len();
        if length > LONGEST_LOG {
            refuse!("the JVM's log of names claims {} MiB; it cannot be trusted", length >> 20);
        }
        Ok(Names::read(&read_up_to(&self.0, length)?))
    }
}

impl Arena {
    pub fn new([trees, names]: [File; 2]) -> Self {
        Arena { trees, names: NameFile::new(names) }
    }

    /// The trees as they are now, if possible at a moment in which no thread prunes its own. One
    /// that is read while it is pruned may miss calls, or have them twice; the next look is right.
    pub fn trees(&self) -> Result<Snapshot> {
        let head = || read_up_to(&self.trees, Snapshot::HEADER as u64);
        let mut readings = 0;
        loop {
            let before = head()?;
            let used = Snapshot::used(&before)?;
            let pruning = Pruning::read(&before);
            readings += 1;
            let fits = || Ok::<_, Error>(pruning.still(Pruning::read(&head()?)));
            if pruning.never() {
                let snapshot = self.read(used)?;
                if fits()? {
                    return Ok(snapshot);
                }
            } else {
                // A copy is made sooner than it is read, so that it meets less of that.
                let bytes = read_up_to(&self.trees, used)?;
                if readings == READINGS || fits()? {
                    return Ok(Snapshot::read(&bytes)?);
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Reads so many bytes of trees, a stretch at a time.
    fn read(&self, used: u64) -> Result<Snapshot> {
        let length = there(&self.trees, used)?;
        let mut failed = None;
        let snapshot = Snapshot::read_from(length, &mut |at, bytes| {
            read_some(&self.trees, bytes, at as u64).unwrap_or_else(|error| {
                failed = Some(error);
                0
            })
        });
        failed.map_or(Ok(()), Err)?;
        Ok(snapshot?)
    }

    /// The time of the agent's last note.
    pub fn noted(&self) -> Result<u64> {
        Ok(Snapshot::noted(&read_up_to(&self.trees, Snapshot::HEADER as u64)?)?)
    }

    pub fn names(&self) -> Result<Names> {
        self.names.read()
    }
}

/// So much, or as much as there is: what lies in a hole of the file is no memory of the JVM's.
fn there(file: &File, length: u64) -> Result<usize> {
    let is = file.metadata().context("cannot ask for the memory shared with the JVM")?;
    let held = is.len().min(is.blocks().saturating_mul(512));
    Ok(usize::try_from(length.min(held)).unwrap_or(usize::MAX))
}

fn read_up_to(file: &File, length: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; there(file, length)?];
    let mut done = 0;
    while done < bytes.len() {
        match read_some(file, &mut bytes[done..], done as u64)? {
            0 => break,
            n => done += n,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

fn read_some(file: &File, bytes: &mut [u8], at: u64) -> Result<usize> {
    loop {
        match file.read_at(bytes, at) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read.context("cannot read the memory shared with the JVM"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};

    fn sparse(length: u64, content: &[u8]) -> File {
        let file = File::from(memfd_create("tare-test", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(length).unwrap();
        file.write_all_at(content, 0).unwrap();
        file
    }

    #[test]
    fn only_what_the_jvm_holds_is_read() {
        let file = sparse(1 << 40, &[7; 5000]);
        let bytes = read_up_to(&file, 1 << 40).unwrap();
        assert!((5000..1 << 22).contains(&bytes.len()), "{} bytes", bytes.len());
        assert!(bytes[..5000].iter().all(|byte| *byte == 7));
        assert_eq!(read_up_to(&file, 10).unwrap(), [7; 10]);
    }

    #[test]
    fn a_log_that_is_longer_than_any_is_refused_by_its_length() {
        let error = NameFile::new(sparse(1 << 44, b"")).read().unwrap_err().to_string();
        assert!(error.contains("16777216 MiB"), "{error}");
        assert_eq!(NameFile::new(sparse(1 << 20, &8_u64.to_le_bytes())).read().unwrap().len(), 0);
    }

    #[test]
    fn trees_that_claim_all_memory_are_read_as_far_as_they_are() {
        use tare_arena::layout::{MAGIC, SLOT_BYTES, header};
        let mut head = vec![0; Snapshot::HEADER];
        head[header::MAGIC..][..8].copy_from_slice(&MAGIC.to_le_bytes());
        head[header::BUMP..][..8].copy_from_slice(&SLOT_BYTES.to_le_bytes());
        let trees = sparse(SLOT_BYTES, &head);
        let arena = Arena::new([trees, sparse(8, b"")]);
        // Whatever else is wrong with it: four gigabytes are not allocated to find out.
        let limit = u64::try_from(Snapshot::HEADER).unwrap() + (4 << 20);
        let bytes = read_up_to(&arena.trees, SLOT_BYTES).unwrap();
        assert!(bytes.len() as u64 <= limit, "{} bytes", bytes.len());
        assert!(arena.trees().is_err());
    }
}
