//! The plan of an exact recording as fields of a message.
//!
//! `measure` says what is measured, and with it which other fields there are. Fields that another
//! measure has are left alone, so no message can ask for what does not go together.

use super::plan::{
    BytecodeSamples, Counted, ExactPlan, Figures, Follow, Measure, Roots, Scheme, SomeTimes,
    TracePlan, TreePlan, TreeRoots,
};
use crate::{Message, WireError};

impl ExactPlan {
    pub(crate) fn add_to(&self, message: Message) -> Message {
        let message = message
            .with_all("include", &self.include)
            .with_all("also", &self.also)
            .with_all("exclude", &self.exclude)
            .with("skip-trivial", self.skip_trivial)
            .with("allow-huge", self.allow_huge)
            .with("max-pause-ns", self.max_pause_ns)
            .with("memory", self.memory);
        match &self.measure {
            Measure::Trees(trees) => trees.add_to(message),
            Measure::Samples(samples) => samples.add_to(message.with("measure", "samples")),
            Measure::Trace(trace) => {
                let message = message
                    .with("measure", "trace")
                    .with("ring", trace.ring)
                    .with("wait", trace.wait);
                add_roots(trace.roots.as_ref(), message)
            }
            Measure::Regions(regions) => {
                message.with("measure", "regions").with_all("region", regions)
            }
        }
    }

    pub(crate) fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(ExactPlan {
            include: m.parse_all("include")?,
            also: m.parse_all("also")?,
            exclude: m.parse_all("exclude")?,
            skip_trivial: m.parse("skip-trivial")?,
            allow_huge: m.parse("allow-huge")?,
            max_pause_ns: m.parse("max-pause-ns")?,
            memory: m.parse("memory")?,
            measure: match m.text("measure")?.as_str() {
                "samples" => Measure::Samples(BytecodeSamples::from_message(m)?),
                "trace" => Measure::Trace(TracePlan {
                    ring: m.parse("ring")?,
                    wait: m.parse("wait")?,
                    roots: roots(m)?,
                }),
                "regions" => Measure::Regions(m.parse_all("region")?),
                figures => Measure::Trees(TreePlan::from_message(figures, m)?),
            },
        })
    }
}

impl TreePlan {
    fn add_to(&self, message: Message) -> Message {
        let message = message.with("depth", self.depth);
        let message = match &self.roots {
            Some(tree) => {
                let message = message
                    .with("follow-threads", tree.follow_threads)
                    .with_some("follow-one-in", tree.follow.map(|follow| follow.one_in))
                    .with_some("follow-seed", tree.follow.map(|follow| follow.seed))
                    .with_some("follow-kept", tree.follow.map(|follow| follow.kept));
                add_roots(Some(&tree.roots), message)
            }
            None => message,
        };
        match &self.figures {
            Figures::Counts { fold, regions } => {
                message.with("measure", "counts").with("fold", fold).with_all("region", regions)
            }
            Figures::Times { cpu_time, some, all, count_only, regions } => message
                .with("measure", "times")
                .with("cpu-time", cpu_time)
                .with_some("time-one-in", some.map(|some| some.one_in))
                .with_some("time-seed", some.map(|some| some.seed))
                .with("time-all", all)
                .with_all("count-only", count_only)
                .with_all("region", regions),
            Figures::Sites { fold, watch } => {
                message.with("measure", "sites").with("fold", fold).with_all("watch", watch)
            }
            Figures::Bytecodes { blocks, fold, counted } => {
                let message = message.with("blocks", blocks).with("fold", fold);
                match counted {
                    Counted::Number { allocations, agent_jar } => message
                        .with("measure", "bytecodes")
                        .with("allocations", allocations)
                        .with_some("agent-jar", agent_jar.as_ref()),
                    Counted::Costs(costs) => {
                        message.with("measure", "costs").with_all("cost", costs)
                    }
                }
            }
        }
    }

    fn from_message(measure: &str, m: &Message) -> Result<Self, WireError> {
        let bytecodes = |counted| {
            let (blocks, fold) = (m.parse("blocks")?, m.parse("fold")?);
            Ok(Figures::Bytecodes { blocks, fold, counted })
        };
        let figures = match measure {
            "counts" => Figures::Counts { fold: m.parse("fold")?, regions: m.parse_all("region")? },
            "times" => Figures::Times {
                cpu_time: m.parse("cpu-time")?,
                some: match m.get("time-one-in") {
                    Some(_) => Some(SomeTimes {
                        one_in: m.parse("time-one-in")?,
                        seed: m.parse("time-seed")?,
                    }),
                    None => None,
                },
                all: m.parse("time-all")?,
                count_only: m.parse_all("count-only")?,
                regions: m.parse_all("region")?,
            },
            "sites" => Figures::Sites { fold: m.parse("fold")?, watch: m.parse_all("watch")? },
            "bytecodes" => bytecodes(Counted::Number {
                allocations: m.parse("allocations")?,
                agent_jar: m.get("agent-jar").map(str::to_owned),
            })?,
            "costs" => bytecodes(Counted::Costs(m.parse_all("cost")?))?,
            _ => return Err(WireError::BadField { verb: m.verb.clone(), key: "measure" }),
        };
        let roots = match roots(m)? {
            Some(roots) => Some(TreeRoots {
                roots,
                follow_threads: m.parse("follow-threads")?,
                follow: match m.get("follow-one-in") {
                    Some(_) => Some(Follow {
                        one_in: m.parse("follow-one-in")?,
                        seed: m.parse("follow-seed")?,
                        kept: m.parse("follow-kept")?,
                    }),
                    None => None,
                },
            }),
            None => None,
        };
        Ok(TreePlan { figures, roots, depth: m.parse("depth")? })
    }
}

