//! What a tree lacks, or may have too much of, as the recording tells of it.

use tare_arena::Snapshot;
use tare_profile::{LossKind, RunInfo};

#[derive(Clone, Copy, Default)]
pub(super) struct Missing {
    /// Calls without a context of their own, shown as `rest`.
    refused: u64,
    lost: u64,
    pub(super) pruned: u64,
    rest: &'static str,
    doubted_waits: u64,
    unseen_threads: u64,
    untold: u64,
}

impl Missing {
    pub(super) fn of(snapshot: &Snapshot, rest: &'static str) -> Self {
        let &Snapshot { refused, lost, pruned, doubted_waits, unseen_threads, untold, .. } =
            snapshot;
        Missing { refused, lost, pruned, rest, doubted_waits, unseen_threads, untold }
    }

    pub(super) fn account(&self, run: &mut RunInfo) {
        let rest = self.rest;
        let mut lose = |kind, what, count, reason: &str| {
            if count > 0 {
                run.lose(kind, what, count, reason);
            }
        };
        let reason = format!(
            "the memory for trees was full; what was called least made room, {rest} has its calls"
        );
        lose(LossKind::Pruned, "contexts", self.pruned, &reason);
        let reason = format!("the memory for trees was full; {rest} has the calls");
        lose(LossKind::Folded, "calls in new contexts", self.refused, &reason);
        let reason = "there was no memory left to count them";
        lose(LossKind::Dropped, "calls", self.lost, reason);
        let reason = "nobody can tell whether they waited for a thread that weaving held up; the \
                      wait is in their times";
        lose(LossKind::Skipped, "waits inside the JVM", self.doubted_waits, reason);
        let reason = "there were too many threads, or classes came too quickly, to look which of them \
                      waited for a thread that weaving held up; such waits are in their times";
        lose(LossKind::Skipped, "looks at threads", self.unseen_threads, reason);
        let reason = "the agent of --agent-jar was not told of them: it was busy, had been given up, or \
                      there was no room for their context; the figures have them";
        lose(LossKind::Dropped, "contexts for the agent", self.untold, reason);
    }
}
