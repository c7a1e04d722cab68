//! Labels: what the nodes of a tree are called, after grouping and hiding. One per method, line,
//! class, package, module or loader, found once per frame and not once per context.

use crate::aside::{OF_JVM, OF_NATIVE};
use crate::filter::{Filter, Grouping};
use std::collections::HashMap;
use tare_java_names::{is_jdk, package_of, parameter_names};
use tare_profile::{FrameId, Method, MethodId, MethodKind, Profile, StringId};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LabelKind {
    /// The root of a tree.
    Root,
    Method(MethodKind),
    /// A package, class, module or loader.
    Group,
    /// Where an analysis put what it folded or hid.
    Folded,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// For people: no two labels of a tree have the same.
    pub text: String,
    pub kind: LabelKind,
    /// The method, or the first of those that share the label.
    pub method: Option<MethodId>,
    pub line: Option<u32>,
}

impl Label {
    pub(crate) fn folded(text: &str) -> Self {
        Label { text: text.to_owned(), kind: LabelKind::Folded, method: None, line: None }
    }

    pub(crate) fn root() -> Self {
        Label { text: "[all]".to_owned(), kind: LabelKind::Root, method: None, line: None }
    }

    /// Whether it stands for threads that run no Java, see [`crate::set_aside`].
    pub fn is_aside(&self) -> bool {
        self.is_special() && [OF_JVM, OF_NATIVE].contains(&self.text.as_str())
    }

    /// Whether it stands for the objects of a class, and not for code.
    pub fn is_class(&self) -> bool {
        self.kind == LabelKind::Method(MethodKind::Class)
    }

    /// Whether it stands for something that was not measured but accounted for.
    pub fn is_special(&self) -> bool {
        matches!(self.kind, LabelKind::Method(MethodKind::Special) | LabelKind::Folded)
    }
}

/// The label of each frame, as a number into the labels; `None` where the frame is hidden.
pub(crate) struct Labelling {
    pub of_frame: Vec<Option<u32>>,
    pub labels: Vec<Label>,
}

/// What makes two frames the same label.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Method(MethodKind, StringId, StringId, StringId, Option<u32>),
    Text(&'a str),
}

pub(crate) fn label_frames(profile: &Profile, filter: &Filter) -> Labelling {
    let group = filter.group;
    let mut labels = vec![Label::root()];
    let mut known: HashMap<Key<'_>, u32> = HashMap::new();
    let mut of_frame = Vec::with_capacity(profile.frames.len());
    for (id, frame) in profile.frames.iter() {
        let method = profile.methods.get(frame.method);
        let foreign = matches!(method.kind, MethodKind::Native | MethodKind::Kernel);
        let is_hidden = || {
            let name = profile.method_name(frame.method);
            filter.hide.iter().any(|pattern| pattern.is_found_in(&name))
        };
        if filter.hide_jdk && is_jdk_method(profile, method)
            || filter.java_only && foreign
            || !filter.hide.is_empty() && is_hidden()
        {
            of_frame.push(None);
            continue;
        }
        let (key, line) = key(profile, method, frame.line, group);
        let number = *known.entry(key).or_insert_with_key(|key| {
            labels.push(label(profile, id, key, line));
            labels.len() as u32 - 1
        });
        of_frame.push(Some(number));
    }
    tell_apart(profile, &mut labels);
    Labelling { of_frame, labels }
}

fn key<'a>(
    profile: &'a Profile,
    method: &Method,
    line: Option<u32>,
    group: Grouping,
) -> (Key<'a>, Option<u32>) {
    let text = |id| profile.strings.get(id);
    let by_method =
        |line| (Key::Method(method.kind, method.class, method.name, method.descriptor, line), line);
    // A class is the object that was allocated, and no code that could be a part of a group.
    match method.kind {
        MethodKind::Special => return by_method(None),
        MethodKind::Class => return by_method(line.filter(|_| group == Grouping::Line)),
        _ => {}
    }
    let class = text(method.class);
    let known = |text: &'a str, otherwise| if text.is_empty() { otherwise } else { text };
    let key = match group {
        Grouping::Method => return by_method(None),
        Grouping::Line => return by_method(line),
        Grouping::Class => known(class, "[no class]"),
        Grouping::Package if class.is_empty() => known(text(method.module), "[no package]"),
        Grouping::Package => known(package_of(class), "[default package]"),
        Grouping::Module => known(text(method.module), "[unknown module]"),
        Grouping::Loader => known(text(method.loader), "[unknown loader]"),
    };
    (Key::Text(key), None)
}

