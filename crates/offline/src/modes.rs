//! Named sets of probes, and the static methods of the runtime class that each of them calls.
//!
//! Modes are combined freely. The contract with the runtime is this file: names, descriptors and
//! what is passed. A runtime needs only the methods of the modes that it is woven with.

use std::fmt;
use std::str::FromStr;
use tare_weaver::{
    ActivationProbe, AllocationProbe, Arg, Blocks, Call, CallProbe, CountProbe, FrameProbe,
    Placement, ProbeSet, RegionProbe,
};

/// One kind of probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Entry and exit of each method, normal and by exception.
    Entry,
    /// The same with an object as token, which frames describe in another way.
    EntryObject,
    /// Executed bytecodes, counted per block that control flow ends.
    Count,
    /// Executed bytecodes, counted per block that anything that can throw ends too.
    CountPrecise,
    /// A check at loop heads and entries, with the longest way to the next one.
    Activation,
    /// A check in every block, with its length.
    ActivationBlocks,
    /// Push and pop of a reified stack.
    Stack,
    /// Start and stop of a range of source lines.
    Regions,
    /// New objects, arrays and clones.
    Allocation,
    /// Calls of given methods, seen from the caller.
    Calls,
}

impl Mode {
    pub const EACH: [Mode; 10] = [
        Mode::Entry,
        Mode::EntryObject,
        Mode::Count,
        Mode::CountPrecise,
        Mode::Activation,
        Mode::ActivationBlocks,
        Mode::Stack,
        Mode::Regions,
        Mode::Allocation,
        Mode::Calls,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Entry => "entry",
            Mode::EntryObject => "entry-object",
            Mode::Count => "count",
            Mode::CountPrecise => "count-precise",
            Mode::Activation => "activation",
            Mode::ActivationBlocks => "activation-blocks",
            Mode::Stack => "stack",
            Mode::Regions => "regions",
            Mode::Allocation => "allocation",
            Mode::Calls => "calls",
        }
    }
}

/// What is wrong with a list of modes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModeError {
    Unknown(String),
    /// Two analyses of the same kind.
    Both(Mode, Mode),
    Empty,
}

impl fmt::Display for ModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModeError::Unknown(word) => {
                let names: Vec<_> = Mode::EACH.iter().map(|m| m.name()).collect();
                write!(f, "there is no mode {word:?}; choose from {}, all", names.join(", "))
            }
            ModeError::Both(a, b) => {
                write!(f, "{} and {} exclude each other; leave one out", a.name(), b.name())
            }
            ModeError::Empty => write!(f, "no mode given; `all` means everything"),
        }
    }
}

impl std::error::Error for ModeError {}

/// Modes to be woven together: `entry`, `entry,count` or `all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modes(Vec<Mode>);

impl FromStr for Modes {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, ModeError> {
        let mut modes = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if word == "all" {
                return Ok(Modes::all());
            }
            let mode = Mode::EACH.into_iter().find(|mode| mode.name() == word);
            modes.push(mode.ok_or_else(|| ModeError::Unknown(word.to_owned()))?);
        }
        modes.sort();
        modes.dedup();
        Modes(modes).checked()
    }
}

impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Modes::all() {
            return write!(f, "all");
        }
        let names: Vec<_> = self.0.iter().map(|mode| mode.name()).collect();
        write!(f, "{}", names.join(","))
    }
}

impl Modes {
    /// Everything at once, with the finer of two analyses.
    pub fn all() -> Self {
        let coarse = [Mode::Count, Mode::Activation];
        Modes(Mode::EACH.into_iter().filter(|mode| !coarse.contains(mode)).collect())
    }

    /// Calls and executed bytecodes.
    pub fn counting(precise: bool) -> Self {
        Modes(vec![Mode::Entry, if precise { Mode::CountPrecise } else { Mode::Count }])
    }

