//! Where the lengths of a context's calls are counted: a few words in a page of those.

/// Stretches of times, each with the number of calls that it stands for (u64).
pub const STRETCHES: usize = 127;
pub const BYTES: usize = STRETCHES * 8;
/// The first of a page; before it is the head of a page that nobody has written to.
pub const FIRST: usize = super::page::HEAD;
/// Powers of two of ticks that are not told apart; then there is a stretch for each step up to
/// 2^SHIFT, and so many for each power of two. The last one has all that is longer.
pub const DROPPED: u32 = 4;
pub const SHIFT: u32 = 2;
