//! What names of classes and threads tell, for both ends: whether a class belongs to the JDK, whether
//! a thread is the JVM's own, and what a class is called in every run alike.
//!
//! Pure functions of text; the lists of names live here and nowhere else. The crate knows nothing of
//! class files, JVMs or profiles. Classes may be spelled as in class files (`java/lang/String`) or as
//! in source (`java.lang.String`).
#![forbid(unsafe_code)]

mod jdk;
mod stable;
mod threads;

pub use jdk::{is_jdk, package_of};
pub use stable::stable;
pub use threads::{JvmThread, jvm_thread};
