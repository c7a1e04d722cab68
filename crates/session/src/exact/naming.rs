//! The names of threads, methods and accounts, as a profile has them.

use crate::java_method::JavaMethod;
use crate::origins::Origins;
use tare_arena::{MethodName, Snapshot, Tree};
use tare_profile::{Frame, FrameId, Profile, Thread, ThreadId, ThreadKind};

pub(super) fn add_thread(profile: &mut Profile, tree: &Tree) -> ThreadId {
    let kind = if tree.of_virtual_threads { ThreadKind::Virtual } else { ThreadKind::Java };
    let name = profile.strings.intern(thread_name(tree));
    let java_id = (!tree.of_virtual_threads && !tree.shared).then_some(tree.thread);
    profile.threads.push(Thread { kind, name, java_id, ..Thread::default() })
}

pub(super) fn thread_name(tree: &Tree) -> &str {
    match (tree.of_virtual_threads, tree.shared) {
        (true, _) => "virtual threads",
        (_, true) => "several threads that have ended",
        _ => &tree.name,
    }
}

/// What calls without a node of their own are shown as.
pub(super) fn rest_name(snapshot: &Snapshot) -> &'static str {
    match (snapshot.depth > 0, snapshot.refused > 0, snapshot.pruned > 0) {
        (false, _, false) => "[no room]",
        (false, _, true) => "[pruned]",
        (true, false, false) => "[deeper]",
        (true, true, false) => "[deeper or no room]",
        (true, _, true) => "[deeper or pruned]",
    }
}

pub fn add_frame(
    profile: &mut Profile,
    known: Option<&MethodName>,
    origins: &Origins,
    id: i32,
) -> FrameId {
    let none = MethodName { class: "[unknown]".into(), name: id.to_string(), ..Default::default() };
    let known = known.unwrap_or(&none);
    let method = JavaMethod::woven(known).add(profile, Some(origins));
    profile.frames.intern(Frame::of(method))
}
