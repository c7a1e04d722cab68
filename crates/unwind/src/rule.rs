//! What one row of a table says: how to get from a frame to its caller's.

/// The registers that rules may start from, as numbered by DWARF for this machine.
#[cfg(target_arch = "x86_64")]
pub(crate) mod number {
    pub const FP: u64 = 6;
    pub const SP: u64 = 7;
    pub const RA: u64 = 16;
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod number {
    pub const FP: u64 = 29;
    pub const SP: u64 = 31;
    pub const RA: u64 = 30;
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    Sp,
    Fp,
}

/// The canonical frame address: the caller's stack pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cfa {
    /// Register plus offset.
    At(Base, i32),
    /// What is stored at register plus offset: realigned stacks, signal frames.
    StoredAt(Base, i32),
    /// An entry of a procedure linkage table: `sp + 8`, and 8 more once the entry, 16 bytes long,
    /// has pushed its index, which is so from this byte of it on.
    Plt(u8),
    /// Something that these rules cannot say.
    Unsupported,
}

/// Where a register of the caller is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// Where it was: the callee has not touched it.
    Same,
    /// In memory at the canonical frame address plus an offset.
    AtCfa(i32),
    /// In memory at a register of the callee plus an offset: signal frames.
    At(Base, i32),
    /// Nowhere. A frame whose return address is nowhere is the outermost one.
    Lost,
    /// Something that these rules cannot say.
    Unsupported,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rule {
    pub cfa: Cfa,
    pub fp: Place,
    pub ra: Place,
    /// The caller was interrupted by a signal: its address is where it continues, not behind a
    /// call.
    pub signal: bool,
}
