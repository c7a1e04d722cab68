//! Memory of the copy's own, and the socket, without the C library's allocator.

use crate::kernel;
use std::io;
use std::sync::atomic::AtomicU64;

/// Zeroed memory that is never given back: the copy's end is its end.
pub fn area<T: Plain>(count: usize) -> Option<&'static mut [T]> {
    let bytes = count.max(1).checked_mul(size_of::<T>())?;
    let at = kernel::reserve(bytes).ok()?;
    // SAFETY: new memory of so many zeros, aligned to a page, for which zeros are values.
    Some(unsafe { std::slice::from_raw_parts_mut(at.cast(), count) })
}

/// The same for threads that share it.
pub fn words(count: usize) -> Option<&'static [AtomicU64]> {
    let area = area::<u64>(count)?;
    // SAFETY: the whole of new memory that nobody else refers to; an atomic number is laid out as
    // a plain one.
    Some(unsafe { std::slice::from_raw_parts(area.as_ptr().cast(), area.len()) })
}

/// Types whose values may be all zeros.
///
/// # Safety
/// That is what an implementation promises; and they have no destructor.
pub unsafe trait Plain: Copy {}
// SAFETY: plain numbers.
unsafe impl Plain for u8 {}
// SAFETY: plain numbers.
unsafe impl Plain for u64 {}

/// The copy's end of the socket, or a pipe.
#[derive(Clone, Copy)]
pub struct Descriptor(pub libc::c_int);

impl Descriptor {
    /// Whether all of it was written.
    pub fn write_all(self, bytes: &[u8]) -> bool {
        // SAFETY: the slice's own memory.
        unsafe { self.write_from(bytes.as_ptr() as u64, bytes.len()) }
    }

    /// The same from an address; memory that is not there is an error, no fault.
    ///
    /// # Safety
    /// Nobody changes the memory meanwhile, if it is there.
    pub unsafe fn write_from(self, mut at: u64, mut length: usize) -> bool {
        while length > 0 {
            // SAFETY: the kernel checks the address.
            match unsafe { libc::write(self.0, at as *const _, length) } {
                -1 if interrupted() => {}
                wrote if wrote > 0 => {
                    at += wrote as u64;
                    length -= wrote as usize;
                }
                _ => return false,
            }
        }
        true
    }

    /// Whether the whole slice was filled.
    pub fn read_all(self, bytes: &mut [u8]) -> bool {
        let mut filled = 0;
        while filled < bytes.len() {
            let rest = &mut bytes[filled..];
            // SAFETY: the slice's own memory.
            match unsafe { libc::read(self.0, rest.as_mut_ptr().cast(), rest.len()) } {
                -1 if interrupted() => {}
                read if read > 0 => filled += read as usize,
                _ => return false,
            }
        }
        true
    }
}

fn interrupted() -> bool {
    io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
}

/// Reads memory that may not be there: a pipe takes what there is, and tells how much.
pub struct Prober {
    from: Descriptor,
    to: Descriptor,
}

/// What a pipe holds.
const PIPE: usize = 64 << 10;

/// No machine has smaller pages.
const PAGE: usize = 4096;

impl Prober {
    pub fn new() -> Option<Self> {
        let mut ends = [0; 2];
        // SAFETY: writes to a local.
        let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) };
        (made == 0).then_some(Prober { from: Descriptor(ends[0]), to: Descriptor(ends[1]) })
    }

    /// How many of the bytes from an address on are there; those are copied.
    pub fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let from = at.wrapping_add(done as u64);
            let length = (into.len() - done).min(PIPE);
            // A page that is not there costs the call what it has of others, too.
            let in_page = length.min(PAGE - (from as usize & (PAGE - 1)));
            let wrote = self.put(from, length).or_else(|| self.put(from, in_page));
            let Some(wrote) = wrote else { break };
            if !self.from.read_all(&mut into[done..done + wrote]) {
                break;
            }
            done += wrote;
        }
        done
    }

    fn put(&self, from: u64, length: usize) -> Option<usize> {
        // SAFETY: the kernel checks the address.
        let wrote = unsafe { libc::write(self.to.0, from as *const _, length) };
        usize::try_from(wrote).ok().filter(|wrote| *wrote > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_there_is_told_and_not_touched() {
        let prober = Prober::new().unwrap();
        let page = 4096;
        let at = kernel::reserve(2 * page).unwrap();
        // SAFETY: the mapping's own memory; its second page is taken away.
        unsafe {
            at.cast::<u8>().write_bytes(7, 2 * page);
            libc::munmap(at.add(page), page);
        }
        let mut into = [0; 100];
        assert_eq!(prober.read(at as u64 + page as u64 - 40, &mut into), 40);
        assert_eq!(into[..40], [7; 40]);
        assert_eq!(prober.read(at as u64 + page as u64, &mut into), 0);
        assert_eq!(prober.read(8, &mut into), 0);
        assert_eq!(prober.read(at as u64, &mut into), 100);
        // SAFETY: what is left of the mapping, used no more.
        unsafe { libc::munmap(at, page) };
    }

    #[test]
    fn areas_are_zeros() {
        let area = area::<u64>(1000).unwrap();
        assert!(area.iter().all(|word| *word == 0) && area.len() == 1000);
    }
}
