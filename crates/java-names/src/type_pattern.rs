//! Classes of objects as users name them: a pattern for classes, `com.acme.**`, and, for arrays, as
//! many `[]` behind it as they have dimensions: `byte[]`, `com.acme.*[][]`.

use crate::pattern::{Pattern, PatternError};
use crate::types::type_name;
use std::fmt;
use std::str::FromStr;

/// A checked pattern for classes and arrays. One for classes fits no arrays of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePattern {
    element: Pattern,
    dimensions: usize,
}

/// A type's name without its `[]`, and how many there are.
fn split(name: &str) -> (&str, usize) {
    let element = name.trim_end_matches("[]");
    (element, (name.len() - element.len()) / 2)
}

impl FromStr for TypePattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (element, dimensions) = split(text);
        Ok(TypePattern { element: element.parse()?, dimensions })
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.element, "[]".repeat(self.dimensions))
    }
}

impl TypePattern {
    /// Whether a type fits, by its name in source: `com.acme.Order`, `byte[]`.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        let (element, dimensions) = split(name);
        dimensions == self.dimensions && self.element.fits_class(element)
    }

    /// Whether a type fits, by its descriptor: `Lcom/acme/Order;`, `[B`.
    #[must_use]
    pub fn fits_descriptor(&self, descriptor: &str) -> bool {
        type_name(descriptor).is_some_and(|name| self.fits(&name))
    }

    /// The pattern of the classes, if it is for them and for no arrays.
    #[must_use]
    pub fn of_classes(&self) -> Option<&Pattern> {
        (self.dimensions == 0).then_some(&self.element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_asked_for_by_their_brackets() {
        let check = |text: &str, yes: &[&str], no: &[&str]| {
            let pattern: TypePattern = text.parse().unwrap();
            assert_eq!(pattern.to_string(), text);
            yes.iter().for_each(|d| assert!(pattern.fits_descriptor(d), "{text} and {d}"));
            no.iter().for_each(|d| assert!(!pattern.fits_descriptor(d), "{text} and {d}"));
        };
        check("byte[]", &["[B"], &["B", "[[B", "[I"]);
        check("com.acme.*", &["Lcom/acme/Order;"], &["[Lcom/acme/Order;", "Lcom/acme/a/B;"]);
        check("com.acme.**[][]", &["[[Lcom/acme/a/B;"], &["[Lcom/acme/a/B;", "Lcom/acme/B;"]);
        check("**", &["Ljava/lang/String;"], &["[J", "not a type"]);
        assert!("com.acme.*".parse::<TypePattern>().unwrap().of_classes().is_some());
        assert!("byte[]".parse::<TypePattern>().unwrap().of_classes().is_none());
    }

    #[test]
    fn bad_patterns_are_named() {
        assert_eq!("[]".parse::<TypePattern>(), Err(PatternError::Empty));
        assert_eq!("a[3]".parse::<TypePattern>(), Err(PatternError::BadCharacter('[')));
        assert_eq!("[B".parse::<TypePattern>(), Err(PatternError::BadCharacter('[')));
    }
}
