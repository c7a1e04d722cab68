//! What is known about a run as a whole, and what its profile lacks.

use crate::facts::Facts;

/// What is known about a run. Empty and zero mean "not known".
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunInfo {
    /// What measured it, with its version: `tare 0.1.0`, `async-profiler 4.0`.
    pub tool: String,
    /// The command line of the profiled program, argument by argument.
    pub command_line: Vec<String>,
    pub main_class: String,
    pub pid: Option<u32>,
    /// The JDK's version, such as `25.0.3+9`.
    pub jdk: String,
    /// The virtual machine's name and vendor.
    pub vm: String,
    /// The JVM's flags.
    pub flags: Vec<String>,
    pub host: String,
    pub os: String,
    pub cpus: Option<u32>,
    /// What was asked for, in words for people; nothing is computed from it. Names may be there
    /// several times.
    pub options: Vec<(String, String)>,
    /// What it came to, for analyses to compute with.
    pub facts: Facts,
    /// When the run's clock was zero, in nanoseconds since 1970.
    pub started: Option<i64>,
    /// How long it was measured, in nanoseconds.
    pub duration: u64,
    /// Everything that the figures lack.
    pub losses: Vec<Loss>,
}

/// How something came to be missing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LossKind {
    /// Measured and thrown away, because there was no room or no time.
    Dropped,
    /// Left out by choice: a filter, an overhead budget.
    Skipped,
    /// Not measured because it cannot be measured rightly: a method that could not be woven.
    Refused,
    /// Tried, and it did not work: a stack that could not be walked.
    Failed,
    /// Contexts that made room for others; a `[pruned]` node has their values.
    Pruned,
    /// Recursion or depth whose values went to a `[folded]` node.
    Folded,
    /// Was there once and could not be read back.
    Damaged,
}

impl LossKind {
    pub const ALL: [LossKind; 7] = [
        LossKind::Dropped,
        LossKind::Skipped,
        LossKind::Refused,
        LossKind::Failed,
        LossKind::Pruned,
        LossKind::Folded,
        LossKind::Damaged,
    ];

    /// A lasting name, used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            LossKind::Dropped => "dropped",
            LossKind::Skipped => "skipped",
            LossKind::Refused => "refused",
            LossKind::Failed => "failed",
            LossKind::Pruned => "pruned",
            LossKind::Folded => "folded",
            LossKind::Damaged => "damaged",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        LossKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Something that the profile lacks, how much of it, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    pub kind: LossKind,
    /// Of what: `samples`, `stacks`, `methods`, or the name of one method.
    pub name: String,
    pub count: u64,
    pub reason: String,
}

impl RunInfo {
    /// Adds to the count of an equal loss, or notes a new one.
    pub fn lose(&mut self, kind: LossKind, name: &str, count: u64, reason: &str) {
        let same =
            |loss: &&mut Loss| loss.kind == kind && loss.name == name && loss.reason == reason;
        match self.losses.iter_mut().find(same) {
            Some(loss) => loss.count = loss.count.saturating_add(count),
            None => {
                let (name, reason) = (name.to_owned(), reason.to_owned());
                self.losses.push(Loss { kind, name, count, reason });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_losses_add_up() {
        let mut run = RunInfo::default();
        run.lose(LossKind::Dropped, "samples", 3, "ring full");
        run.lose(LossKind::Dropped, "samples", 4, "ring full");
        run.lose(LossKind::Failed, "samples", 1, "ring full");
        let counts: Vec<u64> = run.losses.iter().map(|loss| loss.count).collect();
        assert_eq!(counts, [7, 1]);
    }

    #[test]
    fn names_lead_back_to_kinds() {
        for kind in LossKind::ALL {
            assert_eq!(LossKind::from_name(kind.name()), Some(kind));
        }
    }
}
