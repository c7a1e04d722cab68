//! Who waits wants to know for what.

/// Is told what is done, from any thread.
pub trait Progress: Sync {
    /// So much of a stage is done.
    fn tell(&self, stage: &'static str, done: u64, all: u64);
}

/// Nobody waits.
pub struct Silent;

impl Progress for Silent {
    fn tell(&self, _: &'static str, _: u64, _: u64) {}
}
