//! The unwind tables against independent witnesses, and on real stacks.

mod hand_written;
mod hostile;
mod jvm;
mod own_stacks;
mod rows;
