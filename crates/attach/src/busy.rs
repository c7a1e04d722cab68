//! What an agent of ours is doing that answers nobody, as far as it can be seen from outside.

use std::fs;
use std::path::Path;

use tare_protocol::{Decoder, PROGRESS_BYTES, PROGRESS_MEMORY, Progress};

use crate::procfs;

/// The agent's thread, from before its control socket is there until all that it did is undone.
const THREAD: &str = "tare-control";

/// Whether the thread of an agent is in a JVM: then it is at work, or leaving.
#[must_use]
pub fn has_control_thread(pid: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .any(|comm| comm.trim_end() == THREAD)
}

/// What the agent in a JVM is inside the JVM for at this moment, if that may take long.
#[must_use]
pub fn progress(pid: u32) -> Option<Progress> {
    let named = format!("/memfd:{PROGRESS_MEMORY}{}", procfs::DELETED);
    let is_it = |path: &Path| fs::read_link(path).is_ok_and(|link| link == Path::new(&named));
    let all = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let file = all.map(|entry| entry.path()).find(|path| is_it(path))?;
    parse(&fs::read(file).ok()?)
}

fn parse(bytes: &[u8]) -> Option<Progress> {
    let mut decoder = Decoder::default();
    decoder.push(bytes.get(..bytes.len().min(PROGRESS_BYTES))?);
    Progress::from_message(&decoder.next_message().ok()??).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_frame_is_no_progress() {
        let progress = Progress { all: 7, ..Progress::default() };
        let mut bytes = progress.to_message().encode();
        assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
        bytes.resize(PROGRESS_BYTES, 0);
        assert_eq!(parse(&bytes), Some(progress));
        assert_eq!(parse(&[0; PROGRESS_BYTES]), None);
        assert_eq!(parse(&[0xff; 10_000]), None);
        assert!(!has_control_thread(std::process::id()));
        assert_eq!(super::progress(std::process::id()), None);
    }
}
