//! What the inserted code calls: the probes of a runtime, described as data.
//!
//! A [`ProbeSet`] is written by whoever owns a runtime (the agent, the offline tool, a test);
//! [`Probes::new`] checks once that descriptors and arguments fit, so that weaving cannot meet a
//! contradiction later. Which methods get the probes is the plan's business.

mod checker;

use crate::blocks::Blocks;
use crate::sites::AllocationProbe;
use checker::{Checker, fault};
use std::fmt;
use std::sync::Arc;

/// A value that the inserted code passes to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The id of the method, as an `int`.
    MethodId,
    /// The method's class, name and descriptor, `com/acme/Orders.place(I)V`, as a `String`
    /// constant: equal ones are the same object. For runtimes to which nobody tells what ids mean.
    MethodName,
    /// What the opening call of the same probe returned.
    Token,
    /// The local that counts executed bytecodes, as an `int`.
    Count,
    /// How many bytecodes the next stretch of code has, as an `int`.
    Weight,
    /// The id of an allocation or call site, or of a region, as an `int`.
    Site,
    /// The class of the object that was just made, as a `Class`, or the one that a clone is expected
    /// to be of. Only for objects and clones, and only in class files of version 49 or later: for
    /// the plan to know.
    Class,
    /// What was just made, but by `new`, or whose method is about to be called, as an
    /// `Object`. Only as first argument.
    Object,
    /// Which of a site's ids are of classes that are watched, as bits of an `int`. Only for watched
    /// arrays.
    Levels,
    /// The exception in flight, as a `Throwable`. Only as first argument.
    Exception,
    /// The parameter, or `this`, in this local variable, as an `Object`. Only at entry; that the
    /// method has a reference there, and is no constructor, is for the plan to know.
    Parameter(u16),
}

/// A static method of the runtime, and what it is given, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Internal name, `java/lang/Probe`.
    pub owner: String,
    pub name: String,
    pub descriptor: String,
    /// Whether the owner is an interface.
    pub interface: bool,
    pub args: Vec<Arg>,
}

impl Call {
    pub fn new(owner: &str, name: &str, descriptor: &str, args: &[Arg]) -> Self {
        Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
            descriptor: descriptor.to_owned(),
            interface: false,
            args: args.to_vec(),
        }
    }
}

/// Entry and exit of a method. A reified stack (BC5) has the same shape: push, pop, pop, reset.
#[derive(Clone, Debug)]
pub struct FrameProbe {
    /// Runs once per invocation; returns the token, which lives in a local of its own. May take a
    /// parameter.
    pub enter: Call,
    /// Runs before each return.
    pub exit: Call,
    /// Runs when an exception leaves the method.
    pub exit_throw: Option<Call>,
    /// Runs when one of the method's own handlers caught an exception.
    pub caught: Option<Call>,
}

/// Count of executed bytecodes in an `int` local, block by block.
#[derive(Clone, Debug)]
pub struct CountProbe {
    pub blocks: Blocks,
    /// Takes [`Arg::Count`] to where a reader finds it; may take the token of the first frame
    /// probe. Called at loop heads, and at exits unless the exit probe takes the count itself.
    pub flush: Call,
    /// What a bytecode counts for, by opcode, when that is not one each.
    pub costs: Option<Arc<[u32; 256]>>,
    /// At a loop head the count is flushed once it has passed this; 0 means never, for code
    /// without loops.
    pub threshold: u32,
}

/// Where an activation check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In each block, with the block's length: exact, for sampling (BC5).
    EveryBlock,
    /// At entry, handlers, subroutines and loop heads, with the length of the longest way to the
    /// next of them: an upper bound, and fewer calls (BC3).
    LongestPath,
}

/// Tells the runtime how many bytecodes come, so that it can act every N of them.
#[derive(Clone, Debug)]
pub struct ActivationProbe {
    pub blocks: Blocks,
    pub placement: Placement,
    /// Takes [`Arg::Weight`]; may take the token of the first frame probe.
    pub check: Call,
}

/// Calls of given methods, seen from the caller: for natives and intrinsics.
#[derive(Clone, Debug)]
pub struct CallProbe {
    /// Internal name of the owner that call sites name, method name, descriptor, and the id that
    /// is passed as [`Arg::Site`].
    pub targets: Vec<(String, String, String, u32)>,
    /// Takes [`Arg::Site`], returns a token. Given [`Arg::Object`], the targets take no parameters
    /// and are not static, so that the object is what lies on the stack.
    pub before: Call,
    pub after: Call,
    /// When the called method throws.
    pub after_throw: Option<Call>,
}

/// A range of source lines. The token is zero (or null) outside of the region.
#[derive(Clone, Debug)]
pub struct RegionProbe {
    /// Takes the token and [`Arg::Site`], returns the new token; given a token that is not zero,
    /// it must return it as it is.
    pub start: Call,
    /// Takes the token and must ignore zero.
    pub stop: Call,
}

