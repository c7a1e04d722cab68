//! The probe sets that the examples and tests weave with, by name.
//!
//! Their runtime is `tests/java/java/lang/TareProbe.java`: it only counts, and calls nothing, so
//! that it can be woven into every class of a JDK.
#![allow(dead_code, reason = "each user takes what it needs")]

use std::fs;
use std::path::{Path, PathBuf};
use tare_weaver::{
    ActivationProbe, AllocationProbe, Arg, Blocks, Call, CallProbe, CountProbe, FrameProbe, How,
    Maker, Makes, MethodInfo, MethodPlan, Placement, ProbeSet, Probes, RegionPlan, RegionProbe,
    WatchProbe,
};

pub const OWNER: &str = "java/lang/TareProbe";

/// The modes, each with what it is for.
pub const MODES: [&str; 13] = [
    "entry",
    "object",
    "count",
    "precise",
    "activation",
    "longest",
    "stack",
    "region",
    "alloc",
    "sites",
    "watch",
    "calls",
    "all",
];

fn call(name: &str, descriptor: &str, args: &[Arg]) -> Call {
    Call::new(OWNER, name, descriptor, args)
}

fn frame() -> FrameProbe {
    FrameProbe {
        enter: call("enter", "(I)J", &[Arg::MethodId]),
        exit: call("exit", "(J)V", &[Arg::Token]),
        exit_throw: Some(call("exitThrow", "(J)V", &[Arg::Token])),
        caught: Some(call("caught", "(J)V", &[Arg::Token])),
    }
}

/// The token is an object, and the exception is passed.
fn object_frame() -> FrameProbe {
    let node = "Ljava/lang/Object;";
    FrameProbe {
        enter: call("enterObject", &format!("(I){node}"), &[Arg::MethodId]),
        exit: call("exitObject", &format!("({node})V"), &[Arg::Token]),
        exit_throw: Some(call(
            "throwObject",
            &format!("(Ljava/lang/Throwable;{node})V"),
            &[Arg::Exception, Arg::Token],
        )),
        caught: Some(call("exitObject", &format!("({node})V"), &[Arg::Token])),
    }
}

/// A frame probe whose exits take the count along.
fn counting_frame() -> FrameProbe {
    FrameProbe {
        exit: call("exitCount", "(JI)V", &[Arg::Token, Arg::Count]),
        exit_throw: Some(call("throwCount", "(JI)V", &[Arg::Token, Arg::Count])),
        ..frame()
    }
}

fn stack() -> FrameProbe {
    FrameProbe {
        enter: call("push", "(I)I", &[Arg::MethodId]),
        exit: call("pop", "(I)V", &[Arg::Token]),
        exit_throw: Some(call("pop", "(I)V", &[Arg::Token])),
        caught: Some(call("reset", "(I)V", &[Arg::Token])),
    }
}

fn count(blocks: Blocks) -> CountProbe {
    CountProbe {
        costs: None,
        blocks,
        flush: call("flush", "(JI)V", &[Arg::Token, Arg::Count]),
        threshold: 1 << 14,
    }
}

fn activation(placement: Placement) -> ActivationProbe {
    let check = call("tick", "(I)V", &[Arg::Weight]);
    ActivationProbe { blocks: Blocks::Default, placement, check }
}

fn allocation() -> AllocationProbe {
    let made = "(Ljava/lang/Object;I)V";
    AllocationProbe {
        object: Some(call("allocated", "(I)V", &[Arg::Site])),
        array: Some(call("array", made, &[Arg::Object, Arg::Site])),
        clone: Some(call("cloned", made, &[Arg::Object, Arg::Site])),
        ..AllocationProbe::default()
    }
}

/// By class: every place that makes an object.
fn sites() -> AllocationProbe {
    let made = || call("made", "(Ljava/lang/Object;I)V", &[Arg::Object, Arg::Site]);
    let with_class = "(Ljava/lang/Object;Ljava/lang/Class;I)V";
    AllocationProbe {
        object: Some(call("of", "(Ljava/lang/Class;I)V", &[Arg::Class, Arg::Site])),
        array: Some(made()),
        clone: Some(call("copied", with_class, &[Arg::Object, Arg::Class, Arg::Site])),
        capture: Some(made()),
        concat: Some(made()),
        makers: vec![Maker {
            owner: "java/lang/Integer",
            name: "valueOf",
            descriptor: "(I)Ljava/lang/Integer;",
            call: made(),
            watch: Some(made()),
            makes: vec![Makes::new("Ljava/lang/Integer;", How::Exactly)],
        }],
        by_class: true,
        watch: None,
    }
}

/// The same, and every object that can be is handed over.
fn watch() -> AllocationProbe {
    let made = || call("made", "(Ljava/lang/Object;I)V", &[Arg::Object, Arg::Site]);
    let levels = &[Arg::Object, Arg::Site, Arg::Levels];
    AllocationProbe {
        watch: Some(WatchProbe {
            classes: ["**", "**[]"].map(|text| text.parse().expect("a pattern")).into(),
            object: call("whole", "(Ljava/lang/Object;I)V", &[Arg::Object, Arg::Site]),
            array: call("arrays", "(Ljava/lang/Object;II)V", levels),
            clone: made(),
            one: made(),
        }),
        ..sites()
    }
}