    fn checked(self) -> Result<Self, ModeError> {
        if self.0.is_empty() {
            return Err(ModeError::Empty);
        }
        for (a, b) in
            [(Mode::Count, Mode::CountPrecise), (Mode::Activation, Mode::ActivationBlocks)]
        {
            if self.has(a) && self.has(b) {
                return Err(ModeError::Both(a, b));
            }
        }
        Ok(self)
    }

    pub fn has(&self, mode: Mode) -> bool {
        self.0.contains(&mode)
    }

    fn counts(&self) -> bool {
        self.has(Mode::Count) || self.has(Mode::CountPrecise)
    }

    /// The probes, as calls of static methods of `runtime`. `threshold` is the count beyond which
    /// a loop head flushes; `targets` are the calls that [`Mode::Calls`] looks for.
    pub fn probes(
        &self,
        runtime: &str,
        threshold: u32,
        targets: &[(String, String, String, u32)],
    ) -> ProbeSet {
        let r = Runtime(runtime);
        let entry = self.has(Mode::Entry);
        let mut set = ProbeSet::default();
        if entry {
            set.frames.push(r.entry(self.counts()));
        }
        if self.has(Mode::EntryObject) {
            set.frames.push(r.entry_object());
        }
        if self.has(Mode::Stack) {
            set.frames.push(r.stack());
        }
        if self.counts() {
            let precise = self.has(Mode::CountPrecise);
            let blocks = if precise { Blocks::Precise } else { Blocks::Default };
            set.count = Some(CountProbe { blocks, costs: None, flush: r.flush(entry), threshold });
        }
        let placement = match (self.has(Mode::Activation), self.has(Mode::ActivationBlocks)) {
            (true, _) => Some(Placement::LongestPath),
            (_, true) => Some(Placement::EveryBlock),
            _ => None,
        };
        set.activation = placement.map(|placement| ActivationProbe {
            blocks: Blocks::Default,
            placement,
            check: r.call("check", "(I)V", &[Arg::Weight]),
        });
        if self.has(Mode::Allocation) {
            let with_object = &[Arg::Object, Arg::Site];
            set.allocation = Some(AllocationProbe {
                object: Some(r.call("newObject", "(I)V", &[Arg::Site])),
                array: Some(r.call("newArray", "(Ljava/lang/Object;I)V", with_object)),
                clone: Some(r.call("cloned", "(Ljava/lang/Object;I)V", with_object)),
                ..AllocationProbe::default()
            });
        }
        if self.has(Mode::Calls) {
            let ended = &[Arg::Token, Arg::Site];
            set.call = Some(CallProbe {
                targets: targets.to_vec(),
                before: r.call("before", "(I)J", &[Arg::Site]),
                after: r.call("after", "(JI)V", ended),
                after_throw: Some(r.call("afterThrow", "(JI)V", ended)),
            });
        }
        if self.has(Mode::Regions) {
            set.region = Some(RegionProbe {
                start: r.call("regionStart", "(JI)J", &[Arg::Token, Arg::Site]),
                stop: r.call("regionStop", "(J)V", &[Arg::Token]),
            });
        }
        set
    }
}

struct Runtime<'a>(&'a str);

