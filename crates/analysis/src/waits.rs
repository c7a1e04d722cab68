//! Who waits for whom: threads that wait in a circle and for ever, who waits behind them, and whom
//! the others wait for in the end.
//!
//! A thread waits for one other at most, the owner of what it wants. So from each thread one path
//! leads away, which ends at a thread that waits for nobody, or runs into a circle.

/// What one thread waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiter {
    /// The place of the thread that has what this one wants.
    pub owner: Option<usize>,
    /// It waits for a limited time, and goes on after that whatever happens.
    pub timed: bool,
}

/// The threads that wait for one thread, directly or behind others: each with its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub thread: usize,
    /// Who waits for this one, those with most behind them first.
    pub behind: Vec<Waiting>,
    /// All threads in this tree but its root.
    pub count: usize,
}

impl Waiting {
    /// Everybody in the tree with how far down it is, each before those who wait for it.
    #[must_use]
    pub fn in_order(&self) -> Vec<(usize, usize)> {
        let (mut all, mut open) = (Vec::new(), vec![(0, self)]);
        while let Some((depth, waiting)) = open.pop() {
            all.push((depth, waiting.thread));
            open.extend(waiting.behind.iter().rev().map(|next| (depth + 1, next)));
        }
        all
    }
}

/// Threads each of which waits for the next, and the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// From the one with the lowest place on.
    pub members: Vec<usize>,
    /// Who waits for a member and is none: for each member that has any, in the same order.
    pub victims: Vec<Waiting>,
}

/// Everything about who waits for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Circles in which nobody's time runs out: none of their members will ever go on.
    pub deadlocks: Vec<Circle>,
    /// Threads that wait for nobody, or only for a time, and for whom others wait: those with most
    /// behind them first.
    pub blockers: Vec<Waiting>,
}

/// Works out who waits for whom. An owner that does not exist is none.
#[must_use]
pub fn waits(threads: &[Waiter]) -> Waits {
    let next = |at: usize| threads[at].owner.filter(|owner| *owner < threads.len());
    let mut circles = circles(threads.len(), next);
    // A circle in which somebody's time runs out is cut there: that one goes on, then the others.
    let mut cut = vec![false; threads.len()];
    circles.retain(|members| {
        let first = members.iter().find(|at| threads[**at].timed);
        first.inspect(|at| cut[**at] = true).is_none()
    });
    let mut in_circle = vec![false; threads.len()];
    circles.iter().flatten().for_each(|at| in_circle[*at] = true);

    let owner = |at: usize| next(at).filter(|_| !cut[at]);
    let mut behind = vec![Vec::new(); threads.len()];
    for at in (0..threads.len()).filter(|at| !in_circle[*at]) {
        if let Some(owner) = owner(at) {
            behind[owner].push(at);
        }
    }
    let deadlocks = circles
        .into_iter()
        .map(|members| {
            let victims = members.iter().map(|at| tree(*at, &behind));
            let victims = victims.filter(|tree| tree.count > 0).collect();
            Circle { members, victims }
        })
        .collect();
    let free = |at: &usize| !in_circle[*at] && owner(*at).is_none() && !behind[*at].is_empty();
    let mut blockers: Vec<_> =
        (0..threads.len()).filter(free).map(|at| tree(at, &behind)).collect();
    order(&mut blockers);
    Waits { deadlocks, blockers }
}

/// All circles, each from its lowest place on, in that order.
fn circles(count: usize, next: impl Fn(usize) -> Option<usize>) -> Vec<Vec<usize>> {
    /// From which start a thread was first reached.
    const NEVER: usize = usize::MAX;
    let mut reached = vec![NEVER; count];
    let mut found = Vec::new();
    for start in 0..count {
        let mut at = Some(start);
        while let Some(place) = at.filter(|place| reached[*place] == NEVER) {
            reached[place] = start;
            at = next(place);
        }
        // Reached again on the way from here: the path has run into itself.
        if let Some(first) = at.filter(|place| reached[*place] == start) {
            let mut members = vec![first];
            let mut place = next(first);
            while let Some(member) = place.filter(|place| *place != first) {
                members.push(member);
                place = next(member);
            }
            let lowest = members.iter().enumerate().min_by_key(|(_, at)| **at);
            let lowest = lowest.map_or(0, |(at, _)| at);
            members.rotate_left(lowest);
            found.push(members);
        }
    }
    found.sort_unstable();
    found
}

/// Who waits for a thread, without recursion: chains may be as long as there are threads.
fn tree(root: usize, behind: &[Vec<usize>]) -> Waiting {
    let node = |thread| Waiting { thread, behind: Vec::new(), count: 0 };
    let mut open = vec![(node(root), 0)];
    loop {
        let Some((top, taken)) = open.last_mut() else { return node(root) };
        if let Some(child) = behind[top.thread].get(*taken) {
            *taken += 1;
            open.push((node(*child), 0));
            continue;
        }
        order(&mut top.behind);
        let Some((done, _)) = open.pop() else { return node(root) };
        match open.last_mut() {
            Some((parent, _)) => {
                parent.count += 1 + done.count;
                parent.behind.push(done);
            }
            None => return done,
        }
    }
}

fn order(all: &mut [Waiting]) {
    all.sort_by_key(|waiting| (std::cmp::Reverse(waiting.count), waiting.thread));
}

