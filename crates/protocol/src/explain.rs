//! Why a method is woven or not: the answer to `explain`.

use crate::{Message, WireError};

/// What the search for what roots reach knows of one method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// As the class file spells it: `com/acme/Orders`.
    pub class: String,
    /// Which class loader, as the agent numbers them; zero is the JVM's own.
    pub loader: u32,
    pub method: String,
    pub descriptor: String,
    pub woven: bool,
    /// Why it is not woven, whether or not it is reachable; empty when nothing stands against it.
    pub reason: String,
    /// From the method itself back to where it begins: a method, and how it is reached. Empty
    /// when it is not reachable as far as is known.
    pub chain: Vec<(String, String)>,
}

/// Parts of a value; no name and no reason has one in it.
const SEPARATOR: char = '\n';

impl Explained {
    fn to_text(&self) -> String {
        let (loader, woven) = (self.loader.to_string(), self.woven.to_string());
        let mut parts: Vec<&str> =
            vec![&self.class, &loader, &self.method, &self.descriptor, &woven, &self.reason];
        parts.extend(self.chain.iter().flat_map(|(method, how)| [method.as_str(), how.as_str()]));
        parts.join(&SEPARATOR.to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.split(SEPARATOR).map(str::to_owned);
        let mut explained = Explained {
            class: parts.next()?,
            loader: parts.next()?.parse().ok()?,
            method: parts.next()?,
            descriptor: parts.next()?,
            woven: parts.next()?.parse().ok()?,
            reason: parts.next()?,
            chain: Vec::new(),
        };
        while let (Some(method), Some(how)) = (parts.next(), parts.next()) {
            explained.chain.push((method, how));
        }
        Some(explained)
    }
}

pub(crate) fn to_message(all: &[Explained]) -> Message {
    let texts: Vec<String> = all.iter().map(Explained::to_text).collect();
    Message::new("explained").with_all("method", &texts)
}

pub(crate) fn from_message(m: &Message) -> Result<Vec<Explained>, WireError> {
    let bad = || WireError::BadField { verb: m.verb.clone(), key: "method" };
    m.list("method").iter().map(|text| Explained::from_text(text).ok_or_else(bad)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_come_back_as_they_were_sent() {
        let all = vec![
            Explained {
                class: "com/acme/Orders".into(),
                loader: 3,
                method: "place".into(),
                descriptor: "()V".into(),
                woven: true,
                chain: vec![
                    ("a.B.c".into(), "called by".into()),
                    ("a.R.r".into(), "a root".into()),
                ],
                ..Explained::default()
            },
            Explained { reason: "trivial".into(), ..Explained::default() },
        ];
        assert_eq!(from_message(&to_message(&all)), Ok(all));
        let bad = Message::new("explained").with("method", "too short");
        assert!(from_message(&bad).is_err());
    }
}
