//! What code a traced method ran in at a time, as the agent's notes of compilations tell; and how
//! calls end.

use tare_analysis::{MethodType, Transition};
use tare_profile::{FrameId, StringId};

/// What is known of a method.
#[derive(Debug, Default)]
pub struct Known {
    pub frame: Option<FrameId>,
    pub is_static: bool,
    pub is_native: bool,
    /// When its code became another, and of which tier that is. By time.
    changes: Vec<(u64, u8)>,
}

impl Known {
    /// Its type at a time. Compilations are few, and the last one mostly decides.
    pub fn at(&self, time: u64) -> MethodType {
        if self.is_native {
            return MethodType::native(self.is_static);
        }
        let tier = self.changes.iter().rev().find(|(since, _)| *since <= time).map_or(0, |c| c.1);
        MethodType::new(self.is_static, tier)
    }

    pub fn change(&mut self, time: u64, tier: u8) {
        self.changes.push((time, tier));
    }
}

/// All methods, by id.
#[derive(Debug, Default)]
pub struct Methods(Vec<Known>);

/// Ids are given out one by one; a larger one than this is damage.
const MOST: u32 = 1 << 24;

impl Methods {
    pub fn get(&mut self, id: u32) -> Option<&mut Known> {
        let place = id as usize;
        if place >= self.0.len() {
            if id >= MOST {
                return None;
            }
            self.0.resize_with(place + 1, Known::default);
        }
        self.0.get_mut(place)
    }
}

/// The texts of a trace's rows, interned once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts {
    pub exits: [StringId; Exit::COUNT],
    pub types: [StringId; MethodType::COUNT],
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Return,
    Exception,
    /// The trace ended first.
    Running,
    /// Its end was dropped, or passed no probe.
    Cut,
}

impl Exit {
    pub const COUNT: usize = 4;
    pub const ALL: [Exit; Exit::COUNT] = [Exit::Return, Exit::Exception, Exit::Running, Exit::Cut];

    pub fn name(self) -> &'static str {
        match self {
            Exit::Return => "return",
            Exit::Exception => "exception",
            Exit::Running => "running",
            Exit::Cut => "cut",
        }
    }

    /// As a transition, if it was seen.
    pub fn transition(self) -> Option<Transition> {
        match self {
            Exit::Return => Some(Transition::Exit),
            Exit::Exception => Some(Transition::Thrown),
            Exit::Running | Exit::Cut => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_that_of_the_moment() {
        let mut known = Known { is_static: true, ..Known::default() };
        known.change(10, 3);
        known.change(20, 4);
        known.change(30, 0);
        let names: Vec<String> = [9, 10, 25, 30].map(|time| known.at(time).name()).into();
        assert_eq!(
            names,
            ["static interpreted", "static tier 3", "static tier 4", "static interpreted"]
        );
        known.is_native = true;
        assert_eq!(known.at(25).name(), "static native");
    }
}
