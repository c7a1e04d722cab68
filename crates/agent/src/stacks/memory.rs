//! Reading memory that may not be there, by plain loads. The fault guard makes that safe, not this
//! file.

/// Reading what may not be there.
pub trait Memory {
    /// Eight bytes, or `None` for an address that cannot be one.
    fn word(&self, at: u64) -> Option<u64>;

    fn int(&self, at: u64) -> Option<i32> {
        self.word(at).map(|word| word as u32 as i32)
    }

    fn short(&self, at: u64) -> Option<u16> {
        self.word(at).map(|word| word as u16)
    }

    fn byte(&self, at: u64) -> Option<u8> {
        self.word(at).map(|word| word as u8)
    }
}

/// The memory of this process, under a guard against faults.
pub struct Own;

/// No pointer is below or above.
pub(super) const LOWEST: u64 = 0x1000;
const HIGHEST: u64 = 1 << 47;

impl Memory for Own {
    #[inline]
    fn word(&self, at: u64) -> Option<u64> {
        if !(LOWEST..HIGHEST).contains(&at) {
            return None;
        }
        // SAFETY: walks run under a guard, which catches a read of what is not mapped.
        Some(unsafe { std::ptr::read_volatile(at as *const Unaligned) }.0)
    }

    #[inline]
    fn int(&self, at: u64) -> Option<i32> {
        if !(LOWEST..HIGHEST).contains(&at) {
            return None;
        }
        // SAFETY: as above; fields of this size are aligned to it.
        Some(unsafe { std::ptr::read_volatile(at as *const UnalignedInt) }.0)
    }

    #[inline]
    fn byte(&self, at: u64) -> Option<u8> {
        if !(LOWEST..HIGHEST).contains(&at) {
            return None;
        }
        // SAFETY: as above.
        Some(unsafe { std::ptr::read_volatile(at as *const u8) })
    }
}

#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned(u64);

#[derive(Clone, Copy)]
#[repr(C, packed)]
struct UnalignedInt(i32);
