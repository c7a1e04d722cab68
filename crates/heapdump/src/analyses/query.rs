//! One line of conditions that objects must fulfil: `class~"com.acme.**" retained>10M
//! field.state="OPEN"`.

use super::visit::Look;
use crate::classes::{ClassId, Type};
use crate::error::{HeapError, Result};
use crate::heap::Heap;
use crate::ids::{Bits, Node};
use crate::levels::{Level, Sum};
use crate::source::Decoder;
use crate::values::Value;
use std::collections::HashMap;
use tare_java_names::Pattern;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
struct Term {
    what: What,
    how: How,
    wanted: String,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Class,
    Extends,
    Size,
    Retained,
    Level,
    Field(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Equal,
    Different,
    Like,
    Unlike,
    More,
    MoreOrEqual,
    Less,
    LessOrEqual,
}

#[derive(Clone, Debug)]
pub struct Query {
    terms: Vec<Term>,
}

/// The longest operators first.
const HOWS: [(&str, How); 8] = [
    (">=", How::MoreOrEqual),
    ("<=", How::LessOrEqual),
    ("!=", How::Different),
    ("!~", How::Unlike),
    ("=", How::Equal),
    ("~", How::Like),
    (">", How::More),
    ("<", How::Less),
];

/// Texts of objects that fields refer to, which are looked up one by one.
const MOST_TEXTS: usize = 200_000;

/// Characters of a text that are compared.
const LONGEST_TEXT: u32 = 1000;

fn wrong(reason: impl Into<String>) -> HeapError {
    HeapError::Query { reason: reason.into() }
}

impl std::str::FromStr for Query {
    type Err = HeapError;

    fn from_str(text: &str) -> Result<Query> {
        let mut terms = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (term, behind) = term(rest)?;
            terms.push(term);
            rest = behind.trim_start();
        }
        if terms.is_empty() {
            return Err(wrong("the query is empty; write class~\"com.acme.**\" retained>1M"));
        }
        Ok(Query { terms })
    }
}

/// The first condition of a text, and what follows it.
fn term(text: &str) -> Result<(Term, &str)> {
    let end = text.find(['=', '~', '<', '>', '!', ' ', '"']).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    let what = match key {
        "class" => What::Class,
        "extends" => What::Extends,
        "size" | "bytes" => What::Size,
        "retained" => What::Retained,
        "reachable" => What::Level,
        _ => match key.strip_prefix("field.").filter(|name| !name.is_empty()) {
            Some(name) => What::Field(name.to_owned()),
            None => {
                return Err(wrong(format!(
                    "{key:?} is nothing to ask for; there are class, extends, size, retained, \
                     reachable and field.NAME"
                )));
            }
        },
    };
    let Some((sign, how)) = HOWS.into_iter().find(|(sign, _)| rest.starts_with(sign)) else {
        return Err(wrong(format!("behind {key:?} one of = != ~ !~ > >= < <= is missing")));
    };
    let rest = &rest[sign.len()..];
    let (wanted, rest) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or_else(|| wrong("a quote has no end"))?,
        None => rest.split_at(rest.find(' ').unwrap_or(rest.len())),
    };
    let term = Term { what, how, wanted: wanted.to_owned() };
    let is_number = matches!(term.what, What::Size | What::Retained);
    if is_number && number(&term.wanted).is_none() {
        let wanted = &term.wanted;
        return Err(wrong(format!("{wanted:?} is no number of bytes; write 512, 64K, 10M or 2G")));
    }
    if is_number && matches!(how, How::Like | How::Unlike) {
        return Err(wrong(format!("{key} is a number; compare it by = != > >= < or <=")));
    }
    Ok((term, rest))
}

/// `512`, `64K`, `10M`, `2G`, `1.5M`.
fn number(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1.0,
        "K" | "KB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| number * factor)
}

impl Term {
    fn holds_for_number(&self, value: f64) -> bool {
        let Some(wanted) = number(&self.wanted) else { return self.how == How::Different };
        match self.how {
            How::Equal | How::Like => value == wanted,
            How::Different | How::Unlike => value != wanted,
            How::More => value > wanted,
            How::MoreOrEqual => value >= wanted,
            How::Less => value < wanted,
            How::LessOrEqual => value <= wanted,
        }
    }

