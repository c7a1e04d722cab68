//! Which patterns fit anything among the loaded classes, and what may be meant by those that fit
//! nothing.
//!
//! It is asked before anything is woven, so that a misspelt name is told at the start of a
//! recording.

use crate::jvm::classes::Classes;
use crate::jvm::{Failure, Jni, Jvmti};
use jvmti_bindings::sys::jni::jclass;
use jvmti_bindings::sys::jvmti;
use std::cell::Cell;
use tare_classfile::access;
use tare_protocol::{Fit, Found, MethodPattern, Nearest, Pattern, nearest};

/// Classes whose methods are looked at for one question. The JVM keeps something for each method
/// that it was asked for, and a pattern such as `**.get` could ask for all.
const MOST_CLASSES: usize = 2_000;

/// What fits each of them: classes first, then methods.
pub fn fits(
    jvmti: Jvmti,
    jni: Jni,
    classes: &[Pattern],
    methods: &[MethodPattern],
) -> Result<Vec<Fit>, Failure> {
    let found = jni.frame(|| {
        jvmti.with_loaded_classes(jni, |loaded| {
            let mut all: Vec<ClassSearch<'_>> = classes.iter().map(ClassSearch::new).collect();
            let mut of: Vec<MethodSearch<'_>> = methods.iter().map(MethodSearch::new).collect();
            let left = Cell::new(MOST_CLASSES);
            for &class in loaded.list() {
                let Some(name) = loaded.name(class) else { continue };
                all.iter_mut().for_each(|search| search.look_at(&name));
                for search in &mut of {
                    search.look_at(jvmti, loaded, class, &name, &left);
                }
            }
            let all = all.into_iter().map(ClassSearch::end);
            all.chain(of.into_iter().map(MethodSearch::end)).collect()
        })
    });
    let out_of_memory = Failure { call: "PushLocalFrame", error: jvmti::jvmtiError::OUT_OF_MEMORY };
    found.unwrap_or(Err(out_of_memory))
}

struct ClassSearch<'a> {
    pattern: &'a Pattern,
    nearest: Option<Nearest>,
}

impl<'a> ClassSearch<'a> {
    fn new(pattern: &'a Pattern) -> Self {
        ClassSearch { pattern, nearest: Some(Nearest::to_class(&pattern.to_string())) }
    }

    fn look_at(&mut self, name: &str) {
        let Some(nearest) = &mut self.nearest else { return };
        if self.pattern.fits_class(name) {
            self.nearest = None;
        } else {
            nearest.look_at(name);
        }
    }

    fn end(self) -> Fit {
        match self.nearest {
            Some(nearest) => Fit { found: Found::None, nearest: nearest.found() },
            None => Fit::default(),
        }
    }
}

struct MethodSearch<'a> {
    pattern: &'a MethodPattern,
    nearest: Nearest,
    /// One of a class that fits, if no method does.
    method: Option<String>,
    /// Whether classes fit whose methods are known, and such whose are not.
    known: bool,
    unknown: bool,
    found: bool,
    without_code: bool,
}

impl<'a> MethodSearch<'a> {
    fn new(pattern: &'a MethodPattern) -> Self {
        let text = pattern.to_string();
        let class = pattern.class_and_method().map_or(text.as_str(), |(class, _)| class);
        MethodSearch {
            pattern,
            nearest: Nearest::to_class(class),
            method: None,
            known: false,
            unknown: false,
            found: false,
            without_code: false,
        }
    }

    fn look_at(
        &mut self,
        jvmti: Jvmti,
        loaded: &Classes<'_>,
        class: jclass,
        name: &str,
        left: &Cell<usize>,
    ) {
        if self.found {
            return;
        }
        if !self.pattern.fits_some_method(name) {
            self.nearest.look_at(name);
            return;
        }
        let room = left.get().checked_sub(1);
        left.set(room.unwrap_or(0));
        // What cannot be told is taken to fit, so that nobody is warned in vain.
        let methods = room.filter(|_| loaded.is_linked(class)).and_then(|_| jvmti.methods(class));
        let Some(methods) = methods else {
            self.unknown = true;
            return;
        };
        self.known = true;
        let mut names = Vec::new();
        for method in &methods {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (method_name, descriptor) = (text(&method.name), text(&method.descriptor));
            if self.pattern.fits(name, &method_name, &descriptor) {
                let has_code = method.access_flags & access::ABSTRACT == 0;
                self.found |= has_code;
                self.without_code |= !has_code;
            }
            names.push((method_name, descriptor));
        }
        self.method = self.method.take().or_else(|| self.near_method(name, &names));
    }

    /// The method of a class that is called nearly as the one that is looked for, or called so and
    /// has other parameters.
    fn near_method(&self, class: &str, names: &[(String, String)]) -> Option<String> {
        let (_, wanted) = self.pattern.class_and_method()?;
        let class = class.replace('/', ".");
        if let Some((name, descriptor)) = names.iter().find(|(name, _)| name == wanted) {
            return Some(format!("{class}.{name}{descriptor}"));
        }
        let near = nearest(wanted, names.iter().map(|(name, _)| name.as_str()))?;
        Some(format!("{class}.{near}"))
    }

    fn end(self) -> Fit {
        if self.found || (self.unknown && !self.known) {
            return Fit::default();
        }
        if self.without_code {
            return Fit { found: Found::NoCode, nearest: None };
        }
        let plain = |(class, _): (&str, &str)| !class.contains(['*', '?']);
        let named = self.pattern.class_and_method().is_some_and(plain);
        let found =
            if named && self.known && !self.unknown { Found::NoMethod } else { Found::None };
        // A method of a class that fits is nearer than any other class.
        let of_class = self.nearest.found().filter(|_| !self.known).map(|(score, class)| {
            let text = self.pattern.to_string();
            let class_part = self.pattern.class_and_method().map_or(text.as_str(), |(c, _)| c);
            // A package says nothing of the class in which the method is.
            let method = text[class_part.len()..].to_owned();
            (score, if class.ends_with("**") { class } else { class + &method })
        });
        Fit { found, nearest: self.method.map(|name| (0, name)).or(of_class) }
    }
}
