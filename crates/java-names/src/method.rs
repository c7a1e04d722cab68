//! Methods as users name them: a pattern for class and name, and, to tell overloads apart, the
//! types of the parameters: `com.acme.Orders.place(int,java.lang.String)`, or the JVM's own
//! spelling, `com.acme.Orders.place(ILjava/lang/String;)V`.

use crate::pattern::{Pattern, PatternError};
use crate::types::parameter_names;
use std::fmt;
use std::str::FromStr;

/// A checked pattern for methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodPattern {
    pattern: Pattern,
    types: Types,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Types {
    Any,
    /// As in source code: dotted names, or names without their package.
    Listed(Vec<String>),
    /// The JVM's spelling, return type included.
    Descriptor(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodPatternError {
    Pattern(PatternError),
    /// What follows the name has no closing bracket, or is no list of types.
    BadTypes(String),
}

impl fmt::Display for MethodPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MethodPatternError::Pattern(error) => error.fmt(f),
            MethodPatternError::BadTypes(text) => write!(
                f,
                "{text:?} is no list of parameter types; write (int,java.lang.String) or \
                 (ILjava/lang/String;)V"
            ),
        }
    }
}

impl std::error::Error for MethodPatternError {}

impl FromStr for MethodPattern {
    type Err = MethodPatternError;

    fn from_str(text: &str) -> Result<Self, MethodPatternError> {
        let (name, types) = match text.find('(') {
            Some(at) => (&text[..at], parse_types(&text[at..])?),
            None => (text, Types::Any),
        };
        let pattern = name.parse().map_err(MethodPatternError::Pattern)?;
        Ok(MethodPattern { pattern, types })
    }
}

fn parse_types(text: &str) -> Result<Types, MethodPatternError> {
    let bad = || MethodPatternError::BadTypes(text.to_owned());
    let (inner, returns) =
        text.strip_prefix('(').and_then(|t| t.split_once(')')).ok_or_else(bad)?;
    if !returns.is_empty() {
        let descriptor = text.replace('.', "/");
        return parameter_names(&descriptor)
            .map(|_| Types::Descriptor(descriptor.clone()))
            .ok_or_else(bad);
    }
    if inner.trim().is_empty() {
        return Ok(Types::Listed(Vec::new()));
    }
    let plain = |c: char| c.is_alphanumeric() || "._$/[]".contains(c);
    inner
        .split(',')
        .map(|ty| {
            let ty = ty.trim().replace("...", "[]").replace('/', ".");
            (!ty.is_empty() && ty.chars().all(plain)).then_some(ty).ok_or_else(bad)
        })
        .collect::<Result<_, _>>()
        .map(Types::Listed)
}

impl fmt::Display for MethodPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pattern.fmt(f)?;
        match &self.types {
            Types::Any => Ok(()),
            Types::Listed(types) => write!(f, "({})", types.join(",")),
            Types::Descriptor(descriptor) => f.write_str(descriptor),
        }
    }
}

impl MethodPattern {
    /// Whether a method fits; the descriptor is the JVM's.
    #[must_use]
    pub fn fits(&self, class: &str, method: &str, descriptor: &str) -> bool {
        self.pattern.fits_method(class, method)
            && match &self.types {
                Types::Any => true,
                Types::Descriptor(wanted) => wanted == descriptor,
                Types::Listed(wanted) => parameter_names(descriptor).is_some_and(|types| {
                    types.len() == wanted.len()
                        && types.iter().zip(wanted).all(|(ty, wanted)| is_called(ty, wanted))
                }),
            }
    }

    /// What is asked of the class, and of the method's name; `None` if it is for all methods of
    /// what it names.
    #[must_use]
    pub fn class_and_method(&self) -> Option<(&str, &str)> {
        self.pattern.class_and_method()
    }

    /// Whether any method of a class could fit.
    #[must_use]
    pub fn fits_some_method(&self, class: &str) -> bool {
        self.pattern.fits_some_method(class)
    }
}

/// A type by its whole name, or by its name without the package.
fn is_called(ty: &str, wanted: &str) -> bool {
    let last = |name: &str| name.rfind(['.', '$']).map_or(0, |at| at + 1);
    ty == wanted || (!wanted.contains('.') && &ty[last(ty)..] == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "(ILjava/lang/String;[J)V";

    fn fits(pattern: &str, descriptor: &str) -> bool {
        pattern.parse::<MethodPattern>().unwrap().fits("com/acme/Orders", "place", descriptor)
    }

    #[test]
    fn overloads_are_told_apart() {
        for pattern in [
            "com.acme.Orders.place",
            "com.acme.*.place(int, java.lang.String, long[])",
            "com.acme.Orders.place(int,String,long...)",
            "com.acme.Orders.place(ILjava/lang/String;[J)V",
            "com.acme.Orders.place(ILjava.lang.String;[J)V",
        ] {
            assert!(fits(pattern, PLACE), "{pattern}");
        }
        for pattern in [
            "com.acme.Orders.place()",
            "com.acme.Orders.place(int,String)",
            "com.acme.Orders.place(int,my.String,long[])",
            "com.acme.Orders.place(int,ring,long[])",
            "com.acme.Orders.place(ILjava/lang/String;[J)I",
            "com.acme.Orders.other(int,String,long[])",
        ] {
            assert!(!fits(pattern, PLACE), "{pattern}");
        }
        assert!(fits("com.acme.Orders.place()", "()V"));
        assert!(fits("com.acme.Orders.place(Entry)", "(Ljava/util/Map$Entry;)V"));
    }

    #[test]
    fn texts_come_back() {
        for text in ["a.B.c", "a.B.c(int,String)", "a.B.c([[ILx/Y;)Lx/Y;", "a.B.c()"] {
            let pattern: MethodPattern = text.parse().unwrap();
            assert_eq!(pattern.to_string(), text);
            assert_eq!(pattern.to_string().parse::<MethodPattern>(), Ok(pattern));
        }
    }

    #[test]
    fn what_is_no_list_of_types_is_named() {
        for text in ["a.B.c(int", "a.B.c(int;)", "a.B.c(I)X", "a.B.c(Q)V", "a.B.c(int,)"] {
            let error = text.parse::<MethodPattern>().unwrap_err();
            assert!(matches!(error, MethodPatternError::BadTypes(_)), "{text}: {error:?}");
        }
        assert!("(int)".parse::<MethodPattern>().is_err());
    }
}
