//! The flags of `tare record` as the plan of an exact recording: the one place where it is decided
//! what a combination of flags means. Which flags go together is `cli`'s to say.

use super::agent_jar;
use crate::cli::RecordArgs;
use crate::target_costs::TargetCosts;
use anyhow::Result;
use tare_protocol::{
    BytecodeSamples, Counted, ExactPlan, Figures, Follow, Measure, Roots, SomeTimes, TracePlan,
    TreePlan, TreeRoots,
};
use tare_session::engines::exact::{FIRST_ONE_IN, FindRoots};

/// What the agent is to weave and measure.
pub fn plan(args: &RecordArgs) -> Result<ExactPlan> {
    Ok(ExactPlan {
        include: args.include.clone(),
        also: Vec::new(),
        exclude: args.exclude.clone(),
        // With roots the methods that would be little but probe are left out, unless they are asked
        // for.
        skip_trivial: args.skip_trivial || (!args.root.is_empty() && !args.no_skip_trivial),
        allow_huge: args.allow_huge,
        max_pause_ns: u64::try_from(args.max_pause.as_nanos()).unwrap_or(u64::MAX),
        memory: args.memory,
        measure: measure(args)?,
    })
}

fn measure(args: &RecordArgs) -> Result<Measure> {
    let roots = Roots::of(args.root.clone(), args.scheme);
    if args.trace {
        let wait = args.wait.map_or(0, |wait| wait.as_millis() as u64);
        return Ok(Measure::Trace(TracePlan { ring: args.ring, wait, roots }));
    }
    if !args.exact && !args.bytecodes && !args.alloc_exact {
        return Ok(Measure::Regions(args.region.clone()));
    }
    let depth = args.depth.unwrap_or(0);
    if let Some(every) = args.every {
        return Ok(Measure::Samples(BytecodeSamples {
            blocks: args.blocks,
            every,
            random: args.random,
            agent_jar: args.agent_jar.as_deref().map(agent_jar::checked).transpose()?,
            fold: args.fold_recursion,
            depth,
        }));
    }
    let follow_threads = args.follow_threads;
    let within = follows_within_budget(args).then_some(FIRST_ONE_IN);
    let one_in = args.follow.or(within);
    let follow = one_in.map(|one_in| Follow { one_in, seed: args.seed, kept: args.slowest });
    let roots = roots.map(|roots| TreeRoots { roots, follow_threads, follow });
    Ok(Measure::Trees(TreePlan { figures: figures(args)?, roots, depth }))
}

/// Whether a budget is held by how many calls of roots are followed. What cannot be followed, or names
/// what is to be recorded, has the other way: methods that are no longer timed.
fn follows_within_budget(args: &RecordArgs) -> bool {
    let whole = args.follow_threads || args.cpu || !args.region.is_empty();
    args.share().is_some() && args.exact && !args.bytecodes && !whole
}

/// Whether roots are to be looked for, and how their calls are followed then.
pub fn finds_roots(args: &RecordArgs) -> Option<FindRoots> {
    let named = !args.root.is_empty()
        || !args.include.is_empty()
        || !args.count_only.is_empty()
        || args.time_all
        || args.depth.is_some();
    let finds = follows_within_budget(args) && !named;
    let follow = Follow { one_in: FIRST_ONE_IN, seed: args.seed, kept: args.slowest };
    finds.then_some(FindRoots { follow, skip_trivial: !args.no_skip_trivial })
}

fn figures(args: &RecordArgs) -> Result<Figures> {
    let (fold, regions) = (args.fold_recursion, args.region.clone());
    Ok(if args.bytecodes {
        let counted = match args.target.as_deref() {
            Some(target) => Counted::Costs(TargetCosts::read(target)?.units()),
            None => Counted::Number {
                allocations: args.allocations,
                agent_jar: args.agent_jar.as_deref().map(agent_jar::checked).transpose()?,
            },
        };
        Figures::Bytecodes { blocks: args.blocks, fold, counted }
    } else if args.alloc_exact {
        Figures::Sites { fold, watch: args.live.clone() }
    } else if args.count {
        Figures::Counts { fold, regions }
    } else {
        Figures::Times {
            cpu_time: args.cpu_time,
            some: some_times(args),
            all: args.time_all,
            count_only: args.count_only.clone(),
            regions,
        }
    })
}

/// One call in so many is timed, unless all of them are asked for. A budget is held by methods that
/// are not timed at all, which takes the times of all others.
const TIMED_ONE_IN: u32 = 32;