    fn holds_for_text(&self, value: &str) -> bool {
        match self.how {
            How::Equal => value == self.wanted,
            How::Different => value != self.wanted,
            How::Like => Pattern::to_search(&self.wanted).is_found_in(value),
            How::Unlike => !Pattern::to_search(&self.wanted).is_found_in(value),
            How::More => value > self.wanted.as_str(),
            How::MoreOrEqual => value >= self.wanted.as_str(),
            How::Less => value < self.wanted.as_str(),
            How::LessOrEqual => value <= self.wanted.as_str(),
        }
    }
}

/// What a query finds.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// All of them, with their own bytes.
    pub sum: Sum,
    /// Those that retain most.
    pub nodes: Vec<Node>,
}

/// Reads the fields that are asked for.
struct Fields<'a> {
    wanted: &'a Bits,
    /// Where they are, by class.
    places: &'a HashMap<ClassId, Vec<(u32, Type)>>,
    decoder: Decoder,
    found: Vec<(Node, Vec<(Type, u64)>)>,
}

impl Look for Fields<'_> {
    fn instance(&mut self, node: Node, class: ClassId, bytes: &[u8]) {
        if let Some(places) = self.places.get(&class).filter(|_| self.wanted.has(node)) {
            let value =
                |(offset, kind): &(u32, Type)| (*kind, self.decoder.value(bytes, *offset, *kind));
            self.found.push((node, places.iter().map(value).collect()));
        }
    }
}

impl Heap {
    /// The objects that fulfil all conditions, at most so many of them.
    pub fn query(&self, query: &Query, most: usize) -> Result<Answer> {
        let is_class: Vec<bool> =
            self.classes().iter().map(|(id, _)| self.class_fits(id, query)).collect();
        let mut nodes: Vec<Node> = self
            .nodes()
            .filter(|node| is_class[self.class_id(*node) as usize] && self.node_fits(*node, query))
            .collect();
        if query.terms.iter().any(|term| matches!(term.what, What::Field(_))) {
            nodes = self.fields_fit(&nodes, query)?;
        }
        let mut answer = Answer::default();
        nodes.iter().for_each(|node| answer.sum.add(self.size(*node)));
        nodes.sort_by_key(|node| (std::cmp::Reverse(self.retained(*node)), *node));
        nodes.truncate(most);
        answer.nodes = nodes;
        Ok(answer)
    }

    fn class_fits(&self, id: ClassId, query: &Query) -> bool {
        query.terms.iter().all(|term| match &term.what {
            What::Class => term.holds_for_text(&self.classes().get(id).name),
            What::Extends => self
                .classes()
                .lineage(id)
                .any(|above| term.holds_for_text(&self.classes().get(above).name)),
            What::Field(name) => self.classes().field(id, name).is_some(),
            _ => true,
        })
    }

    fn node_fits(&self, node: Node, query: &Query) -> bool {
        let level = |level: Level| format!("{level:?}").to_lowercase();
        query.terms.iter().all(|term| match term.what {
            What::Size => term.holds_for_number(self.size(node) as f64),
            What::Retained => term.holds_for_number(self.retained(node) as f64),
            What::Level => term.holds_for_text(&level(self.level(node))),
            _ => true,
        })
    }

