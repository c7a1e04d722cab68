//! What locks, places and threads are called.
//!
//! A lock of a class of the program's is called by that class. One of the JDK's classes may be any
//! of a hundred, so it is called by where it is waited for. No recording has names of fields.

use super::read::Waited;
use std::collections::HashMap;
use tare_java_names::is_jdk;
use tare_profile::{ContextId, FrameId, MethodKind, Profile, StringId, ThreadId, ThreadKind};

/// What waiting is made of.
const MACHINERY: [&str; 6] = [
    "jdk.internal.",
    "java.util.concurrent.locks.",
    "java.lang.Object",
    "java.lang.Thread",
    "java.lang.VirtualThread",
    "java.lang.System",
];

/// Whether a method is only how a thread waits. Threads of any kind wait for conditions by methods of
/// the pool that has forks to join.
fn is_machinery(class: &str, method: &str) -> bool {
    let blocks = ["managedBlock", "unmanagedBlock", "compensatedBlock"].contains(&method);
    MACHINERY.iter().any(|part| class.starts_with(part))
        || blocks && class == "java.util.concurrent.ForkJoinPool"
}

/// A lock that is no other lock: its class, and where it is used if that is needed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub class: StringId,
    /// A class of the program.
    pub home: StringId,
}

/// Which lock each wait is for.
pub(super) fn keys(profile: &Profile, waits: &[Waited]) -> Vec<Key> {
    let mut names = Names::new(profile);
    // One object is one lock, wherever it is waited for: its home has the most of it.
    let mut homes: HashMap<(StringId, i64), HashMap<StringId, u64>> = HashMap::new();
    let homeless = |wait: &Waited| is_jdk_lock(profile.strings.get(wait.class));
    for wait in waits.iter().filter(|wait| homeless(wait) && wait.instance != 0) {
        let sums = homes.entry((wait.class, wait.instance)).or_default();
        *sums.entry(names.home(wait.context)).or_default() += wait.duration.max(1);
    }
    let most = |sums: &HashMap<StringId, u64>| {
        let most = sums.iter().max_by_key(|(home, sum)| (**sum, std::cmp::Reverse(**home)));
        most.map_or(StringId::EMPTY, |(home, _)| *home)
    };
    let homes: HashMap<(StringId, i64), StringId> =
        homes.iter().map(|(lock, sums)| (*lock, most(sums))).collect();
    let key = |wait: &Waited| {
        let home = match homeless(wait) {
            true => match homes.get(&(wait.class, wait.instance)) {
                Some(home) => *home,
                None => names.home(wait.context),
            },
            false => StringId::EMPTY,
        };
        Key { class: wait.class, home }
    };
    waits.iter().map(key).collect()
}

/// Whether a class of lock tells nothing of what it guards.
fn is_jdk_lock(class: &str) -> bool {
    class.is_empty() || is_jdk(class) || !class.contains('.') && class.ends_with("[]")
}

pub(super) fn lock_name(profile: &Profile, key: Key) -> String {
    let class = profile.strings.get(key.class);
    let home = profile.strings.get(key.home);
    match (class, home) {
        ("", "") => "[unknown lock]".to_owned(),
        ("", home) => format!("a lock in {home}"),
        (class, home) if home.is_empty() || home == class => class.to_owned(),
        (class, home) => format!("{} in {home}", of_jdk(class)),
    }
}

/// A class of the JDK's as programs name it: without package, and without the class inside of it
/// that does the work.
fn of_jdk(class: &str) -> &str {
    let simple = class.rsplit('.').next().unwrap_or(class);
    match simple.split_once('$') {
        Some((outer, "ConditionObject")) if outer.starts_with("Abstract") => "Condition",
        Some((outer, inner)) if inner.ends_with("Sync") => outer,
        _ => simple,
    }
}

/// Threads of one name but for their number are one: `worker-#`.
pub(super) fn pool_name(name: &str) -> String {
    let rest = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if rest.len() < name.len() { format!("{rest}#") } else { name.to_owned() }
}

/// All virtual threads to which the program gave no name.
pub const VIRTUAL: &str = "virtual threads";

