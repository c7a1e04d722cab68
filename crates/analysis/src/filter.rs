//! What a user wants to see, as one value that every analysis understands.

use crate::unstable;
use std::fmt;
use std::ops::Range;
use tare_java_names::{Pattern, glob};
use tare_profile::Profile;

/// What one node of a tree, or one line of a list, stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grouping {
    #[default]
    Method,
    Line,
    Class,
    Package,
    /// The module, jar or library.
    Module,
    Loader,
}

/// Restrictions and simplifications. The default shows everything.
///
/// `time`, `threads`, `packages`, `roots` and `stable` leave values out; the rest only moves them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Filter {
    /// Only what happened then, in nanoseconds since the start of the run.
    pub time: Option<Range<u64>>,
    /// Only threads whose name contains one of these, or fits it if it has a `*`.
    pub threads: Vec<String>,
    /// Only contexts that pass through one of these.
    pub packages: Vec<Pattern>,
    /// Only what was called from one of these; the tree begins there.
    pub roots: Vec<Pattern>,
    /// Leave out what differs from run to run although the program does the same.
    pub stable: bool,
    /// What is smaller than this share of the whole is folded (0.01 is one per cent).
    pub min_share: f64,
    /// A method that is already on the stack joins its outer call.
    pub fold_recursion: bool,
    /// Frames of the JDK join what called them.
    pub hide_jdk: bool,
    /// Frames whose names fit join what called them.
    pub hide: Vec<Pattern>,
    /// Frames that are not Java join what called them.
    pub java_only: bool,
    pub group: Grouping,
}

impl Filter {
    /// Only the part that leaves values out.
    #[must_use]
    pub fn restriction(&self) -> Filter {
        let Filter { time, threads, packages, roots, stable, .. } = self.clone();
        Filter { time, threads, packages, roots, stable, ..Filter::default() }
    }

    /// Only the part that moves values.
    #[must_use]
    pub fn shape(&self) -> Filter {
        let Filter { min_share, fold_recursion, hide_jdk, hide, java_only, group, .. } =
            self.clone();
        Filter { min_share, fold_recursion, hide_jdk, hide, java_only, group, ..Filter::default() }
    }

    pub(crate) fn hides(&self) -> bool {
        self.hide_jdk || !self.hide.is_empty()
    }

    /// Whether what passes has other stacks than before.
    pub(crate) fn changes_stacks(&self) -> bool {
        self.shape() != Filter::default() || !self.roots.is_empty()
    }

    /// Which threads pass, by row; `None` if all do.
    pub(crate) fn thread_rows(
        &self,
        profile: &Profile,
    ) -> Result<Option<Vec<bool>>, AnalysisError> {
        if self.threads.is_empty() && !self.stable {
            return Ok(None);
        }
        let wanted = |name: &str| {
            if self.stable && unstable::is_service(name) {
                return false;
            }
            self.threads.is_empty()
                || self.threads.iter().any(|text| {
                    // A thread's name has no dots that would matter, so that one star means
                    // anything.
                    let anything = text.replace('*', "**");
                    if text.contains('*') { glob(&anything, name) } else { name.contains(text) }
                })
        };
        let rows: Vec<bool> =
            profile.threads.iter().map(|(id, _)| wanted(&profile.thread_name(id))).collect();
        match self.threads.is_empty() || rows.contains(&true) {
            true => Ok(Some(rows)),
            false => Err(AnalysisError::NoThread { wanted: self.threads.join(", ") }),
        }
    }
}

/// Why there is nothing to show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AnalysisError {
    /// No metric was given, or the profile has none.
    NoSeries,
    /// A time range was asked of a series that has no times.
    NoTimes {
        series: String,
    },
    NoThread {
        wanted: String,
    },
    /// No frame of the profile is what a package or root pattern means.
    NoMatch {
        wanted: String,
    },
}

impl fmt::Display for AnalysisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnalysisError::NoSeries => write!(f, "the profile holds no values"),
            AnalysisError::NoTimes { series } => write!(
                f,
                "the {series} values were recorded without times, so that no range of time can be \
                 cut out of them"
            ),
            AnalysisError::NoThread { wanted } => {
                write!(f, "no thread has a name like {wanted:?}")
            }
            AnalysisError::NoMatch { wanted } => write!(f, "nothing in the profile is {wanted:?}"),
        }
    }
}

impl std::error::Error for AnalysisError {}
