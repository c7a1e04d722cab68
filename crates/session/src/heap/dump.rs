//! HotSpot's own dump, for JVMs of which no copy can be made. It stops the program while the file
//! is written, which the JVM does by itself, with its own rights, in its own file system.

use super::Taken;
use crate::error::{Error, Result, refuse};
use std::path::Path;
use std::time::{Duration, Instant};
use tare_attach::Jvm;

/// Has the JVM write a `.hprof` file to a path as the JVM sees it, which must not be there yet. The
/// whole time counts as pause: the JVM does not tell more.
pub fn dump_by_hotspot(jvm: &Jvm, output: &Path, patience: Duration) -> Result<Taken> {
    let Some(path) = output.to_str().filter(|path| path.starts_with('/')) else {
        refuse!("the JVM needs a whole path for its dump, and {} is none", output.display());
    };
    let began = Instant::now();
    let said = tare_attach::dump_heap(jvm, path, patience).map_err(Error::from)?;
    if !said.contains("created") {
        return Err(Error::Agent(format!(
            "the JVM wrote no dump: {}",
            crate::words::plain(said.trim())
        )));
    }
    let pause = began.elapsed();
    Ok(Taken {
        path: output.to_owned(),
        is_hprof: true,
        pause,
        fork: Duration::ZERO,
        life: Duration::ZERO,
        objects: 0,
        bytes: 0,
        notes: Vec::new(),
    })
}
