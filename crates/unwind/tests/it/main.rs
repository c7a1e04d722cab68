//! The unwind tables against independent witnesses, and on real stacks.

mod hand_written;
mod hostile;
mod jvm;
#[cfg(target_arch = "x86_64")]
mod leaves;
mod own_stacks;
mod rows;