fn label(profile: &Profile, frame: FrameId, key: &Key<'_>, line: Option<u32>) -> Label {
    let id = profile.frames.get(frame).method;
    match key {
        Key::Text(text) => {
            Label { text: (*text).to_owned(), kind: LabelKind::Group, method: None, line: None }
        }
        Key::Method(kind, ..) => {
            let mut text = profile.method_name(id);
            match line {
                // The line is of the method that allocates it.
                Some(line) if *kind == MethodKind::Class => {
                    text.push_str(&format!(" (line {line})"))
                }
                Some(line) => text.push_str(&format!(":{line}")),
                None => {}
            }
            Label { text, kind: LabelKind::Method(*kind), method: Some(id), line }
        }
    }
}

/// Overloads get their arguments, but only where there are several; anything else a number.
fn tell_apart(profile: &Profile, labels: &mut [Label]) {
    let numbers_of = |labels: &[Label]| {
        let mut of: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, label) in labels.iter().enumerate() {
            of.entry(label.text.clone()).or_default().push(number);
        }
        let several = of.into_values().filter(|numbers| numbers.len() > 1);
        several.collect::<Vec<_>>()
    };
    for number in numbers_of(labels).into_iter().flatten() {
        if labels[number].is_class() {
            labels[number].text.push_str(" (object)");
            continue;
        }
        let method = labels[number].method.map(|id| profile.methods.get(id));
        let descriptor = method.map_or("", |method| profile.strings.get(method.descriptor));
        labels[number].text.push_str(&arguments(descriptor));
    }
    for numbers in numbers_of(labels) {
        for (count, number) in numbers.into_iter().enumerate().skip(1) {
            labels[number].text.push_str(&format!(" #{}", count + 1));
        }
    }
}

fn is_jdk_method(profile: &Profile, method: &Method) -> bool {
    method.kind == MethodKind::Java && is_jdk(profile.strings.get(method.class))
}

/// `(ILjava/lang/String;[J)V` as `(int, String, long[])`; empty for what is no descriptor.
fn arguments(descriptor: &str) -> String {
    let names = parameter_names(descriptor).map(|names| {
        let short = |name: &String| name.rsplit('.').next().unwrap_or(name).to_owned();
        format!("({})", names.iter().map(short).collect::<Vec<_>>().join(", "))
    });
    names.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_profile::Frame;

    #[test]
    fn arguments_read_as_in_source() {
        for (descriptor, text) in [
            ("()V", "()"),
            ("(ILjava/lang/String;[[J)V", "(int, String, long[][])"),
            ("", ""),
            ("(", ""),
            ("(L)V", ""),
        ] {
            assert_eq!(arguments(descriptor), text, "{descriptor}");
        }
    }

    #[test]
    fn overloads_are_told_apart_and_only_they() {
        let mut profile = Profile::new();
        let class = profile.strings.intern("a.B");
        for (name, descriptor) in [("f", "(I)V"), ("f", "(J)V"), ("g", "(I)V")] {
            let (name, descriptor) =
                (profile.strings.intern(name), profile.strings.intern(descriptor));
            let method = Method { class, name, descriptor, ..Method::default() };
            let method = profile.methods.intern(method);
            profile.frames.intern(Frame::of(method));
            profile.frames.intern(Frame { line: Some(3), ..Frame::of(method) });
        }
        let texts = |group| {
            let labelling = label_frames(&profile, &Filter { group, ..Filter::default() });
            let texts = labelling.labels.iter().map(|label| label.text.as_str());
            texts.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(texts(Grouping::Method), "[all] a.B.f(int) a.B.f(long) a.B.g");
        let lines = "[all] a.B.f(int) a.B.f:3(int) a.B.f(long) a.B.f:3(long) a.B.g a.B.g:3";
        assert_eq!(texts(Grouping::Line), lines);
        assert_eq!(texts(Grouping::Package), "[all] a");
        assert_eq!(texts(Grouping::Loader), "[all] [unknown loader]");
    }
}
