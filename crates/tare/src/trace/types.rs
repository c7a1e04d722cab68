//! What code a traced method ran in: the interpreter's or a compiler's, as the agent's notes of
//! compilations tell; and whether the method is static.

use tare_profile::{FrameId, StringId};

/// HotSpot's tiers are 1 to 4; 0 is the interpreter.
const TIERS: u8 = 5;

/// The type of a method at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Type(u8);

impl Type {
    pub const COUNT: usize = 2 * TIERS as usize;

    pub fn new(is_static: bool, tier: u8) -> Self {
        Type(tier.min(TIERS - 1) + if is_static { TIERS } else { 0 })
    }

    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// As it stands in a recording.
    pub fn name(self) -> String {
        let tier = match self.0 % TIERS {
            0 => "interpreted".to_owned(),
            tier => format!("tier {tier}"),
        };
        if self.0 >= TIERS { format!("static {tier}") } else { tier }
    }

    pub fn all() -> impl Iterator<Item = Type> {
        (0..Type::COUNT as u8).map(Type)
    }
}

/// What is known of a method.
#[derive(Debug, Default)]
pub struct Known {
    pub frame: Option<FrameId>,
    pub is_static: bool,
    /// When its code became another, and of which tier that is. By time.
    changes: Vec<(u64, u8)>,
}

impl Known {
    /// Its type at a time. Compilations are few, and the last one mostly decides.
    pub fn at(&self, time: u64) -> Type {
        let tier = self.changes.iter().rev().find(|(since, _)| *since <= time).map_or(0, |c| c.1);
        Type::new(self.is_static, tier)
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
    pub types: [StringId; Type::COUNT],
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
        assert_eq!(Type::new(false, 200).name(), "tier 4");
        assert_eq!(Type::all().count(), Type::COUNT);
    }
}