/// Whether a virtual thread has no name but the one that a recorder made up.
fn is_unnamed(profile: &Profile, thread: ThreadId) -> bool {
    let known = profile.threads.get(thread);
    let name = profile.strings.get(known.name);
    known.kind == ThreadKind::Virtual && (name.is_empty() || name.starts_with("virtual thread "))
}

pub(super) fn thread_group(profile: &Profile, thread: ThreadId) -> String {
    match thread {
        ThreadId::UNKNOWN => String::new(),
        thread if is_unnamed(profile, thread) => VIRTUAL.to_owned(),
        thread => pool_name(&profile.thread_name(thread)),
    }
}

/// Methods of stacks that tell a reader where he is.
pub(crate) struct Names<'p> {
    profile: &'p Profile,
    /// By context: the frame of its place.
    places: HashMap<ContextId, Option<FrameId>>,
}

impl<'p> Names<'p> {
    pub fn new(profile: &'p Profile) -> Self {
        Names { profile, places: HashMap::new() }
    }

    /// The innermost frame of the program's own. If there is none, of the JDK's that is not how
    /// threads wait.
    pub fn place(&mut self, context: ContextId) -> Option<FrameId> {
        let profile = self.profile;
        *self.places.entry(context).or_insert_with(|| {
            let java = |frame: &FrameId| profile.method_of(*frame).kind == MethodKind::Java;
            let mut frames = profile.contexts.frames(context).filter(java);
            let own =
                |frame: &FrameId| !is_jdk(profile.strings.get(profile.method_of(*frame).class));
            let telling = |frame: &FrameId| {
                let method = profile.method_of(*frame);
                let [class, name] =
                    [method.class, method.name].map(|text| profile.strings.get(text));
                !is_machinery(class, name)
            };
            let all = || profile.contexts.frames(context).filter(java);
            frames.find(own).or_else(|| all().find(telling)).or_else(|| all().next())
        })
    }

    fn home(&mut self, context: ContextId) -> StringId {
        let place = self.place(context);
        place.map_or(StringId::EMPTY, |frame| self.profile.method_of(frame).class)
    }

    pub fn method(&self, frame: FrameId) -> String {
        self.profile.method_name(self.profile.frames.get(frame).method)
    }

    /// Where an owner has a lock: its innermost method of the class that the lock belongs to, or
    /// else its place.
    pub fn holder(&mut self, key: Key, waiter: ContextId, owner: ContextId) -> Option<FrameId> {
        let profile = self.profile;
        let waits_in = self.home(waiter);
        let class_of = |frame: FrameId| profile.method_of(frame).class;
        let mine = |frame: &FrameId| {
            let class = class_of(*frame);
            class != StringId::EMPTY && [key.class, key.home, waits_in].contains(&class)
        };
        let java = |frame: &FrameId| profile.method_of(*frame).kind == MethodKind::Java;
        let own = |frame: &FrameId| !is_jdk(profile.strings.get(class_of(*frame)));
        let mut frames = profile.contexts.frames(owner).filter(java).filter(own);
        frames.find(mine).or_else(|| self.place(owner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_and_locks_have_names_that_people_know() {
        assert_eq!(pool_name("http-nio-8080-exec-12"), "http-nio-8080-exec-#");
        assert_eq!(pool_name("main"), "main");
        assert_eq!(of_jdk("java.util.concurrent.locks.ReentrantLock$NonfairSync"), "ReentrantLock");
        let condition = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject";
        assert_eq!(of_jdk(condition), "Condition");
        assert_eq!(of_jdk("java.util.Collections$SynchronizedMap"), "Collections$SynchronizedMap");
        assert!(is_jdk_lock("java.lang.Object") && !is_jdk_lock("com.acme.Pool"));
        let pool = "java.util.concurrent.ForkJoinPool";
        assert!(is_machinery(pool, "unmanagedBlock") && !is_machinery(pool, "awaitWork"));
        assert!(!is_machinery("java.util.concurrent.LinkedBlockingQueue", "take"));
    }
}
