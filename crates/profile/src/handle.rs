//! Typed handles: the number of a row, and of which table.
//!
//! A handle is only meaningful in the profile that gave it. Tables check nothing beyond their
//! bounds; who makes handles from numbers of the outside world checks them
//! ([`crate::Profile::check`]).

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(u32);

        impl $name {
            /// The handle of row `row`, whether or not there is such a row.
            pub const fn new(row: u32) -> Self {
                Self(row)
            }

            pub const fn raw(self) -> u32 {
                self.0
            }

            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

handle!(
    /// A text in [`crate::Strings`].
    StringId
);
handle!(
    /// A method in [`crate::Methods`].
    MethodId
);
handle!(
    /// A place in a method, in [`crate::Frames`].
    FrameId
);
handle!(
    /// A chain of frames from the root, in [`crate::Contexts`].
    ContextId
);
handle!(
    /// A thread in [`crate::Threads`]. Not the number that Java or the system gives it.
    ThreadId
);
handle!(
    /// One of [`crate::Profile::all_series`].
    SeriesId
);
handle!(
    /// One of [`crate::Profile::all_events`].
    EventTableId
);

impl StringId {
    /// The empty text, which stands for "not known" wherever a text is optional.
    pub const EMPTY: StringId = StringId(0);

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl ContextId {
    /// The context of no frame at all, in which every stack begins.
    pub const ROOT: ContextId = ContextId(0);
}

impl ThreadId {
    /// Row 0 of every thread table: the thread is not known, or all threads were merged.
    pub const UNKNOWN: ThreadId = ThreadId(0);
}
