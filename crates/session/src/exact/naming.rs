//! The names of threads, methods and accounts, as a profile has them.

use super::Exact;
use crate::java_method::JavaMethod;
use crate::origins::Origins;
use tare_arena::layout::Origin;
use tare_arena::{MethodName, Snapshot, Tree};
use tare_java_names::type_name;
use tare_profile::{Frame, FrameId, Method, MethodKind, Profile, Thread, ThreadId, ThreadKind};

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

impl Exact {
    /// What stands for a thread or task that was begun below a root, in another tree.
    pub(super) fn origin(&self, origin: Origin) -> String {
        let (Origin::Thread { tree } | Origin::Task { tree }) = origin;
        let who = self.of_trees.get(&tree).map_or("a thread that counted nothing", String::as_str);
        match origin {
            Origin::Thread { .. } => format!("[started by {who}]"),
            Origin::Task { .. } => format!("[task of {who}]"),
        }
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

/// What an allocation site makes, with its line in the method that is its caller.
fn add_site(profile: &mut Profile, site: &MethodName) -> FrameId {
    let mut class = type_name(&site.class).unwrap_or_else(|| site.class.clone());
    if !site.descriptor.is_empty() {
        class = format!("{class} ({})", site.descriptor);
    }
    let class = profile.strings.intern(&class);
    let method = Method { kind: MethodKind::Class, class, ..Method::default() };
    let line = (site.line > 0).then_some(site.line);
    let frame = Frame { line, ..Frame::of(profile.methods.intern(method)) };
    profile.frames.intern(frame)
}

pub fn add_frame(
    profile: &mut Profile,
    known: Option<&MethodName>,
    origins: &Origins,
    id: i32,
) -> FrameId {
    let none = MethodName { class: "[unknown]".into(), name: id.to_string(), ..Default::default() };
    let known = known.unwrap_or(&none);
    if known.is_site() {
        return add_site(profile, known);
    }
    let method = JavaMethod::woven(known).add(profile, Some(origins));
    profile.frames.intern(Frame::of(method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_the_class_of_what_it_makes_and_its_line() {
        let mut profile = Profile::new();
        let mut check = |class: &str, how: &str, line: u32, expected: &str| {
            let (class, descriptor) = (class.to_owned(), how.to_owned());
            let site = MethodName { class, descriptor, line, ..MethodName::default() };
            let frame = add_frame(&mut profile, Some(&site), &Origins::default(), 7);
            let frame = *profile.frames.get(frame);
            assert_eq!(frame.line, (line > 0).then_some(line));
            let method = profile.methods.get(frame.method);
            assert_eq!(method.kind, MethodKind::Class);
            assert_eq!(profile.strings.get(method.class), expected);
        };
        check("[B", "", 12, "byte[]");
        check("Lcom/acme/Order;", "", 0, "com.acme.Order");
        check("[[Lcom/acme/Order;", "or a subclass", 3, "com.acme.Order[][] (or a subclass)");
        check("Ljava/lang/Object;", "by reflection", 3, "java.lang.Object (by reflection)");
    }
}
