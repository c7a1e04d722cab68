//! Whether a filter (seccomp) decides which system calls the calling thread may make.
//!
//! What a filter does about a call that it does not know cannot be asked, and trying may end the
//! process. So calls that filters often forbid are left out, or done in another way, where there is
//! one.

use std::fs;

/// Whether the calling thread is under a filter. Threads of one process may differ: a filter is
/// installed for a thread, and handed down to those that it starts. Where it cannot be told, a
/// filter is assumed. Reads a file, since asking by `prctl` might be what the filter forbids.
pub fn is_filtered() -> bool {
    fs::read("/proc/thread-self/status").map_or(true, |status| says_filtered(&status))
}

/// What the text of a `status` file says; a kernel without filters has no such line.
fn says_filtered(status: &[u8]) -> bool {
    let line = status.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"Seccomp:"));
    line.is_some_and(|mode| mode.trim_ascii() != b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found_among_others() {
        assert!(says_filtered(b"Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(says_filtered(b"Seccomp:\t1\n"));
        assert!(!says_filtered(b"NoNewPrivs:\t1\nSeccomp:\t0\nSeccomp_filters:\t0\n"));
        assert!(!says_filtered(b"Name:\tSeccomp: 2\n"));
        assert!(!says_filtered(b""));
    }
}