impl Drop for Waiting {
    /// A chain of many threads is a deep tree; dropping it one in the other would take that much
    /// stack.
    fn drop(&mut self) {
        let mut open = std::mem::take(&mut self.behind);
        while let Some(mut waiting) = open.pop() {
            open.append(&mut waiting.behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(owner: Option<usize>) -> Waiter {
        Waiter { owner, timed: false }
    }

    fn threads(owners: &[Option<usize>]) -> Vec<Waiter> {
        owners.iter().map(|owner| waiter(*owner)).collect()
    }

    fn places(tree: &Waiting) -> Vec<usize> {
        tree.in_order().into_iter().map(|(_, thread)| thread).collect()
    }

    #[test]
    fn a_circle_has_its_victims_as_a_tree() {
        // 0 and 1 wait for each other, 2 for 0, 3 for 2, 4 for 2; 6 for 5; 7 for nobody.
        let owners = [Some(1), Some(0), Some(0), Some(2), Some(2), None, Some(5), None].as_slice();
        let waits = waits(&threads(owners));
        assert_eq!(waits.deadlocks.len(), 1);
        let circle = &waits.deadlocks[0];
        assert_eq!(circle.members, [0, 1]);
        assert_eq!(circle.victims.len(), 1);
        assert_eq!(places(&circle.victims[0]), [0, 2, 3, 4]);
        assert_eq!(circle.victims[0].in_order(), [(0, 0), (1, 2), (2, 3), (2, 4)]);
        assert_eq!(circle.victims[0].count, 3);
        assert_eq!(waits.blockers.iter().map(places).collect::<Vec<_>>(), [[5, 6]]);
    }

    #[test]
    fn a_circle_with_a_time_limit_is_no_deadlock() {
        let mut all = threads(&[Some(1), Some(2), Some(0)]);
        all[1].timed = true;
        let waits = waits(&all);
        assert_eq!(waits.deadlocks, []);
        assert_eq!(waits.blockers.iter().map(places).collect::<Vec<_>>(), [[1, 0, 2]]);
    }

    #[test]
    fn one_who_waits_for_itself_and_owners_that_are_not_there() {
        let waits = waits(&threads(&[Some(0), Some(9), Some(1)]));
        assert_eq!(waits.deadlocks[0].members, [0]);
        assert_eq!(waits.blockers.iter().map(places).collect::<Vec<_>>(), [[1, 2]]);
    }

    #[test]
    fn a_chain_of_very_many_takes_no_stack() {
        let count = 300_000;
        let all: Vec<_> = (0..count).map(|at: usize| waiter(at.checked_sub(1))).collect();
        assert_eq!(waits(&all).blockers[0].count, count - 1);
    }

    /// The slow definition: a thread is in a deadlock if following owners leads back to it and
    /// nobody on that way has a limited time; it is behind whomever its way leads to.
    #[test]
    fn any_graph_is_told_as_the_definition_has_it() {
        let mut seed = 1_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        let (mut circles, mut blocked) = (0, 0);
        for _ in 0..3_000 {
            let count = 1 + random(12);
            let all: Vec<Waiter> = (0..count)
                .map(|_| Waiter {
                    owner: Some(random(count + 3)).filter(|_| random(4) > 0),
                    timed: random(5) == 0,
                })
                .collect();
            let way = |from: usize| {
                let mut way = vec![from];
                for _ in 0..count {
                    let owner = all[way[way.len() - 1]].owner.filter(|owner| *owner < count);
                    way.extend(owner);
                }
                way
            };
            let dead = |at: usize| {
                let way = way(at);
                let back = way.iter().skip(1).position(|place| *place == at);
                back.is_some_and(|back| !way[..=back].iter().any(|at| all[*at].timed))
            };
            let found = waits(&all);
            let members: Vec<usize> =
                found.deadlocks.iter().flat_map(|circle| circle.members.clone()).collect();
            for at in 0..count {
                assert_eq!(members.contains(&at), dead(at), "{at} of {all:?}");
            }
            let victims: Vec<usize> = found
                .deadlocks
                .iter()
                .flat_map(|circle| circle.victims.iter().flat_map(|tree| places(tree).split_off(1)))
                .collect();
            for at in 0..count {
                let leads = !dead(at) && way(at).iter().any(|place| dead(*place));
                assert_eq!(victims.contains(&at), leads, "{at} of {all:?}");
            }
            // Everybody else who waits for somebody is in exactly one tree of a blocker.
            let free: Vec<usize> = found.blockers.iter().flat_map(places).collect();
            for at in (0..count).filter(|at| !dead(*at) && !victims.contains(at)) {
                // One that waits for itself, for a time, is nobody's business.
                let owner = all[at].owner.filter(|owner| *owner < count && *owner != at);
                let others = (0..count).filter(|other| *other != at);
                let awaited = others.into_iter().any(|other| all[other].owner == Some(at));
                let times = free.iter().filter(|place| **place == at).count();
                assert_eq!(times, usize::from(owner.is_some() || awaited), "{at} of {all:?}");
            }
            circles += found.deadlocks.len();
            blocked += found.blockers.len();
        }
        assert!(circles > 300 && blocked > 300, "{circles} circles, {blocked} blockers");
    }
}