/// All probes that a method may get; any of them may be missing.
#[derive(Clone, Debug, Default)]
pub struct ProbeSet {
    /// Runs first at entry, and has nothing at the end: enough for methods that call nothing. May
    /// take a parameter.
    pub entry: Option<Call>,
    pub frames: Vec<FrameProbe>,
    pub count: Option<CountProbe>,
    pub activation: Option<ActivationProbe>,
    pub allocation: Option<AllocationProbe>,
    pub call: Option<CallProbe>,
    pub region: Option<RegionProbe>,
}

/// What is wrong with a probe's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeError {
    /// `owner.name descriptor` of the call.
    pub call: String,
    pub problem: &'static str,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.problem)
    }
}

impl std::error::Error for ProbeError {}

/// The kind of a token, from the return type of the opening call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Long,
    Float,
    Double,
    Reference,
}

impl Kind {
    pub(crate) fn of(descriptor: &[u8]) -> Option<Self> {
        Some(match descriptor.first()? {
            b'Z' | b'B' | b'C' | b'S' | b'I' => Self::Int,
            b'J' => Self::Long,
            b'F' => Self::Float,
            b'D' => Self::Double,
            b'L' | b'[' => Self::Reference,
            _ => return None,
        })
    }

    pub(crate) fn slots(self) -> u16 {
        if matches!(self, Self::Long | Self::Double) { 2 } else { 1 }
    }
}

/// The index of a call in [`Probes::calls`].
pub(crate) type CallId = usize;

#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub enter: CallId,
    pub exit: CallId,
    pub exit_throw: Option<CallId>,
    pub caught: Option<CallId>,
    pub token: Token,
}

/// The type of a token local.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    /// Internal name when the kind is a reference.
    pub class: Vec<u8>,
}

/// The calls of a [`WatchProbe`](crate::WatchProbe).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub object: CallId,
    pub array: CallId,
    pub clone: CallId,
    pub one: CallId,
}

/// A checked [`ProbeSet`].
#[derive(Clone, Debug)]
pub struct Probes {
    pub(crate) set: ProbeSet,
    pub(crate) calls: Vec<Call>,
    pub(crate) entry: Option<CallId>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) flush: Option<CallId>,
    /// Whether an exit probe takes the count, so that no flush is needed before it.
    pub(crate) exit_takes_count: bool,
    pub(crate) throw_takes_count: bool,
    pub(crate) check: Option<CallId>,
    pub(crate) object: Option<CallId>,
    pub(crate) array: Option<CallId>,
    pub(crate) clone: Option<CallId>,
    pub(crate) capture: Option<CallId>,
    pub(crate) concat: Option<CallId>,
    /// In the order of [`AllocationProbe::makers`].
    pub(crate) makers: Vec<CallId>,
    pub(crate) makers_watch: Vec<Option<CallId>>,
    pub(crate) watch: Option<Watch>,
    pub(crate) call_before: Option<(CallId, Token)>,
    pub(crate) call_after: Option<CallId>,
    pub(crate) call_throw: Option<CallId>,
    pub(crate) region: Option<(CallId, CallId, Token)>,
}