    fn fields_fit(&self, nodes: &[Node], query: &Query) -> Result<Vec<Node>> {
        let asked: Vec<(&Term, &str)> = query
            .terms
            .iter()
            .filter_map(|term| match &term.what {
                What::Field(name) => Some((term, name.as_str())),
                _ => None,
            })
            .collect();
        let mut wanted = Bits::new(self.objects() as usize);
        nodes.iter().for_each(|node| _ = wanted.set(*node));
        let mut places: HashMap<ClassId, Vec<(u32, Type)>> = HashMap::new();
        for (id, _) in self.classes().iter() {
            let fields = asked.iter().map(|(_, name)| {
                self.classes().field(id, name).map(|field| (field.offset, field.field.kind))
            });
            if let Some(fields) = fields.collect::<Option<Vec<_>>>() {
                places.insert(id, fields);
            }
        }
        let decoder = self.source.decoder();
        let make = || Fields { wanted: &wanted, places: &places, decoder, found: Vec::new() };
        let mut texts: HashMap<Node, String> = HashMap::new();
        let mut found = Vec::new();
        for part in self.look(false, make)? {
            for (node, values) in part.found {
                let mut fits = true;
                for ((term, _), (kind, bits)) in asked.iter().zip(values) {
                    fits = fits && self.value_fits(term, self.value(bits, kind), &mut texts)?;
                }
                if fits {
                    found.push(node);
                }
            }
        }
        Ok(found)
    }

    fn value_fits(
        &self,
        term: &Term,
        value: Value,
        texts: &mut HashMap<Node, String>,
    ) -> Result<bool> {
        Ok(match value {
            Value::Object(node) => {
                if !texts.contains_key(&node) {
                    if texts.len() >= MOST_TEXTS {
                        return Err(HeapError::TooLarge {
                            what: format!(
                                "fields of more than {MOST_TEXTS} objects would have to be looked \
                                 up; narrow the query by class, size or retained"
                            ),
                        });
                    }
                    texts.insert(node, self.text(node)?);
                }
                let text = &texts[&node];
                match text.parse::<f64>() {
                    Ok(value) if number(&term.wanted).is_some() => term.holds_for_number(value),
                    _ => term.holds_for_text(text),
                }
            }
            Value::Null | Value::Missing(_) => term.holds_for_text("null"),
            Value::Boolean(value) => term.holds_for_text(&value.to_string()),
            Value::Char(_) => term.holds_for_text(value.to_string().trim_matches('\'')),
            Value::Float(value) => term.holds_for_number(value.into()),
            Value::Double(value) => term.holds_for_number(value),
            value => term.holds_for_number(value.int().unwrap_or(0) as f64),
        })
    }

    /// What an object reads as: a string, a number, the name of a constant, or its class.
    fn text(&self, node: Node) -> Result<String> {
        if let Some(text) = self.string(node, LONGEST_TEXT)? {
            return Ok(text);
        }
        let class = self.class_id(node);
        let is_constant = self.classes().named("java.lang.Enum");
        if is_constant.is_some_and(|above| self.classes().is_a(class, above))
            && let Some(Value::Object(name)) = self.field(node, "name")?
        {
            return Ok(self.string(name, LONGEST_TEXT)?.unwrap_or_default());
        }
        if crate::values::is_boxed(&self.class(node).name)
            && let Some(value) = self.field(node, "value")?
        {
            return Ok(value.to_string());
        }
        Ok(self.class(node).name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_one_by_one() {
        let query: Query =
            "class~\"com.acme.**\" retained>10M field.state=\"A B\"".parse().unwrap();
        let terms: Vec<(&What, How, &str)> =
            query.terms.iter().map(|term| (&term.what, term.how, term.wanted.as_str())).collect();
        assert_eq!(
            terms,
            [
                (&What::Class, How::Like, "com.acme.**"),
                (&What::Retained, How::More, "10M"),
                (&What::Field("state".to_owned()), How::Equal, "A B"),
            ]
        );
        for (text, reason) in [
            ("", "empty"),
            ("clas=x", "\"clas\""),
            ("class", "missing"),
            ("class=\"x", "quote"),
            ("size>many", "number"),
            ("retained~5", "compare"),
            ("field.=1", "\"field.\""),
        ] {
            let error = text.parse::<Query>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_have_units() {
        let holds = |text: &str, value| {
            let query: Query = text.parse().unwrap();
            query.terms[0].holds_for_number(value)
        };
        assert!(holds("size>=1.5K", 1500.0) && !holds("size>1.5K", 1500.0));
        assert!(holds("size!=1", 2.0) && holds("size<2G", 1e9));
    }
}
