//! What names of classes and threads tell, for both ends: whether a class belongs to the JDK,
//! whether a thread is the JVM's own, what a class is called in every run alike, whether a user's
//! pattern means it, and whether it is woven.
//!
//! Pure functions of text; the lists of names live here and nowhere else. The crate knows nothing
//! of class files, JVMs or profiles. Classes may be spelled as in class files (`java/lang/String`)
//! or as in source (`java.lang.String`).
#![forbid(unsafe_code)]

mod choice;
mod jdk;
mod method;
mod pattern;
mod stable;
mod threads;
mod type_pattern;
mod types;

pub use choice::{ClassChoice, NotWoven, is_hidden, is_probe_runtime, never_woven};
pub use jdk::{is_jdk, package_of};
pub use method::{MethodPattern, MethodPatternError};
pub use pattern::{Pattern, PatternError, glob};
pub use stable::stable;
pub use threads::{JvmThread, jvm_thread};
pub use type_pattern::TypePattern;
pub use types::{parameter_names, type_name};