impl Probes {
    pub fn new(set: ProbeSet) -> Result<Self, ProbeError> {
        let mut c = Checker { calls: Vec::new(), count: set.count.is_some() };
        let entry_args = [Arg::MethodId, Arg::Parameter(0)];
        let entry = set.entry.as_ref().map(|x| c.closing(x, &entry_args, None)).transpose()?;
        let mut frames = Vec::new();
        for f in &set.frames {
            let (enter, token) =
                c.opening(&f.enter, &[Arg::MethodId, Arg::MethodName, Arg::Parameter(0)])?;
            let token_or =
                |extra: &[Arg]| [&[Arg::Token, Arg::MethodId, Arg::Count], extra].concat();
            let exit = c.closing(&f.exit, &token_or(&[]), Some(&token))?;
            let throw_args = token_or(&[Arg::Exception]);
            let exit_throw = f
                .exit_throw
                .as_ref()
                .map(|x| c.closing(x, &throw_args, Some(&token)))
                .transpose()?;
            let caught =
                f.caught.as_ref().map(|x| c.closing(x, &throw_args, Some(&token))).transpose()?;
            frames.push(Frame { enter, exit, exit_throw, caught, token });
        }
        let first = frames.first().map(|f| f.token.clone());
        let count_args = [Arg::Token, Arg::MethodId, Arg::Count];
        let flush = set.count.as_ref().map(|p| c.closing(&p.flush, &count_args, first.as_ref()));
        let flush = flush.transpose()?;
        let weight_args = [Arg::Token, Arg::MethodId, Arg::Weight];
        let check = set.activation.as_ref();
        let check = check.map(|p| c.closing(&p.check, &weight_args, first.as_ref())).transpose()?;
        let (mut object, mut array, mut clone) = (None, None, None);
        let (mut capture, mut concat, mut makers) = (None, None, Vec::new());
        let (mut watch, mut makers_watch) = (None, Vec::new());
        if let Some(a) = &set.allocation {
            let args = [Arg::Token, Arg::MethodId, Arg::Site, Arg::Object];
            let no_object = &[Arg::Token, Arg::MethodId, Arg::Site, Arg::Class];
            let both = [&args[..], &[Arg::Class]].concat();
            let mut one = |call: Option<&Call>, args: &[Arg]| {
                call.map(|x| c.closing(x, args, first.as_ref())).transpose()
            };
            object = one(a.object.as_ref(), no_object)?;
            array = one(a.array.as_ref(), &args)?;
            clone = one(a.clone.as_ref(), &both)?;
            capture = one(a.capture.as_ref(), &args)?;
            concat = one(a.concat.as_ref(), &args)?;
            for maker in &a.makers {
                makers.extend(one(Some(&maker.call), &args)?);
                makers_watch.push(one(maker.watch.as_ref(), &args)?);
            }
            if let Some(w) = &a.watch {
                let levels = [&args[..], &[Arg::Levels]].concat();
                let mut one = |call: &Call, args: &[Arg]| c.closing(call, args, first.as_ref());
                watch = Some(Watch {
                    object: one(&w.object, &args)?,
                    array: one(&w.array, &levels)?,
                    clone: one(&w.clone, &both)?,
                    one: one(&w.one, &args)?,
                });
            }
        }
        let (mut call_before, mut call_after, mut call_throw) = (None, None, None);
        if let Some(p) = &set.call {
            let (before, token) = c.opening(&p.before, &[Arg::Site, Arg::MethodId, Arg::Object])?;
            let takes_none = |target: &(String, String, String, u32)| target.2.starts_with("()");
            if p.before.args.contains(&Arg::Object) && !p.targets.iter().all(takes_none) {
                return Err(fault(&p.before, "the object lies below the parameters of a call"));
            }
            let args = [Arg::Token, Arg::Site, Arg::MethodId, Arg::Exception];
            call_after = Some(c.closing(&p.after, &args[..3], Some(&token))?);
            let throw = p.after_throw.as_ref();
            call_throw = throw.map(|x| c.closing(x, &args, Some(&token))).transpose()?;
            call_before = Some((before, token));
        }
        let mut region = None;
        if let Some(p) = &set.region {
            let (start, token) = c.opening(&p.start, &[Arg::Token, Arg::Site, Arg::MethodId])?;
            let stop = c.closing(&p.stop, &[Arg::Token, Arg::MethodId], Some(&token))?;
            region = Some((start, stop, token));
        }
        let takes_count =
            |id: &CallId| c.calls.get(*id).is_some_and(|x| x.args.contains(&Arg::Count));
        let exit_takes_count = frames.iter().any(|f| takes_count(&f.exit));
        let throw_takes_count =
            frames.iter().filter_map(|f| f.exit_throw.as_ref()).any(takes_count);
        Ok(Self {
            calls: c.calls,
            entry,
            set,
            frames,
            flush,
            exit_takes_count,
            throw_takes_count,
            check,
            object,
            array,
            clone,
            capture,
            concat,
            makers,
            makers_watch,
            watch,
            call_before,
            call_after,
            call_throw,
            region,
        })
    }

    /// Whether the count goes out at loop heads.
    pub(crate) fn flushes_in_loops(&self) -> bool {
        self.set.count.as_ref().is_some_and(|count| count.threshold > 0)
    }

    /// Whether the count goes out before a constructor calls another: an exception that leaves
    /// that call passes no handler of ours. Only the analysis that promises to be exact under
    /// exceptions pays for it.
    pub(crate) fn flushes_before_init(&self) -> bool {
        self.set.count.as_ref().is_some_and(|count| !matches!(count.blocks, Blocks::Default))
    }

    /// The description that this was made from.
    pub fn set(&self) -> &ProbeSet {
        &self.set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(enter: &str, exit: &str, args: &[Arg], expected: &str) {
        let set = ProbeSet {
            frames: vec![FrameProbe {
                enter: Call::new("R", "enter", enter, &[Arg::MethodId]),
                exit: Call::new("R", "exit", exit, args),
                exit_throw: None,
                caught: None,
            }],
            ..ProbeSet::default()
        };
        let got = match Probes::new(set) {
            Ok(_) => "ok".to_owned(),
            Err(e) => e.to_string(),
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn descriptions_are_checked() {
        check("(I)J", "(J)V", &[Arg::Token], "ok");
        check("(I)Lr/Node;", "(Lr/Node;)V", &[Arg::Token], "ok");
        check(
            "(Ljava/lang/String;)J",
            "(J)V",
            &[Arg::Token],
            "R.enter (Ljava/lang/String;)J: a parameter of another type than its argument",
        );
        check("(I)V", "()V", &[], "R.enter (I)V: must return a token");
        check(
            "(I)J",
            "(I)V",
            &[Arg::Token],
            "R.exit (I)V: a parameter of another type than its argument",
        );
        check(
            "(I)J",
            "(JI)V",
            &[Arg::Token, Arg::Count],
            "R.exit (JI)V: takes a count, but nothing counts",
        );
        check("(I)J", "(J)V", &[], "R.exit (J)V: as many arguments as parameters are needed");
        check("(I)J", "(J", &[Arg::Token], "R.exit (J: malformed descriptor");
    }
}
