//! Objects as people name them: class, address, and what tells one from another.

use super::Asked;
use crate::figures::{fit, grouped};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tare_heapdump::{By, ClassId, Heap, Node};
use tare_java_names::Pattern;

/// Bytes for people.
pub fn bytes(bytes: u64) -> String {
    crate::figures::value(i64::try_from(bytes).unwrap_or(i64::MAX), tare_profile::Unit::Bytes)
}

pub fn number(number: u64) -> String {
    grouped(i64::try_from(number).unwrap_or(i64::MAX))
}

/// `java.util.HashMap @7f0012a8 (size 17)`, no wider than that.
pub fn object(heap: &Heap, node: Node, width: usize) -> Result<String> {
    let label = heap.label(node)?;
    if heap.as_class(node).is_some() {
        let name = label.unwrap_or_default();
        return Ok(format!("class {}", fit(&name, width.saturating_sub(6))));
    }
    let address = format!(" @{:x}", heap.address(node));
    let label = label.map(|label| format!(" ({label})")).unwrap_or_default();
    let label = crate::term::plain(&label).into_owned();
    let name = &heap.class(node).name;
    let room = width.saturating_sub(address.len() + label.chars().count());
    Ok(format!("{}{address}{label}", fit(name, room.max(20))))
}

/// The same for scripts.
pub fn object_json(heap: &Heap, node: Node) -> Result<Value> {
    Ok(json!({
        "address": format!("{:x}", heap.address(node)),
        "class": heap.class(node).name,
        "label": heap.label(node)?,
        "bytes": heap.size(node),
        "retained": heap.retained(node),
    }))
}

/// How the step before refers to one, as a text in front of it.
pub fn by_text(by: &By) -> String {
    match by {
        By::Root => String::new(),
        By::Field(name) => name.clone(),
        By::Static(name) => format!("static {name}"),
        By::Element(at) => format!("[{at}]"),
        By::Loader => "its loader".to_owned(),
        By::Class => "its class".to_owned(),
        By::Local(Some(frame)) => format!("variable in {frame}"),
        By::Local(None) => "variable of a native method".to_owned(),
        By::Hidden => "inside the JVM".to_owned(),
    }
}

/// A way from a root in one line; a static field is named as in source.
pub fn way_text(way: &[String]) -> String {
    let way = match way {
        [class, field, rest @ ..] => {
            match (class.strip_prefix("class "), field.strip_prefix("static ")) {
                (Some(class), Some(field)) => {
                    let first = format!("static {class}.{field}");
                    std::iter::once(first)
                        .chain(rest.iter().cloned())
                        .collect::<Vec<_>>()
                        .join(" → ")
                }
                _ => way.join(" → "),
            }
        }
        _ => way.join(" → "),
    };
    crate::term::plain(&way).into_owned()
}

/// What `@7f0012a8` names.
pub fn find(asked: &Asked<'_>, text: &str) -> Result<Node> {
    let digits = text.trim_start_matches('@');
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let Ok(address) = u64::from_str_radix(digits, 16) else {
        bail!("{text:?} is no object; write @ and the address, as @7f0012a8");
    };
    asked.heap.find(address).with_context(|| {
        format!("the dump has no object at @{address:x}; `tare heap FILE dominators` lists some")
    })
}

/// The classes that a name or a pattern fits; a part of a name will do.
pub fn classes(heap: &Heap, text: &str) -> Result<Vec<ClassId>> {
    let fitting = |fits: &dyn Fn(&str) -> bool| -> Vec<ClassId> {
        let all = heap.classes().iter();
        all.filter(|(_, class)| fits(&class.name)).map(|(id, _)| id).collect()
    };
    let found = fitting(&|name| name == text);
    if !found.is_empty() {
        return Ok(found);
    }
    let pattern = Pattern::to_search(text);
    let found = fitting(&|name| pattern.is_found_at_end_of(name));
    if found.is_empty() {
        let near = fitting(&|name| name.to_lowercase().contains(&text.to_lowercase()));
        let near: Vec<&str> =
            near.iter().take(3).map(|id| heap.classes().get(*id).name.as_str()).collect();
        let hint = match near.as_slice() {
            [] => "`tare heap FILE histo` lists all".to_owned(),
            near => format!("there are {}", near.join(", ")),
        };
        bail!("the dump has no class {text:?}; {hint}");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_read_as_source_does() {
        let text =
            |way: &[&str]| way_text(&way.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        assert_eq!(text(&["class a.B", "static map: C", ".x: D"]), "static a.B.map: C → .x: D");
        assert_eq!(text(&["a.B", ".x: D"]), "a.B → .x: D");
        assert_eq!(text(&["a.B"]), "a.B");
    }
}
