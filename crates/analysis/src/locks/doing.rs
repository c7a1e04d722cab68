//! What a thread does, by the innermost methods of its stack: what keeps the owner of a lock.

use tare_profile::{ContextId, MethodKind, Profile, Wait};

/// What keeps a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Doing {
    Socket,
    File,
    NameLookup,
    Process,
    Sleep,
    /// Another lock.
    Lock,
    /// A condition, a latch, `Object.wait`.
    Signal,
    /// Something to come into a queue.
    Queue,
    Future,
    ClassLoading,
    /// It runs, as far as its stack tells.
    Code,
}

impl Doing {
    /// With the owner as its subject: it …
    pub fn told(self) -> &'static str {
        match self {
            Doing::Socket => "waits for a socket",
            Doing::File => "reads or writes a file",
            Doing::NameLookup => "looks up a host name",
            Doing::Process => "waits for another process",
            Doing::Sleep => "sleeps",
            Doing::Lock => "waits for another lock",
            Doing::Signal => "waits for a signal",
            Doing::Queue => "waits for a queue",
            Doing::Future => "waits for a result",
            Doing::ClassLoading => "loads classes",
            Doing::Code => "runs",
        }
    }

    /// For scripts.
    pub fn name(self) -> &'static str {
        match self {
            Doing::Socket => "socket",
            Doing::File => "file",
            Doing::NameLookup => "name lookup",
            Doing::Process => "process",
            Doing::Sleep => "sleep",
            Doing::Lock => "lock",
            Doing::Signal => "signal",
            Doing::Queue => "queue",
            Doing::Future => "future",
            Doing::ClassLoading => "class loading",
            Doing::Code => "code",
        }
    }

    pub(super) fn of_wait(wait: Wait) -> Self {
        match wait {
            Wait::MonitorEnter | Wait::Lock | Wait::SharedLock => Doing::Lock,
            Wait::MonitorWait | Wait::Condition | Wait::Park => Doing::Signal,
            Wait::Queue => Doing::Queue,
            Wait::Future => Doing::Future,
            Wait::Sleep => Doing::Sleep,
        }
    }

    /// `None` if there is no stack.
    pub(super) fn of(profile: &Profile, context: ContextId) -> Option<Self> {
        let mut seen = false;
        let mut file = false;
        for frame in profile.contexts.frames(context) {
            let method = profile.method_of(frame);
            match method.kind {
                MethodKind::Native | MethodKind::Kernel | MethodKind::Class => continue,
                MethodKind::Special => continue,
                MethodKind::Java => seen = true,
            }
            let (class, name) =
                (profile.strings.get(method.class), profile.strings.get(method.name));
            match step(class, name) {
                Step::Is(Doing::File) => file = true,
                Step::Is(doing) => return Some(doing),
                Step::Parks => return Some(parked(profile, context)),
                Step::On => {}
                Step::Stop => break,
            }
        }
        // Some JDKs read sockets by what reads files.
        let rest = if file { Doing::File } else { Doing::Code };
        seen.then_some(rest)
    }
}

fn parked(profile: &Profile, context: ContextId) -> Doing {
    let java = profile.contexts.frames(context).map(|frame| profile.method_of(frame));
    let java = java.filter(|method| method.kind == MethodKind::Java);
    let frames =
        java.map(|method| (profile.strings.get(method.class), profile.strings.get(method.name)));
    Doing::of_wait(Wait::of_park("", frames))
}

enum Step {
    Is(Doing),
    Parks,
    /// Part of the JDK, which may be called by what tells more.
    On,
    Stop,
}

const SOCKETS: [&str; 10] = [
    "sun.nio.ch.Net",
    "sun.nio.ch.NioSocketImpl",
    "sun.nio.ch.Socket",
    "sun.nio.ch.DatagramChannelImpl",
    "sun.nio.ch.DatagramDispatcher",
    "sun.nio.ch.EPoll",
    "sun.nio.ch.SelectorImpl",
    "java.net.Socket",
    "java.net.PlainSocketImpl",
    "sun.security.ssl.SSLSocketInputRecord",
];

const FILES: [&str; 8] = [
    "java.io.FileInputStream",
    "java.io.FileOutputStream",
    "java.io.FileDescriptor",
    "java.io.RandomAccessFile",
    "java.io.UnixFileSystem",
    "sun.nio.ch.FileDispatcherImpl",
    "sun.nio.ch.UnixFileDispatcherImpl",
    "sun.nio.fs.",
];

fn step(class: &str, method: &str) -> Step {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|start| class.starts_with(start));
    match class {
        "java.lang.Thread" if method.starts_with("sleep") => Step::Is(Doing::Sleep),
        "java.lang.Object" if method.starts_with("wait") => Step::Is(Doing::Signal),
        "jdk.internal.misc.Unsafe" | "java.util.concurrent.locks.LockSupport"
            if method.starts_with("park") =>
        {
            Step::Parks
        }
        "java.lang.ProcessImpl" | "java.lang.ProcessHandleImpl" => Step::Is(Doing::Process),
        "java.net.Inet4AddressImpl" | "java.net.Inet6AddressImpl"
            if method.starts_with("lookup") =>
        {
            Step::Is(Doing::NameLookup)
        }
        "java.lang.ClassLoader" if method.contains("efineClass") || method == "loadClass" => {
            Step::Is(Doing::ClassLoading)
        }
        _ if begins(&SOCKETS) => Step::Is(Doing::Socket),
        _ if begins(&FILES) => Step::Is(Doing::File),
        _ if tare_java_names::is_jdk(class) => Step::On,
        _ => Step::Stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::{Frame, Method};

    fn check(stack: &[(&str, &str)], expected: Doing) {
        let mut profile = Profile::new();
        let frames: Vec<_> = stack
            .iter()
            .rev()
            .map(|(class, name)| {
                let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
                let method = profile.methods.intern(Method { class, name, ..Method::default() });
                profile.frames.intern(Frame::of(method))
            })
            .collect();
        let context = profile.contexts.stack(frames);
        assert_eq!(Doing::of(&profile, context), Some(expected), "{stack:?}");
    }

    #[test]
    fn the_innermost_methods_tell() {
        let mine = ("a.Db", "ask");
        check(
            &[("sun.nio.ch.Net", "poll"), ("sun.nio.ch.NioSocketImpl", "park"), mine],
            Doing::Socket,
        );
        let old = ("sun.nio.ch.FileDispatcherImpl", "read0");
        check(&[old, ("sun.nio.ch.SocketDispatcher", "read"), mine], Doing::Socket);
        check(&[old, ("sun.nio.ch.FileChannelImpl", "read"), mine], Doing::File);
        check(&[("java.lang.Thread", "sleep0"), ("java.lang.Thread", "sleep"), mine], Doing::Sleep);
        check(&[mine, ("java.net.Socket", "x")], Doing::Code);
        check(&[("java.util.HashMap", "get"), mine], Doing::Code);
        let park = ("jdk.internal.misc.Unsafe", "park");
        let future = ("java.util.concurrent.FutureTask", "awaitDone");
        check(&[park, ("java.util.concurrent.locks.LockSupport", "park"), future], Doing::Future);
        let aqs = ("java.util.concurrent.locks.AbstractQueuedSynchronizer", "acquire");
        check(&[park, aqs, mine], Doing::Lock);
        assert_eq!(Doing::of(&Profile::new(), ContextId::ROOT), None);
    }
}
