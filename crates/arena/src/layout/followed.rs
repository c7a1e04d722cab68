//! Places of sessions in which some calls of roots are followed.

/// Calls that are kept whole: a page for each root, with its id, how many calls were followed, and
/// places: first those of the slowest calls, then as many of calls that were drawn.
pub mod kept {
    pub const ROOTS: usize = 64;
    pub const SEEN: usize = 8;
    pub const FIRST: usize = 32;
    /// A place: the tree, and ticks that the call took.
    pub const PLACE: usize = 16;
    pub const TOOK: usize = 8;
    /// Of the slowest, and of the others, at most; and nodes of one call.
    pub const MOST: u32 = 100;
    pub const NODES: usize = 8192;
}

/// What the node that counts a root's other calls has of those that were followed, in places that it
/// does not need itself. Floating-point numbers.
pub mod others {
    use crate::layout::node;

    /// Sums of their weights, and of these with what each call took.
    pub const WEIGHTS: usize = node::SQUARE_CALLS;
    pub const TICKS: usize = node::SQUARE_OWN;
    /// Sums of `weight² − weight`, by itself and with the squares of what each call took.
    pub const SPREAD: usize = node::SQUARE_TOTAL;
    pub const SQUARES: usize = node::WITH_OWN;
    /// Ticks that following took beside the calls: their trees, and to add them up.
    pub const BESIDE: usize = node::WITH_TOTAL;
}
