//! Ctrl-C for commands that must clean up after themselves: a flag instead of a sudden end.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that says that somebody wants this process to end. A second time it ends at once.
pub fn flag() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    // A file that may not grow any further is an error of whoever writes it.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    Ok(stop)
}

/// Whether it was said.
pub fn is_set(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}