fn region() -> RegionProbe {
    RegionProbe {
        start: call("regionStart", "(JI)J", &[Arg::Token, Arg::Site]),
        stop: call("regionStop", "(J)V", &[Arg::Token]),
    }
}

/// Call sites of methods that occur everywhere, natives among them.
fn calls() -> CallProbe {
    let targets = [
        ("java/lang/System", "arraycopy", "(Ljava/lang/Object;ILjava/lang/Object;II)V"),
        ("java/lang/Object", "getClass", "()Ljava/lang/Class;"),
        ("java/lang/Object", "hashCode", "()I"),
        ("java/lang/System", "nanoTime", "()J"),
        ("java/lang/String", "length", "()I"),
        ("java/lang/String", "equals", "(Ljava/lang/Object;)Z"),
        ("java/lang/StringBuilder", "append", "(Ljava/lang/String;)Ljava/lang/StringBuilder;"),
        ("java/util/List", "size", "()I"),
        ("java/util/Iterator", "next", "()Ljava/lang/Object;"),
        ("java/lang/Math", "max", "(II)I"),
        ("java/lang/Thread", "currentThread", "()Ljava/lang/Thread;"),
    ];
    let targets = targets.into_iter().zip(0..);
    CallProbe {
        targets: targets.map(|((o, n, d), i)| (o.into(), n.into(), d.into(), i)).collect(),
        before: call("before", "(I)J", &[Arg::Site]),
        after: call("after", "(J)V", &[Arg::Token]),
        after_throw: Some(call("afterThrow", "(J)V", &[Arg::Token])),
    }
}

/// The probes of a mode; `None` for an unknown name.
pub fn probes(mode: &str) -> Option<Probes> {
    let none = ProbeSet::default;
    let set = match mode {
        // Nothing is woven: what the JVM says about these classes as they are.
        "none" => none(),
        "entry" => ProbeSet { frames: vec![frame()], ..none() },
        "object" => ProbeSet { frames: vec![object_frame()], ..none() },
        "count" => ProbeSet {
            frames: vec![counting_frame()],
            count: Some(count(Blocks::Default)),
            ..none()
        },
        "precise" => {
            ProbeSet { frames: vec![frame()], count: Some(count(Blocks::Precise)), ..none() }
        }
        "activation" => ProbeSet { activation: Some(activation(Placement::EveryBlock)), ..none() },
        "longest" => ProbeSet { activation: Some(activation(Placement::LongestPath)), ..none() },
        "stack" => ProbeSet {
            frames: vec![stack()],
            activation: Some(activation(Placement::EveryBlock)),
            ..none()
        },
        "region" => ProbeSet { region: Some(region()), ..none() },
        "alloc" => ProbeSet { allocation: Some(allocation()), ..none() },
        "sites" => ProbeSet { allocation: Some(sites()), ..none() },
        "watch" => ProbeSet { allocation: Some(watch()), ..none() },
        "calls" => ProbeSet { call: Some(calls()), ..none() },
        "all" => ProbeSet {
            entry: None,
            frames: vec![frame(), stack()],
            count: Some(count(Blocks::Precise)),
            activation: Some(activation(Placement::EveryBlock)),
            allocation: Some(allocation()),
            call: Some(calls()),
            region: Some(region()),
        },
        _ => return None,
    };
    Some(Probes::new(set).expect("the probe sets of the examples are well formed"))
}

/// A plan that weaves every method; `lines` is its region.
pub fn plan<'p>(
    info: &MethodInfo<'_>,
    id: u32,
    probes: &'p Probes,
    lines: Option<(u16, u16)>,
) -> Option<MethodPlan<'p>> {
    if info.class == OWNER.as_bytes() {
        return None;
    }
    let mut plan = MethodPlan::new(id, probes);
    if let Some((first, last)) = lines.filter(|_| probes.set().region.is_some()) {
        plan.regions.push(RegionPlan { id, first, last });
    }
    Some(plan)
}

/// The lines of a region in the middle of each method, for the plan.
pub fn method_lines(bytes: &[u8]) -> Vec<Option<(u16, u16)>> {
    use tare_classfile::{ClassFile, Code, attributes::LineNumber};
    let Ok(class) = ClassFile::parse(bytes) else { return Vec::new() };
    let lines = class.methods.iter().map(|m| {
        let code = Code::parse(&m.attributes.find(&class.pool, "Code")?).ok()?;
        let table = code.attributes.find(&class.pool, "LineNumberTable")?;
        let lines = table.rows::<4>().ok()?.iter().map(|&r| LineNumber::from_row(r).line);
        // The middle half of the lines: borders in the midst of the control flow.
        let mut lines: Vec<u16> = lines.collect();
        lines.sort_unstable();
        Some((*lines.get(lines.len() / 4)?, *lines.get(lines.len() * 3 / 4)?))
    });
    lines.collect()
}

/// All class files below a directory, in a fixed order.
pub fn class_files(root: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).expect("readable directory") {
            let path = entry.expect("readable entry").path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "class") {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}
