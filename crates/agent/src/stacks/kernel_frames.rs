//! The kernel's own frames of a thread, from the memory in which a perf event leaves them.

use super::memory::Memory;

/// Calls `push` with the kernel's frames in the newest record, the innermost first, and marks all
/// records as read. The mapping stays while its thread is inside the handler.
pub(super) fn newest(at: u64, memory: &impl Memory, mut push: impl FnMut(u64)) {
    const HEAD: u64 = 1024;
    const TAIL: u64 = 1032;
    const DATA: u64 = 4096;
    const SAMPLE: u32 = 9;
    /// Not addresses but words about those that follow; all are above this.
    const CONTEXTS: u64 = -4095_i64 as u64;
    let (Some(head), Some(mut tail)) = (memory.word(at + HEAD), memory.word(at + TAIL)) else {
        return;
    };
    std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
    let word = |position: u64| memory.word(at + DATA + position % 4096);
    let mut newest = None;
    while tail < head {
        let Some(header) = word(tail) else { break };
        let size = header >> 48;
        if size < 8 {
            break;
        }
        if header as u32 == SAMPLE {
            newest = Some(tail);
        }
        tail += size;
    }
    if let Some(record) = newest {
        let count = word(record + 8).unwrap_or(0).min(512);
        for index in 0..count {
            match word(record + 16 + 8 * index) {
                Some(address) if address < CONTEXTS => push(address),
                Some(_) => {}
                None => break,
            }
        }
    }
    std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
    // SAFETY: the field through which the kernel learns what was read, in a mapping that stays.
    unsafe { std::ptr::write_volatile((at + TAIL) as *mut u64, head) };
}