fn some_times(args: &RecordArgs) -> Option<SomeTimes> {
    // Where roots are looked for, this is for a program without.
    let budget = args.share().is_some() && finds_roots(args).is_none();
    let all = args.time_all || budget || args.follow.is_some();
    let by_default = (!all).then_some(TIMED_ONE_IN);
    let one_in = args.time_some.or(by_default).filter(|one_in| *one_in > 1)?;
    Some(SomeTimes { one_in, seed: args.seed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn of(flags: &str) -> Measure {
        let words = ["tare", "record", "4711"].into_iter().chain(flags.split_whitespace());
        match Cli::try_parse_from(words).map(|cli| cli.command) {
            Ok(Some(Command::Record(args))) => plan(&args).unwrap().measure,
            other => panic!("{flags}: {:?}", other.err()),
        }
    }

    #[test]
    fn roots_are_looked_for_where_nothing_says_what_is_recorded() {
        let finds = |flags: &str| {
            let words = ["tare", "record", "4711", "--exact"].into_iter();
            match Cli::try_parse_from(words.chain(flags.split_whitespace())).map(|cli| cli.command)
            {
                Ok(Some(Command::Record(args))) => finds_roots(&args).is_some(),
                other => panic!("{flags}: {:?}", other.err()),
            }
        };
        for flags in ["--overhead 5%", "--overhead 5% --exclude a.**", "--overhead 1% --cpu-time"] {
            assert!(finds(flags), "{flags}");
        }
        for flags in [
            "",
            "--overhead none",
            "--overhead 5% --root a.B.c",
            "--overhead 5% --include a.**",
            "--overhead 5% --cpu",
            "--overhead 5% --depth 9",
            "--overhead 5% --time-all",
            "--overhead 5% --region a.B:3-9",
        ] {
            assert!(!finds(flags), "{flags}");
        }
    }

    #[test]
    fn flags_mean_what_they_say() {
        let trees = |flags| match of(flags) {
            Measure::Trees(trees) => trees,
            other => panic!("{flags}: {other:?}"),
        };
        assert!(matches!(trees("--exact").figures, Figures::Times { cpu_time: false, .. }));
        assert!(matches!(
            trees("--exact --count --fold-recursion").figures,
            Figures::Counts { fold: true, .. }
        ));
        let some = |flags| match trees(flags).figures {
            Figures::Times { some, all, .. } => (some.map(|some| (some.one_in, some.seed)), all),
            other => panic!("{flags}: {other:?}"),
        };
        assert_eq!(some("--exact --seed 7"), (Some((32, 7)), false));
        assert_eq!(some("--exact --time-some=8 --time-all"), (Some((8, 1)), true));
        assert_eq!(some("--exact --time-some=1"), (None, false));
        assert_eq!(some("--exact --time-all"), (None, true));
        assert_eq!(some("--exact --include a.** --overhead 20%"), (None, false));
        assert_eq!(some("--exact --overhead none"), (Some((32, 1)), false));
        // For a program without roots.
        assert_eq!(some("--exact --overhead 5%"), (Some((32, 1)), false));
        let followed = trees("--exact --root a.B.c --follow 1/100 --seed 3");
        let follow = followed.roots.and_then(|roots| roots.follow);
        assert_eq!(follow, Some(Follow { one_in: 100, seed: 3, kept: 20 }));
        assert!(matches!(followed.figures, Figures::Times { some: None, .. }));
        let within = |flags| trees(flags).roots.and_then(|roots| roots.follow);
        let chosen = within("--exact --root a.B.c --overhead 5% --slowest 7");
        assert_eq!(chosen, Some(Follow { one_in: FIRST_ONE_IN, seed: 1, kept: 7 }));
        assert_eq!(within("--exact --root a.B.c --overhead 5% --follow-threads"), None);
        let rooted = trees("--exact --root a.B.c --follow-threads --depth 7");
        assert!(rooted.roots.is_some_and(|roots| roots.follow_threads));
        assert_eq!(rooted.depth, 7);
        let counted = trees("--bytecodes --allocations").figures;
        let Figures::Bytecodes { counted: Counted::Number { allocations, .. }, .. } = counted
        else {
            panic!("{counted:?}");
        };
        assert!(allocations);
        let sites = trees("--alloc-exact --root a.B.c --fold-recursion --live a.** --live byte[]");
        let Figures::Sites { fold: true, watch } = &sites.figures else {
            panic!("{:?}", sites.figures);
        };
        assert_eq!(watch.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a.**", "byte[]"]);
        assert!(sites.roots.is_some());
        assert!(matches!(of("--bytecodes --every 500"), Measure::Samples(s) if s.every == 500));
        assert!(matches!(
            of("--trace --ring 64K --wait 5ms"),
            Measure::Trace(TracePlan { ring: 65536, wait: 5, roots: None })
        ));
        assert!(matches!(of("--region a.B:3-9"), Measure::Regions(regions) if regions.len() == 1));
        assert!(matches!(trees("--exact --count --region a.B.c").figures,
            Figures::Counts { regions, .. } if regions.len() == 1));
    }
}
