//! Code regions as users name them: `com.acme.Orders:120-148` for source lines,
//! `com.acme.Orders:120` for one of them, or a method, `com.acme.Orders.place(int)`.

use crate::{MethodPattern, Pattern};
use std::fmt;
use std::str::FromStr;

/// A checked region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Region {
    Lines { class: Pattern, first: u16, last: u16 },
    Method(MethodPattern),
}

/// Regions of one recording. Their number has eight bits where the time of an entry is kept.
pub const REGIONS_MAX: usize = 256;

impl FromStr for Region {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Of `Orders::place` the last colon is no border before lines.
        let lines = text.rsplit_once(':').filter(|(class, _)| !class.ends_with(':'));
        let Some((class, lines)) = lines else {
            let method: MethodPattern = text.parse().map_err(|e| format!("{e}"))?;
            if !text.split('(').next().is_some_and(|name| name.contains(['.', '/', '#', ':'])) {
                return Err(format!(
                    "{text:?} names no method; write com.acme.Orders.place or com.acme.Orders:120-148"
                ));
            }
            return Ok(Region::Method(method));
        };
        let class = class.parse().map_err(|e| format!("{e}"))?;
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if 0 < first && first <= last => {
                Ok(Region::Lines { class, first, last })
            }
            _ => Err(format!("{lines:?} are no lines; write com.acme.Orders:120-148")),
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Region::Lines { class, first, last } if first == last => write!(f, "{class}:{first}"),
            Region::Lines { class, first, last } => write!(f, "{class}:{first}-{last}"),
            Region::Method(method) => method.fmt(f),
        }
    }
}

impl Region {
    /// Whether a class can have it.
    #[must_use]
    pub fn fits_class(&self, class_name: &str) -> bool {
        match self {
            Region::Lines { class, .. } => class.fits_class(class_name),
            Region::Method(method) => method.fits_some_method(class_name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_come_back() {
        for text in ["com.acme.Orders:120-148", "a.B$C:7", "a.B.c", "a.B.c(int,String)"] {
            let region: Region = text.parse().unwrap();
            assert_eq!(region.to_string(), text);
        }
        assert_eq!("a.B::c".parse::<Region>(), "a.B.c".parse());
        let lines: Region = "com.acme.Orders:120-148".parse().unwrap();
        assert!(lines.fits_class("com/acme/Orders") && !lines.fits_class("com/acme/Orders$1"));
    }

    #[test]
    fn what_is_no_region_is_named() {
        for text in ["a.B:0", "a.B:9-8", "a.B:x", "a.B:", ":1", "place", "a.B.c(int"] {
            assert!(text.parse::<Region>().is_err(), "{text}");
        }
    }
}
