//! What a session has to tell a person while it goes on. Showing it is left to the front end.

/// A sentence for the user, without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Good to know.
    Aside(String),
    /// Something is not as it was asked for.
    Warning(String),
}
