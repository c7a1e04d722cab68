//! What differs from run to run of a program that does the same, and says nothing about it: work of
//! the JDK that depends on the collector, on how often something ran before, or on who came first.

use tare_java_names::{JvmThread, jvm_thread};
use tare_profile::Profile;

/// Packages and classes of the JDK whose work depends on warm-up, on loading or on waiting.
const PREFIXES: [&str; 16] = [
    // Reflection and method handles are compiled once they have been used often enough.
    "java.lang.invoke.",
    "jdk.internal.reflect.",
    "java.lang.reflect.Proxy",
    "jdk.internal.org.objectweb.asm.",
    "jdk.internal.classfile.",
    "java.lang.classfile.",
    // Whoever needs a class first loads it.
    "java.lang.ClassLoader",
    "java.net.URLClassLoader",
    "java.security.SecureClassLoader",
    "jdk.internal.loader.",
    "jdk.internal.module.",
    // What the collector finds.
    "java.lang.ref.",
    "jdk.internal.ref.",
    // Who waits, spins.
    "java.util.concurrent.locks.",
    "java.util.concurrent.ForkJoin",
    "java.util.concurrent.SynchronousQueue",
];

/// Whether a method, by its name with its class, is such work.
pub fn is_unstable(method: &str) -> bool {
    PREFIXES.iter().any(|prefix| method.starts_with(prefix))
}

/// Which contexts pass through such code, or through a static initialiser: it runs once, in
/// whatever context comes first.
pub(crate) fn contexts(profile: &Profile) -> Vec<bool> {
    let unstable: Vec<bool> = profile
        .methods
        .iter()
        .map(|(_, method)| {
            let class = profile.strings.get(method.class);
            profile.strings.get(method.name) == "<clinit>" || is_unstable(class)
        })
        .collect();
    let mut below = vec![false; profile.contexts.len()];
    for (id, parent, frame) in profile.contexts.iter() {
        let method = profile.frames.get(frame).method;
        below[id.index()] = below[parent.index()] || unstable[method.index()];
    }
    below
}

/// Whether a thread of this name is none of the program's and runs Java when it likes.
pub fn is_service(thread: &str) -> bool {
    matches!(jvm_thread(thread), Some(JvmThread::Service | JvmThread::Helper))
}

#[cfg(test)]
mod tests {
    use crate::{Filter, narrow};
    use tare_profile::{
        ContextId, Frame, Method, Profile, Row, SeriesInfo, Thread, ThreadId, ValueKind,
    };

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        let mut profile = Profile::new();
        let series = profile.add_series(SeriesInfo::new("exact", ValueKind::Bytecodes));
        let mut thread = |name: &str| {
            let name = profile.strings.intern(name);
            profile.threads.push(Thread { name, ..Thread::default() })
        };
        let (main, finalizer) = (thread("main"), thread("Finalizer"));
        let mut add = |path: &[(&str, &str)], thread: ThreadId, value: i64| {
            let mut context = ContextId::ROOT;
            for (class, name) in path {
                let (class, name) = (profile.strings.intern(class), profile.strings.intern(name));
                let method = profile.methods.intern(Method { class, name, ..Method::default() });
                let frame = profile.frames.intern(Frame::of(method));
                context = profile.contexts.child(context, frame);
            }
            profile.series_mut(series).push(Row::new(context, thread, value));
        };
        let run = ("a.Main", "run");
        add(&[run], main, 1);
        add(&[run, ("java.util.HashMap", "get")], main, 2);
        add(&[run, ("java.lang.invoke.LambdaForm", "x"), ("a.B", "called")], main, 4);
        add(&[run, ("a.C", "<clinit>"), ("a.C", "table")], main, 8);
        add(&[("a.D", "finalize")], finalizer, 16);
        let stable = Filter { stable: true, ..Filter::default() };
        let left = narrow(profile, series, &stable).unwrap();
        assert_eq!(left.series(series).rows().map(|row| row.value).collect::<Vec<_>>(), [1, 2]);
    }
}
