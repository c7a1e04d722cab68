//! Which methods can be reached from given roots, as classes come and methods run.
//!
//! The graph holds a mirror of each class that matters: its supertypes and subtypes, its methods,
//! and what has been called on it. Facts come from outside (class bytes, or whatever a JVM tells)
//! and at any time; each fact may make more methods reachable, and the classes that hold such
//! methods are handed out once, to be woven. Two schemes: a reachable method's callees are followed
//! at once (eager), or when it is said to have run (lazy). A method that is called and is known to
//! have run often before is taken for one that runs.
//!
//! Only code that may be woven is followed call by call. What the rest, above all the JDK, may call
//! back is known by three rules that need no look into it: a method that overrides or implements
//! one that is declared there can be called from there; a method that a constant of the kind
//! *method handle* names (a lambda's body, a method reference) can be called from anywhere; and
//! classes outside that are not the JDK's can call what their constant pools name. Reflection is
//! left to whoever sees it happen ([`Graph::reveal`]).
//!
//! Where something is not known yet (a class whose supertypes are still to be loaded), the graph
//! takes more for reachable rather than less. It knows no JVM and no woven code.
#![forbid(unsafe_code)]

mod graph;
mod names;
mod sites;

pub use graph::{
    ClassFacts, ClassId, Explanation, Graph, Loader, MethodFacts, MethodId, Past, Scheme, Side,
    Step,
};
pub use sites::{Site, handles, is_trivial, references, sites};