impl Runtime<'_> {
    fn call(&self, name: &str, descriptor: &str, args: &[Arg]) -> Call {
        Call::new(self.0, name, descriptor, args)
    }

    /// With a count the exits take it along, which saves a call.
    fn entry(&self, counts: bool) -> FrameProbe {
        let (descriptor, args): (&str, &[Arg]) =
            if counts { ("(JI)V", &[Arg::Token, Arg::Count]) } else { ("(J)V", &[Arg::Token]) };
        FrameProbe {
            enter: self.call("enter", "(I)J", &[Arg::MethodId]),
            exit: self.call("exit", descriptor, args),
            exit_throw: Some(self.call("exitThrow", descriptor, args)),
            caught: Some(self.call("caught", "(J)V", &[Arg::Token])),
        }
    }

    fn entry_object(&self) -> FrameProbe {
        let token = &[Arg::Token];
        FrameProbe {
            enter: self.call("enterObject", "(I)Ljava/lang/Object;", &[Arg::MethodId]),
            exit: self.call("exitObject", "(Ljava/lang/Object;)V", token),
            exit_throw: Some(self.call("exitThrowObject", "(Ljava/lang/Object;)V", token)),
            caught: Some(self.call("caughtObject", "(Ljava/lang/Object;)V", token)),
        }
    }

    fn stack(&self) -> FrameProbe {
        let thrown = &[Arg::Exception, Arg::Token];
        FrameProbe {
            enter: self.call("push", "(I)I", &[Arg::MethodId]),
            exit: self.call("pop", "(I)V", &[Arg::Token]),
            exit_throw: Some(self.call("popThrow", "(Ljava/lang/Throwable;I)V", thrown)),
            caught: Some(self.call("reset", "(I)V", &[Arg::Token])),
        }
    }

    fn flush(&self, entry: bool) -> Call {
        if entry {
            self.call("flush", "(JI)V", &[Arg::Token, Arg::Count])
        } else {
            self.call("flush", "(II)V", &[Arg::MethodId, Arg::Count])
        }
    }
}

/// What [`Mode::Calls`] looks for unless told otherwise: natives and intrinsics that most programs
/// call, one of each way to call.
pub fn default_targets() -> Vec<(String, String, String, u32)> {
    const TARGETS: &[(&str, &str, &str)] = &[
        ("java/lang/System", "arraycopy", "(Ljava/lang/Object;ILjava/lang/Object;II)V"),
        ("java/lang/System", "nanoTime", "()J"),
        ("java/lang/System", "currentTimeMillis", "()J"),
        ("java/lang/System", "identityHashCode", "(Ljava/lang/Object;)I"),
        ("java/lang/Object", "getClass", "()Ljava/lang/Class;"),
        ("java/lang/Object", "hashCode", "()I"),
        ("java/lang/Object", "notifyAll", "()V"),
        ("java/lang/Thread", "currentThread", "()Ljava/lang/Thread;"),
        ("java/lang/Math", "max", "(II)I"),
        ("java/lang/Math", "min", "(JJ)J"),
        ("java/lang/Math", "sqrt", "(D)D"),
        ("java/lang/String", "length", "()I"),
        ("java/lang/String", "charAt", "(I)C"),
        ("java/lang/Integer", "valueOf", "(I)Ljava/lang/Integer;"),
        ("java/lang/Class", "isInstance", "(Ljava/lang/Object;)Z"),
        ("java/util/List", "get", "(I)Ljava/lang/Object;"),
    ];
    let owned = |(id, &(owner, name, descriptor)): (u32, &(&str, &str, &str))| {
        (owner.to_owned(), name.to_owned(), descriptor.to_owned(), id)
    };
    (0..).zip(TARGETS).map(owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_weaver::Probes;

    #[test]
    fn modes_are_read_and_written() {
        let check = |text: &str, expected: &str| {
            let got = text.parse::<Modes>().map(|m| m.to_string()).map_err(|e| e.to_string());
            assert_eq!(got.as_deref().unwrap_or_else(|e| e), expected, "{text}");
        };
        check("entry", "entry");
        check(" count , entry ", "entry,count");
        check("all", "all");
        check("entry,all", "all");
        check("", "no mode given; `all` means everything");
        check("count,count-precise", "count and count-precise exclude each other; leave one out");
        assert!("nothing".parse::<Modes>().unwrap_err().to_string().contains("choose from entry"));
    }

    /// The contract holds together for every single mode, for all, and for every pair.
    #[test]
    fn every_combination_is_accepted_by_the_weaver() {
        let targets = default_targets();
        let mut modes = vec![Modes::all()];
        for a in Mode::EACH {
            for b in Mode::EACH {
                let both = if a == b { vec![a] } else { vec![a.min(b), a.max(b)] };
                modes.extend(Modes(both).checked());
            }
        }
        assert!(modes.len() > 60);
        for modes in modes {
            let set = modes.probes("r/Runtime", 1000, &targets);
            assert!(Probes::new(set).is_ok(), "{modes}");
        }
    }
}
