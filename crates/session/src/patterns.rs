//! Patterns of a recording that fit nothing: told when it begins, with the name that may be meant.
//!
//! What is loaded, the agent knows; what may still be, the class path. What other class loaders
//! will bring nobody knows, so a pattern that fits neither is worth a warning and no more. A method
//! that a loaded class does not have will never come.

use crate::client::Agent;
use crate::error::{Error, Result, refuse};
use crate::launch;
use crate::observer::{Note, Observer};
use crate::origins::Origins;
use crate::words::{plain, several};
use std::ffi::OsString;
use tare_classfile::ClassFile;
use tare_protocol::{
    ExactPlan, ExactStatus, Fit, Found, MethodPattern, Nearest, Pattern, Refusal, Region, Request,
    Response, TypePattern, nearest,
};

enum Asked {
    Class(Pattern),
    Method(MethodPattern),
}

impl Asked {
    fn is_method(&self) -> bool {
        matches!(self, Asked::Method(_))
    }

    fn text(&self) -> String {
        match self {
            Asked::Class(pattern) => pattern.to_string(),
            Asked::Method(pattern) => pattern.to_string(),
        }
    }

    fn fits(&self, class: &str) -> bool {
        match self {
            Asked::Class(pattern) => pattern.fits_class(class),
            Asked::Method(pattern) => pattern.fits_some_method(class),
        }
    }

    /// The part that is for classes.
    fn of_class(&self) -> String {
        match self {
            Asked::Class(pattern) => pattern.to_string(),
            Asked::Method(pattern) => pattern
                .class_and_method()
                .map_or_else(|| pattern.to_string(), |(class, _)| class.to_owned()),
        }
    }
}

/// What a recording was asked for, for its end, if it has nothing of it.
pub struct Wanted {
    roots: bool,
    includes: bool,
    regions: bool,
    /// What fitted nothing, as far as was known when it began.
    unfit: Vec<String>,
}

impl Wanted {
    /// Why nothing was recorded, and what to do about it, when so many methods were woven and so
    /// much was refused.
    pub fn but_nothing(&self, methods: u64, refused: usize) -> String {
        let why = match methods {
            0 if refused > 0 => {
                "every method that was to be woven was refused; `tare report` of the recording says why"
                    .to_owned()
            }
            0 if self.roots => "no loaded class has the root method".to_owned(),
            0 if self.regions => "no loaded class has the region".to_owned(),
            0 if self.includes => "no loaded class fits --include".to_owned(),
            0 => "only JDK classes were loaded; they are woven only if --include names them"
                .to_owned(),
            _ => {
                let were = if methods == 1 { "was" } else { "were" };
                let idle = match () {
                    () if self.roots => "no root ran",
                    () if self.regions => "no region was executed",
                    () => "none was called",
                };
                format!(
                    "{} {were} woven, but {idle}; record for longer, while the program does the work in question",
                    several(methods, "method")
                )
            }
        };
        format!("nothing was recorded: {why}{}", self.unfit())
    }

    /// The same of samples, of which none has a method that fits.
    pub fn but_no_sample(&self, samples: u64) -> String {
        format!(
            "nothing was recorded: none of {} has a method on its stack that fits --include and \
             --exclude{}",
            several(samples, "sample"),
            self.unfit()
        )
    }

    fn unfit(&self) -> String {
        self.unfit.iter().map(|sentence| format!("\n  {sentence}")).collect()
    }
}

/// The patterns of a plan.
#[derive(Clone, Copy, Default)]
pub struct Patterns<'a> {
    pub include: &'a [Pattern],
    pub exclude: &'a [Pattern],
    pub roots: &'a [MethodPattern],
    pub count_only: &'a [MethodPattern],
    pub regions: &'a [Region],
    pub live: &'a [TypePattern],
}

