//! How long a JVM has stood at safepoints, by its own performance data.

use crate::jvm::Jvm;
use crate::jvm_files::JvmFiles;
use crate::perfdata;
use std::path::Path;
use std::time::Duration;

const LARGEST: u64 = 4 << 20;

/// Time at safepoints in the JVM's life; `None` if it has no such data, or not for us.
pub fn safepoint_time(jvm: &Jvm) -> Option<Duration> {
    let ours = jvm.uid == rustix::process::geteuid().as_raw() && jvm.pid == jvm.ns_pid;
    let files = JvmFiles::open(jvm.pid, ours).ok()?;
    let path = Path::new(jvm.mapped.perf_data.as_deref()?);
    if files.stat(path).ok()?.st_uid != jvm.uid {
        return None;
    }
    let bytes = files.read(path, LARGEST).ok()?;
    let counter = |name: &str| perfdata::number(&bytes, name);
    // HotSpot counts in units of its fastest clock, which is one of nanoseconds on Linux.
    let is_known = counter("sun.os.hrt.frequency") == Some(1_000_000_000);
    is_known.then(|| counter("sun.rt.safepointTime")).flatten().map(Duration::from_nanos)
}
