//! Where an object comes from: its class, the method that allocates it, and the first line outside
//! of the JDK on the way there.

use super::SiteBy;
use std::collections::HashMap;
use tare_java_names::is_jdk;
use tare_profile::{ContextId, Frame, MethodKind, Profile};

/// What stands for a class that nobody knows.
pub(super) const UNKNOWN_CLASS: &str = "[unknown class]";

/// Methods by which collections and buffers get more room, whatever their class.
const GROWING: [&str; 6] =
    ["grow", "resize", "rehash", "expandCapacity", "growCapacity", "ensureExplicitCapacity"];
/// And with whatever behind it.
const ENSURING: &str = "ensureCapacity";

/// A method, and a line of it if that is known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Spot {
    pub method: String,
    pub line: Option<u32>,
}

impl Spot {
    fn text(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.method),
            None => self.method.clone(),
        }
    }
}

/// What a line of the lists is called.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SiteName {
    /// The object's class; `None` where lines are not of one class.
    pub class: Option<String>,
    /// The method, with its line where that is a part of the name.
    pub place: Option<String>,
    /// The method of the JDK that allocates most of it for the place, if it is another.
    pub by: Option<String>,
}

/// Where the objects of a context come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub class: String,
    /// The method that allocates.
    pub at: Option<Spot>,
    /// The first one outside of the JDK, or else the same.
    pub place: Option<Spot>,
    /// The method by which a collection grows, if that is what allocates.
    pub growing: Option<String>,
}

impl Origin {
    pub(crate) fn name(&self, by: SiteBy) -> SiteName {
        let text = |spot: &Option<Spot>| spot.as_ref().map(Spot::text);
        let method = |spot: &Option<Spot>| spot.as_ref().map(|spot| spot.method.clone());
        match by {
            SiteBy::Site => {
                SiteName { class: Some(self.class.clone()), place: text(&self.place), by: None }
            }
            SiteBy::Line => SiteName { place: text(&self.at), ..SiteName::default() },
            SiteBy::Class => SiteName { class: Some(self.class.clone()), ..SiteName::default() },
            SiteBy::Method => SiteName { place: method(&self.at), ..SiteName::default() },
            SiteBy::Place => SiteName { place: method(&self.place), ..SiteName::default() },
        }
    }

    /// The method that allocates for the place, if it is another.
    pub(crate) fn by(&self) -> Option<String> {
        let method = |spot: &Option<Spot>| spot.as_ref().map(|spot| spot.method.clone());
        method(&self.at).filter(|at| Some(at) != method(&self.place).as_ref())
    }

    /// The class by its declaration: of a copy it may be a subclass.
    pub(super) fn declared_class(&self) -> &str {
        self.class.strip_suffix(" (or a subclass)").unwrap_or(&self.class)
    }

    /// Whether it is a box around a number, made by the method for that.
    pub(crate) fn is_boxing(&self) -> bool {
        const BOXES: [&str; 7] =
            ["Byte", "Short", "Character", "Integer", "Long", "Float", "Double"];
        let class = self.class.strip_prefix("java.lang.");
        let at = self.at.as_ref().and_then(|at| at.method.strip_suffix(".valueOf"));
        class.is_some_and(|class| BOXES.contains(&class)) && at == Some(&self.class)
    }
}

/// Origins of contexts. Texts of methods are made once.
pub(super) struct Origins<'a> {
    profile: &'a Profile,
    names: HashMap<tare_profile::MethodId, String>,
}

impl<'a> Origins<'a> {
    pub fn new(profile: &'a Profile) -> Self {
        Origins { profile, names: HashMap::new() }
    }

    pub fn of(&mut self, context: ContextId) -> Origin {
        let profile = self.profile;
        let mut class = UNKNOWN_CLASS.to_owned();
        let mut line_of_class = None;
        let (mut at, mut place, mut growing) = (None, None, None);
        for (depth, id) in profile.contexts.frames(context).enumerate() {
            let frame = profile.frames.get(id);
            let method = profile.methods.get(frame.method);
            match method.kind {
                MethodKind::Class if depth == 0 => {
                    class = profile.method_name(frame.method);
                    line_of_class = frame.line;
                }
                MethodKind::Java => {
                    let line = frame.line.or(line_of_class.take());
                    let spot = self.spot(frame, line);
                    at.get_or_insert_with(|| spot.clone());
                    let name = profile.strings.get(method.name);
                    if growing.is_none() && (GROWING.contains(&name) || name.starts_with(ENSURING))
                    {
                        growing = Some(spot.method.clone());
                    }
                    if !is_jdk(profile.strings.get(method.class)) {
                        place = Some(spot);
                        break;
                    }
                }
                // Values without a stack have an account in its stead.
                MethodKind::Special if at.is_none() => at = Some(self.spot(frame, None)),
                _ => {}
            }
        }
        let place = place.or_else(|| at.clone());
        Origin { class, at, place, growing }
    }

    fn spot(&mut self, frame: &Frame, line: Option<u32>) -> Spot {
        let profile = self.profile;
        let name = self.names.entry(frame.method);
        let method = name.or_insert_with(|| profile.method_name(frame.method)).clone();
        Spot { method, line }
    }
}