impl<'a> From<&'a ExactPlan> for Patterns<'a> {
    fn from(plan: &'a ExactPlan) -> Self {
        Patterns {
            include: &plan.include,
            exclude: &plan.exclude,
            roots: plan.root_methods(),
            count_only: plan.count_only(),
            regions: plan.regions(),
            live: plan.watched(),
        }
    }
}

/// Warns of what fits nothing, and keeps it for the end of the recording. What can never fit is an
/// error. Of a JVM that was just started by a `command` next to nothing is loaded yet.
pub fn check(
    agent: &mut Agent,
    patterns: &Patterns<'_>,
    command: &[OsString],
    origins: &Origins,
    observer: &mut dyn Observer,
) -> Result<Wanted> {
    let mut asked = asked(patterns);
    // The agent's answer has the classes first.
    asked.sort_by_key(|(_, asked)| asked.is_method());
    if let Some(root) = patterns.roots.iter().find(|root| is_excluded(patterns.exclude, root)) {
        refuse!("--root {root}: --exclude names its class, so it can never be woven");
    }
    let fits = ask(agent, &asked)?;
    let mut names = None;
    let mut unfit = Vec::new();
    for ((flag, asked), fit) in asked.iter().zip(fits) {
        let named = format!("{flag} {}", asked.text());
        match fit.found {
            Found::Some => {}
            Found::NoMethod => refuse!(
                "{named}: the class is loaded and declares no such method (name an inherited method after the \
                 class that declares it){}",
                meant(fit.nearest)
            ),
            Found::NoCode => unfit.push(format!(
                "{named}: the method is abstract and has no code; name its implementations"
            )),
            Found::None => {
                let names = names.get_or_insert_with(|| origins.names());
                let why = match names {
                    Some(names) => not_on_class_path(asked, fit, names, origins),
                    None if !command.is_empty() => None,
                    None => Some(Unfit { of_class: None, meant: fit.nearest }),
                };
                let beside = if names.is_some() { " and none of the class path" } else { "" };
                unfit.extend(why.map(|why| format!("{named}: {}", why.sentence(beside))));
            }
        }
    }
    if command.first().is_none_or(|program| launch::is_java(program)) {
        for sentence in &unfit {
            observer.note(Note::Warning(plain(sentence).into_owned()));
        }
    }
    Ok(Wanted {
        roots: !patterns.roots.is_empty(),
        includes: !patterns.include.is_empty(),
        regions: !patterns.regions.is_empty(),
        unfit,
    })
}

fn is_excluded(exclude: &[Pattern], root: &MethodPattern) -> bool {
    let class = root.class_and_method().map(|(class, _)| class);
    let plain = class.filter(|class| !class.contains(['*', '?']));
    plain.is_some_and(|class| exclude.iter().any(|pattern| pattern.fits_class(class)))
}

/// Says which regions no loaded class has, of a recording that has just begun.
pub fn say_unseen(status: &ExactStatus, observer: &mut dyn Observer) {
    let unseen = status.refused.iter().filter(|refusal| refusal.what.starts_with("region "));
    for Refusal { what, reason, .. } in unseen {
        observer.note(Note::Warning(format!("--{}: {}", plain(what), plain(reason))));
    }
}

/// Why a pattern fits nothing.
struct Unfit {
    /// The class that should have the method, and has not.
    of_class: Option<String>,
    meant: Option<(u32, String)>,
}

impl Unfit {
    fn sentence(self, where_from: &str) -> String {
        match self.of_class {
            Some(class) => format!("{class} declares no such method{}", meant(self.meant)),
            None => format!(
                "no loaded class{where_from} fits; one that is loaded later still may{}",
                meant(self.meant)
            ),
        }
    }
}

/// `; did you mean com.acme.**?`
fn meant(nearest: Option<(u32, String)>) -> String {
    nearest.map_or_else(String::new, |(_, name)| format!("; did you mean {name}?"))
}

