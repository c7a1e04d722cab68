//! Names of what is on a stack: addresses of native code, and methods.

use crate::origins::Origins;
use tare_arena::samples::SampleMethod;
use tare_java_names::stable;
use tare_profile::{Execution, Frame, FrameId, Method, MethodId, MethodKind, Profile};
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

/// A Java method by its names; `None` if its class was gone before they were asked for.
pub(super) fn java_method(
    profile: &mut Profile,
    method: &SampleMethod,
    origins: Option<&Origins>,
) -> Option<MethodId> {
    if method.name.is_empty() {
        return None;
    }
    // Numbers that the JVM makes up for lambdas and other hidden classes tell nobody anything.
    let class = stable(&method.class).replace('/', ".");
    let class = profile.strings.intern(&class);
    let name = profile.strings.intern(&method.name);
    let descriptor = profile.strings.intern(&method.descriptor);
    let file = profile.strings.intern(&method.file);
    let origin = origins.and_then(|origins| origins.of_class(&method.class));
    let module = profile.strings.intern(origin.as_deref().unwrap_or_default());
    let line = method.lines.iter().map(|entry| u32::from(entry.line)).min();
    Some(profile.methods.intern(Method {
        kind: MethodKind::Java,
        class,
        name,
        descriptor,
        file,
        line,
        module,
        ..Method::default()
    }))
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
