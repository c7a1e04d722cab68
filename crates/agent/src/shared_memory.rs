//! Memory that front ends read: files without a name, of which a front end gets a descriptor that
//! can only read. A front end that goes wrong, or means harm, must not be able to change what the
//! probes run on, nor take pages away from under them (SIGBUS).
//!
//! Two things see to that. The descriptor is opened for reading; and the file is sealed: its size
//! stays, and, from Linux 5.1 on, nobody can write it any more but through the mapping that we
//! have made before. So opening it a second time through `/proc` is of no use either.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

/// A file without a name that can be sealed.
pub fn create(name: &CStr) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a NUL-terminated name; a non-negative result is a descriptor that nobody else owns.
    unsafe {
        match libc::memfd_create(name.as_ptr(), flags) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}

/// Who may write a file from now on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Whoever has a mapping for it already, that is, we.
    Mapped,
    /// Whoever has a descriptor for it.
    Any,
}

/// The file keeps its size for good.
pub fn seal(file: &File, writers: Writers) -> io::Result<()> {
    let size = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // Before Linux 5.1 there is no such seal; then the descriptors alone keep others from writing.
    if writers == Writers::Mapped && add_seals(file, size | libc::F_SEAL_FUTURE_WRITE).is_ok() {
        return Ok(());
    }
    add_seals(file, size)
}

/// The file never gets shorter; it may grow.
pub fn keep(file: &File) -> io::Result<()> {
    add_seals(file, libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL)
}

fn add_seals(file: &File, seals: libc::c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A descriptor of the same file that can only read.
pub fn read_only(file: &File) -> io::Result<File> {
    let opened = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    // Without /proc the seal has to do.
    opened.or_else(|e| if is_closed_to_writers(file) { file.try_clone() } else { Err(e) })
}

fn is_closed_to_writers(file: &File) -> bool {
    // SAFETY: no pointers.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals != -1 && seals & libc::F_SEAL_FUTURE_WRITE != 0
}

/// A file with a text, for somebody to read.
pub fn text(name: &CStr, text: &[u8]) -> io::Result<File> {
    let file = create(name)?;
    file.write_all_at(text, 0)?;
    seal(&file, Writers::Mapped)?;
    read_only(&file)
}

/// A mapping of a whole file, for reading and writing.
pub fn map(file: &File, length: usize) -> io::Result<*mut u8> {
    // SAFETY: a new mapping at an address that the kernel chooses.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at.cast()) }
}

/// Makes pages of a file real. Fails, instead of the program later, when there are none.
pub fn allocate(file: &File, at: u64, length: u64) -> io::Result<()> {
    // SAFETY: no pointers.
    let code =
        unsafe { libc::fallocate(file.as_raw_fd(), 0, at.cast_signed(), length.cast_signed()) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 8192;

    /// Whoever gets at a descriptor, ours or one that is opened anew, can change nothing.
    #[test]
    fn a_sealed_file_is_written_by_us_only() {
        let file = create(c"tare-test").unwrap();
        allocate(&file, 0, LENGTH as u64).unwrap();
        let at = map(&file, LENGTH).unwrap();
        seal(&file, Writers::Mapped).unwrap();
        let again = format!("/proc/self/fd/{}", file.as_raw_fd());
        let again = File::options().read(true).write(true).open(again).unwrap();
        let given = read_only(&file).unwrap();
        for other in [&given, &again] {
            assert!(other.write_at(b"x", 0).is_err());
            assert!(other.set_len(0).is_err());
            assert!(other.set_len(2 * LENGTH as u64).is_err());
            assert!(map(other, LENGTH).is_err());
        }
        // SAFETY: the mapping from above.
        unsafe { at.add(5).write(7) };
        let mut byte = [0];
        given.read_exact_at(&mut byte, 5).unwrap();
        assert_eq!(byte, [7]);
        // SAFETY: the mapping from above, used no more.
        unsafe { libc::munmap(at.cast(), LENGTH) };
    }

    #[test]
    fn a_file_for_others_to_write_keeps_its_size() {
        let file = create(c"tare-test").unwrap();
        allocate(&file, 0, LENGTH as u64).unwrap();
        seal(&file, Writers::Any).unwrap();
        assert!(file.set_len(0).is_err() && file.set_len(2 * LENGTH as u64).is_err());
        assert_eq!(file.write_at(b"x", 0).unwrap(), 1);
        assert!(file.write_at(b"x", LENGTH as u64).is_err());
    }
}
