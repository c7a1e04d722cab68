//! An exact recording as a source of a file: its looks, its account of what is missing, and what is
//! true at its end only.

use super::Exact;
use crate::error::Result;
use crate::recorder::Source;
use crate::stream::Watched;
use tare_profile::facts::{ProbeCost, keys};
use tare_profile::{ContextId, LossKind, Profile, RunInfo, ThreadId};

impl Exact {
    /// The context and thread of a node, as of the last look.
    pub(super) fn seen(&self, node: u32) -> Option<(ContextId, ThreadId)> {
        let seen = self.nodes.of(node)?;
        (seen.context != ContextId::ROOT).then_some((seen.context, seen.thread))
    }
}

impl Source for Exact {
    fn look(&mut self, profile: &mut Profile, now: u64) -> Result<()> {
        // First: what it tells of has been in the trees before.
        self.watched.iter_mut().for_each(Watched::drain);
        let snapshot = self.arena.trees()?;
        self.add(&snapshot, profile)?;
        if let Some(mut watched) = self.watched.take() {
            watched.add(profile, |node| self.seen(node));
            self.watched = Some(watched);
        }
        self.looked = now;
        Ok(())
    }

    fn account(&self, run: &mut RunInfo) {
        run.facts.set(keys::CALIBRATION, &ProbeCost::of_lines(&self.status.calibration));
        self.demoted(run);
        self.searched(run);
        // The agent's last word may be older than the last look.
        let names = self.status.regions.iter().enumerate();
        let passed: Vec<String> = names
            .filter(|(number, _)| self.regions.has(*number))
            .map(|(_, region)| format!("region {region}"))
            .collect();
        for refused in self.status.refused.iter().filter(|r| !passed.contains(&r.what)) {
            run.lose(LossKind::Refused, &refused.what, refused.count, &refused.reason);
        }
        self.missing.account(run);
        self.origins.account(run);
        self.watched.iter().for_each(|watched| watched.account(run));
        self.followed.account(run);
        self.lengths.account(run);
    }

    fn complete(&self, profile: &mut Profile) {
        self.watched.iter().for_each(|watched| watched.complete(profile));
        self.followed.complete(profile, &self.frames);
        self.lengths.complete(profile);
    }
}