/// Of a pattern that no loaded class fits: why no class of the class path does either; `None` if
/// one does.
fn not_on_class_path(
    asked: &Asked,
    fit: Fit,
    names: &[String],
    origins: &Origins,
) -> Option<Unfit> {
    // Loaded classes fit, and the methods of one are nearly called so.
    if fit.nearest.as_ref().is_some_and(|(score, _)| *score == 0) {
        return Some(Unfit { of_class: None, meant: fit.nearest });
    }
    let mut fitting = names.iter().filter(|name| asked.fits(name)).peekable();
    if fitting.peek().is_some() {
        let Asked::Method(pattern) = asked else { return None };
        let (class, method) = pattern.class_and_method()?;
        // Only one class, so that no jar is read from end to end.
        let file = fitting.next().filter(|_| !class.contains(['*', '?']))?;
        let methods = methods(&origins.class_file(file)?)?;
        let internal = class.replace('.', "/");
        if methods.iter().any(|(name, types)| pattern.fits(&internal, name, types)) {
            return None;
        }
        let near = nearest(method, methods.iter().map(|(name, _)| name.as_str()));
        let meant = near.map(|near| (0, format!("{class}.{near}")));
        return Some(Unfit { of_class: Some(class.to_owned()), meant });
    }
    let of_class = asked.of_class();
    let mut nearest = Nearest::to_class(&of_class);
    names.iter().for_each(|name| nearest.look_at(name));
    let tail = asked.text()[of_class.len()..].to_owned();
    let here = nearest
        .found()
        .map(|(score, name)| (score, if name.ends_with("**") { name } else { name + &tail }));
    let meant = [fit.nearest, here].into_iter().flatten().min_by_key(|(score, _)| *score);
    Some(Unfit { of_class: None, meant })
}

/// Names and descriptors of the methods of a class file.
fn methods(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let class = ClassFile::parse(bytes).ok()?;
    let text = |index| Some(String::from_utf8_lossy(class.pool.utf8(index).ok()?).into_owned());
    let of =
        |m: &tare_classfile::Member<'_>| Some((text(m.name_index)?, text(m.descriptor_index)?));
    class.methods.iter().map(of).collect()
}

fn asked(patterns: &Patterns<'_>) -> Vec<(&'static str, Asked)> {
    let class = |flag, list: &[Pattern]| -> Vec<(&'static str, Asked)> {
        list.iter().map(|pattern| (flag, Asked::Class(pattern.clone()))).collect()
    };
    let method = |flag, list: &[MethodPattern]| -> Vec<(&'static str, Asked)> {
        list.iter().map(|pattern| (flag, Asked::Method(pattern.clone()))).collect()
    };
    let region = |region: &Region| match region {
        Region::Lines { class, .. } => ("--region", Asked::Class(class.clone())),
        Region::Method(method) => ("--region", Asked::Method(method.clone())),
    };
    let mut all = class("--include", patterns.include);
    all.extend(class("--exclude", patterns.exclude));
    all.extend(method("--root", patterns.roots));
    all.extend(method("--count-only", patterns.count_only));
    all.extend(patterns.regions.iter().map(region));
    let classes = patterns.live.iter().filter_map(TypePattern::of_classes);
    all.extend(classes.map(|pattern| ("--live", Asked::Class(pattern.clone()))));
    all
}

fn ask(agent: &mut Agent, asked: &[(&'static str, Asked)]) -> Result<Vec<Fit>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let (mut classes, mut methods) = (Vec::new(), Vec::new());
    for (_, asked) in asked {
        match asked {
            Asked::Class(pattern) => classes.push(pattern.clone()),
            Asked::Method(pattern) => methods.push(pattern.clone()),
        }
    }
    match agent.ask(&Request::Fits { classes, methods })? {
        Response::Fitted(fits) if fits.len() == asked.len() => Ok(fits),
        Response::Error { message, .. } => Err(Error::Agent(plain(&message).into_owned())),
        _ => Err(Error::another_question()),
    }
}