impl BytecodeSamples {
    fn add_to(&self, message: Message) -> Message {
        message
            .with("blocks", self.blocks)
            .with("every", self.every)
            .with_some("random", self.random)
            .with_some("agent-jar", self.agent_jar.as_ref())
            .with("fold", self.fold)
            .with("depth", self.depth)
    }

    fn from_message(m: &Message) -> Result<Self, WireError> {
        Ok(BytecodeSamples {
            blocks: m.parse("blocks")?,
            every: m.parse("every")?,
            random: m.get("random").map(|_| m.parse("random")).transpose()?,
            agent_jar: m.get("agent-jar").map(str::to_owned),
            fold: m.parse("fold")?,
            depth: m.parse("depth")?,
        })
    }
}

fn add_roots(roots: Option<&Roots>, message: Message) -> Message {
    match roots {
        Some(roots) => message.with_all("root", &roots.methods).with("scheme", roots.scheme),
        None => message,
    }
}

fn roots(m: &Message) -> Result<Option<Roots>, WireError> {
    let methods = m.parse_all("root")?;
    let scheme = if methods.is_empty() { Scheme::default() } else { m.parse("scheme")? };
    Ok(Roots::of(methods, scheme))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockAnalysis, Region};

    fn start() -> Message {
        Message::new("start")
    }

    fn some_roots() -> Option<Roots> {
        let methods = ["com.acme.Orders.place", "a.B.c(int,X)"].map(|text| text.parse().unwrap());
        Roots::of(methods.into(), Scheme::Eager)
    }

    fn measures() -> Vec<Measure> {
        let regions: Vec<Region> = vec!["a.B:7-9".parse().unwrap(), "a.B.c".parse().unwrap()];
        let blocks = BlockAnalysis::Precise;
        let agent_jar = Some("/opt/an agent.jar".to_owned());
        let figures = [
            Figures::Counts { fold: true, regions: regions.clone() },
            Figures::Times {
                cpu_time: true,
                some: Some(SomeTimes { one_in: 32, seed: u64::MAX }),
                all: true,
                count_only: vec!["**.get*".parse().unwrap()],
                regions: regions.clone(),
            },
            Figures::Bytecodes {
                blocks,
                fold: true,
                counted: Counted::Number { allocations: true, agent_jar: agent_jar.clone() },
            },
            Figures::Bytecodes { blocks, fold: false, counted: Counted::Costs(vec![0, 250]) },
            Figures::Sites {
                fold: true,
                watch: ["com.acme.**", "byte[]"].map(|text| text.parse().unwrap()).into(),
            },
        ];
        let trees = figures.map(|figures| {
            let follow = Some(Follow { one_in: 100, seed: 7, kept: 20 });
            let roots = some_roots().map(|roots| TreeRoots { roots, follow_threads: true, follow });
            Measure::Trees(TreePlan { figures, roots, depth: 50 })
        });
        let others = [
            Measure::default(),
            Measure::Samples(BytecodeSamples {
                blocks,
                every: 10_000,
                random: Some(7),
                agent_jar,
                fold: true,
                depth: 9,
            }),
            Measure::Trace(TracePlan { ring: 1 << 20, wait: 5, roots: some_roots() }),
            Measure::Trace(TracePlan::default()),
            Measure::Regions(regions),
        ];
        trees.into_iter().chain(others).collect()
    }

    #[test]
    fn plans_come_back_as_they_were_sent() {
        for measure in measures() {
            let plan = ExactPlan {
                include: vec!["com.acme.**".parse().unwrap()],
                skip_trivial: true,
                memory: 1 << 28,
                measure,
                ..ExactPlan::default()
            };
            assert_eq!(ExactPlan::from_message(&plan.add_to(start())), Ok(plan));
        }
    }

    #[test]
    fn what_does_not_belong_to_a_measure_changes_nothing() {
        let plan = ExactPlan::default();
        let keys = ["every", "cost", "ring", "wait", "random", "cpu-time", "time-all", "blocks"];
        let sent = keys.into_iter().fold(plan.add_to(start()), |m, key| m.with(key, 1));
        assert_eq!(ExactPlan::from_message(&sent), Ok(plan));
    }

    #[test]
    fn a_field_of_no_use_is_named() {
        let bad = |message: Message, key| {
            let verb = "start".to_owned();
            assert_eq!(
                ExactPlan::from_message(&message),
                Err(WireError::BadField { verb, key }),
                "{message:?}"
            );
        };
        let plan = ExactPlan::default().add_to(start());
        bad(plan.with("root", "a b"), "root");
        bad(ExactPlan::default().add_to(start().with("measure", "steam")), "measure");
        bad(start(), "skip-trivial");
    }
}
