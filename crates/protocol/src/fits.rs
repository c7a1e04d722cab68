//! Which patterns fit anything in a JVM: the answer to `fits`.

use crate::{Message, WireError};

/// What there is for one pattern among the classes that are loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    pub found: Found,
    /// Where nothing fits: what may be meant, and how unlike it is ([`crate::Nearest`]).
    pub nearest: Option<(u32, String)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Found {
    /// Something fits.
    #[default]
    Some,
    /// Nothing fits yet; a class may still be loaded.
    None,
    /// The class that a method's name begins with is loaded, and declares no such method.
    NoMethod,
    /// The methods that fit have no code: they are abstract.
    NoCode,
}

impl Found {
    const ALL: [Found; 4] = [Found::Some, Found::None, Found::NoMethod, Found::NoCode];

    fn name(self) -> &'static str {
        match self {
            Found::Some => "some",
            Found::None => "none",
            Found::NoMethod => "no-method",
            Found::NoCode => "no-code",
        }
    }
}

impl Fit {
    fn to_text(&self) -> String {
        let found = self.found.name();
        match &self.nearest {
            Some((score, name)) => format!("{found} {score} {name}"),
            None => found.to_owned(),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let name = parts.next()?;
        let found = Found::ALL.into_iter().find(|found| found.name() == name)?;
        let nearest = match (parts.next(), parts.next()) {
            (Some(score), Some(name)) => Some((score.parse().ok()?, name.to_owned())),
            (Some(_), None) => return None,
            _ => None,
        };
        Some(Fit { found, nearest })
    }
}

pub(crate) fn to_message(all: &[Fit]) -> Message {
    let texts: Vec<String> = all.iter().map(Fit::to_text).collect();
    Message::new("fitted").with_all("pattern", &texts)
}

pub(crate) fn from_message(m: &Message) -> Result<Vec<Fit>, WireError> {
    let bad = || WireError::BadField { verb: m.verb.clone(), key: "pattern" };
    m.list("pattern").iter().map(|text| Fit::from_text(text).ok_or_else(bad)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_as_they_were_sent() {
        let all = vec![
            Fit::default(),
            Fit { found: Found::None, nearest: Some((3, "com.acme.a b.**".into())) },
            Fit { found: Found::NoMethod, nearest: None },
        ];
        assert_eq!(from_message(&to_message(&all)), Ok(all));
        for bad in ["", "perhaps", "none 3", "none x y"] {
            assert!(from_message(&Message::new("fitted").with("pattern", bad)).is_err(), "{bad}");
        }
    }
}
