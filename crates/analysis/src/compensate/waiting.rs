//! Where callees leave what they weigh for their callers, while contexts are gone through from the
//! last to the first. Few callers wait at a time, so it takes little memory.

use super::groups::Nodes;
use super::{Callees, NOWHERE};
use tare_profile::ContextId;

/// What callees have told so far that their callers were not asked yet, of one group.
pub(super) struct Waiting<'r> {
    /// By context of the profile: [`NOWHERE`], [`ALONE`], or where its callees are.
    places: &'r mut [u32],
    callees: Vec<Callees>,
    /// Places that were left.
    free: Vec<u32>,
}

/// A context of the group of which no callee has told anything.
const ALONE: u32 = NOWHERE - 1;

impl<'r> Waiting<'r> {
    pub fn of(nodes: Nodes<'_>, places: &'r mut [u32]) -> Self {
        nodes.iter().for_each(|(context, _)| places[context.index()] = ALONE);
        Waiting { places, callees: Vec::new(), free: Vec::new() }
    }

    /// What the callees of a context of the group have told; afterwards it is not of it any more.
    pub fn take(&mut self, context: ContextId) -> Callees {
        match std::mem::replace(&mut self.places[context.index()], NOWHERE) {
            NOWHERE | ALONE => Callees::default(),
            place => {
                self.free.push(place);
                self.callees[place as usize]
            }
        }
    }

    /// Where a callee tells, if the caller is of the group.
    pub fn caller(&mut self, context: ContextId) -> Option<&mut Callees> {
        let place = &mut self.places[context.index()];
        match *place {
            NOWHERE => return None,
            ALONE => {
                *place = self.free.pop().unwrap_or(self.callees.len() as u32);
                let at = *place as usize;
                self.callees.resize(self.callees.len().max(at + 1), Callees::default());
                self.callees[at] = Callees::default();
            }
            _ => {}
        }
        self.callees.get_mut(*place as usize)
    }
}
