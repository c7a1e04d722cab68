//! Where tools differ on what holds what. Ours is for people; the other one makes our figures
//! comparable with MAT's, object by object (`examples/oracle.rs`).

/// Whose reading of a dump is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Conventions {
    /// Classes of the JVM's own loaders are roots, but for hidden ones; a class holds its signers
    /// and its protection domain.
    #[default]
    Ours,
    /// Eclipse MAT: all classes without a loader are roots, also hidden ones, but for arrays';
    /// nothing is held by being a class's signer or protection domain.
    Mat,
}

impl Conventions {
    pub(crate) fn has_protection_domains(self) -> bool {
        self == Conventions::Ours
    }
}
