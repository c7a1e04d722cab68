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

/// What is known of the methods that fit a pattern: the first of them, if there are many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanations {
    pub methods: Vec<Explained>,
    /// How many more fit, and how many of those are woven.
    pub more: u64,
    pub more_woven: u64,
}

/// Parts of a value. A name may have any character in it, this one as well; there it is written
/// `\n`.
const SEPARATOR: char = '\n';

fn escape(part: &str) -> String {
    part.replace('\\', "\\\\").replace(SEPARATOR, "\\n")
}

fn unescape(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next().map(|c| if c == 'n' { SEPARATOR } else { c })),
            c => out.push(c),
        }
    }
    out
}

impl Explained {
    fn to_text(&self) -> String {
        let (loader, woven) = (self.loader.to_string(), self.woven.to_string());
        let mut parts: Vec<&str> =
            vec![&self.class, &loader, &self.method, &self.descriptor, &woven, &self.reason];
        parts.extend(self.chain.iter().flat_map(|(method, how)| [method.as_str(), how.as_str()]));
        let parts: Vec<String> = parts.into_iter().map(escape).collect();
        parts.join(&SEPARATOR.to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.split(SEPARATOR).map(unescape);
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

pub(crate) fn to_message(all: &Explanations) -> Message {
    let texts: Vec<String> = all.methods.iter().map(Explained::to_text).collect();
    let message = Message::new("explained").with_all("method", &texts);
    message.with("more", all.more).with("more-woven", all.more_woven)
}

pub(crate) fn from_message(m: &Message) -> Result<Explanations, WireError> {
    let bad = || WireError::BadField { verb: m.verb.clone(), key: "method" };
    let methods = m.list("method");
    let methods = methods.iter().map(|text| Explained::from_text(text).ok_or_else(bad));
    Ok(Explanations {
        methods: methods.collect::<Result<_, _>>()?,
        more: m.parse("more")?,
        more_woven: m.parse("more-woven")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_come_back_as_they_were_sent() {
        let methods = vec![
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
            Explained {
                class: "a\nb\\n\\".into(),
                method: "\n".into(),
                chain: vec![("x\n".into(), "\\\n".into())],
                ..Explained::default()
            },
        ];
        let all = Explanations { methods, more: 7, more_woven: 2 };
        assert_eq!(from_message(&to_message(&all)), Ok(all.clone()));
        let bad = to_message(&Explanations { methods: Vec::new(), ..all });
        let bad = bad.with("method", "too short");
        assert!(from_message(&bad).is_err());
    }
}
