//! What is held by less than a strong reference: how strongly at best.

use crate::classes::Strength;
use crate::graph::{Graph, UNIT};
use crate::ids::Node;
use crate::index::Column;
use serde::{Deserialize, Serialize};

/// How an object can be reached, from the strongest way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    Strong,
    Soft,
    Weak,
    /// Waits for its finalizer.
    Final,
    Phantom,
    /// Garbage that was not collected yet.
    Unreachable,
}

impl Level {
    pub const ALL: [Level; 6] =
        [Level::Strong, Level::Soft, Level::Weak, Level::Final, Level::Phantom, Level::Unreachable];

    pub fn name(self) -> &'static str {
        match self {
            Level::Strong => "strongly",
            Level::Soft => "only softly",
            Level::Weak => "only weakly",
            Level::Final => "only by the finalizer",
            Level::Phantom => "only by phantom references",
            Level::Unreachable => "not",
        }
    }

    fn of(strength: Strength) -> Level {
        match strength {
            Strength::Strong => Level::Strong,
            Strength::Soft => Level::Soft,
            Strength::Weak => Level::Weak,
            Strength::Final => Level::Final,
            Strength::Phantom => Level::Phantom,
        }
    }
}

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    pub objects: u64,
    pub bytes: u64,
}

impl Sum {
    pub fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

pub struct Levels {
    /// By node; those of a tree are strong.
    pub(crate) level: Column<u8>,
    sums: [Sum; Level::ALL.len()],
}

impl Levels {
    /// From the places of a search: 0 is what it did not reach.
    pub fn new(graph: &Graph, places: &[u32]) -> Levels {
        const UNREACHABLE: u8 = Level::Unreachable as u8;
        let mut level: Vec<u8> =
            places.iter().map(|place| if *place == 0 { UNREACHABLE } else { 0 }).collect();
        let mut waiting: Vec<Node> = Vec::new();
        for now in [Level::Soft, Level::Weak, Level::Final, Level::Phantom] {
            // What is found may hold references of the same or a stronger kind.
            loop {
                for special in &graph.special {
                    let is_held = level[special.from as usize] <= now as u8;
                    let is_new = level[special.to as usize] == UNREACHABLE;
                    if is_held && is_new && Level::of(special.strength) <= now {
                        level[special.to as usize] = now as u8;
                        waiting.push(special.to);
                    }
                }
                if waiting.is_empty() {
                    break;
                }
                while let Some(node) = waiting.pop() {
                    for to in graph.list(node) {
                        if level[*to as usize] == UNREACHABLE {
                            level[*to as usize] = now as u8;
                            waiting.push(*to);
                        }
                    }
                }
            }
        }
        let mut sums = [Sum::default(); Level::ALL.len()];
        for (level, size) in level.iter().zip(&graph.size) {
            sums[usize::from(*level)].add(u64::from(*size) * UNIT);
        }
        Levels { level: level.into(), sums }
    }

    pub fn stored(level: Column<u8>, sums: [Sum; Level::ALL.len()]) -> Levels {
        Levels { level, sums }
    }

    pub fn of(&self, node: Node) -> Level {
        let level = usize::from(self.level.get(node as usize));
        Level::ALL.get(level).copied().unwrap_or(Level::Unreachable)
    }

    pub fn sum(&self, level: Level) -> Sum {
        self.sums[level as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Special;

    #[test]
    fn the_strongest_way_counts() {
        // 0 is held. 0 ~soft~> 1 -> 2 ~weak~> 3; 0 ~weak~> 2; 4 ~soft~> 5, where nothing holds 4.
        let lists =
            vec![(1, vec![]), (1, vec![2]), (1, vec![]), (2, vec![]), (3, vec![]), (1, vec![])];
        let mut graph = Graph::of_lists(&lists, &[0]);
        let special = |from, to, strength| Special { from, to, strength };
        graph.special = vec![
            special(2, 3, Strength::Weak),
            special(0, 2, Strength::Weak),
            special(0, 1, Strength::Soft),
            special(4, 5, Strength::Soft),
        ];
        let levels = Levels::new(&graph, &[1, 0, 0, 0, 0, 0]);
        let found: Vec<Level> = (0..6).map(|node| levels.of(node)).collect();
        use Level::{Soft, Strong, Unreachable, Weak};
        assert_eq!(found, [Strong, Soft, Soft, Weak, Unreachable, Unreachable]);
        assert_eq!(levels.sum(Unreachable), Sum { objects: 2, bytes: 4 * UNIT });
    }
}
