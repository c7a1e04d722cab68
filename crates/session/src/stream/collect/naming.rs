//! Names of what is on a stack: functions by their addresses, and classes of objects.

use tare_profile::{Execution, Frame, FrameId, Method, MethodKind, Profile};
use tare_symbols::{Symbol, Symbols};

/// Names for addresses: a process's own, or a test's.
pub trait Addresses {
    fn native(&mut self, address: u64) -> Symbol;
    fn kernel(&mut self, address: u64) -> Symbol;
    /// Files that gave no names because they did not answer in time.
    fn unread(&self) -> Vec<String>;
}

impl Addresses for Symbols {
    fn native(&mut self, address: u64) -> Symbol {
        if !self.covers(address) {
            self.refresh();
        }
        Symbols::native(self, address)
    }

    fn kernel(&mut self, address: u64) -> Symbol {
        Symbols::kernel(self, address)
    }

    fn unread(&self) -> Vec<String> {
        Symbols::unread(self)
    }
}

pub(super) fn function(
    profile: &mut Profile,
    symbol: &Symbol,
    kind: MethodKind,
    execution: Execution,
) -> FrameId {
    // What is in brackets is no function but an account of why there is none.
    if symbol.name.starts_with('[') {
        return profile.special(&symbol.name);
    }
    let name = profile.strings.intern(&symbol.name);
    let module = profile.strings.intern(&symbol.module);
    let method = profile.methods.intern(Method { kind, name, module, ..Method::default() });
    profile.frames.intern(Frame { execution, ..Frame::of(method) })
}

/// The class of an object, which stands innermost in the stack that allocated it.
pub(super) fn class(profile: &mut Profile, name: &str) -> FrameId {
    let class = profile.strings.intern(name);
    let kind = MethodKind::Class;
    let method = profile.methods.intern(Method { kind, class, ..Method::default() });
    profile.frames.intern(Frame::of(method))
}
