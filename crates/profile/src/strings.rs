//! Texts, each stored once.

use crate::handle::StringId;
use crate::index::Index;

/// All texts of a profile, in one buffer. The empty text is always there, as [`StringId::EMPTY`].
#[derive(Clone, Debug)]
pub struct Strings {
    text: String,
    /// Where each text ends; it begins where the one before it ends.
    ends: Vec<usize>,
    /// Made when it is first needed: a profile that is only read does without.
    index: Option<Index>,
}

impl Default for Strings {
    fn default() -> Self {
        Strings { text: String::new(), ends: vec![0], index: None }
    }
}

impl Strings {
    /// The handle of a text, which is added if it is new.
    ///
    /// # Panics
    /// If there would be more than 2³²−1 texts.
    pub fn intern(&mut self, text: &str) -> StringId {
        if text.is_empty() {
            return StringId::EMPTY;
        }
        let index = self.index.take().unwrap_or_else(|| {
            Index::of(self.ends.len() as u32, |index, row| index.hash_text(self.at(row)))
        });
        let hash = index.hash_text(text);
        let found = index.find(hash, |row| self.at(row) == text);
        let index = self.index.insert(index);
        if let Some(row) = found {
            return StringId::new(row);
        }
        let row = u32::try_from(self.ends.len()).ok().filter(|&row| row < u32::MAX);
        let row = row.expect("more than 2³²−1 texts");
        self.text.push_str(text);
        self.ends.push(self.text.len());
        let (all, ends) = (&self.text, &self.ends);
        index.insert(hash, row, |index, row| index.hash_text(at(all, ends, row)));
        StringId::new(row)
    }

    /// Appends a text without looking for an equal one. For readers of files that hold a table
    /// whole.
    ///
    /// # Panics
    /// If there would be more than 2³²−1 texts.
    pub fn push(&mut self, text: &str) -> StringId {
        let row = u32::try_from(self.ends.len()).ok().filter(|&row| row < u32::MAX);
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.index = None;
        StringId::new(row.expect("more than 2³²−1 texts"))
    }

    /// The handle of a text that is already there.
    pub fn find(&self, text: &str) -> Option<StringId> {
        match &self.index {
            Some(index) => {
                let found = index.find(index.hash_text(text), |row| self.at(row) == text);
                found.map(StringId::new)
            }
            None => self.iter().find(|(_, known)| *known == text).map(|(id, _)| id),
        }
    }

    /// # Panics
    /// If the handle is of another profile and too large for this one.
    pub fn get(&self, id: StringId) -> &str {
        self.at(id.raw())
    }

    /// The number of texts, with the empty one.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no text but the empty one.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    pub fn iter(&self) -> impl Iterator<Item = (StringId, &str)> {
        (0..self.ends.len() as u32).map(|row| (StringId::new(row), self.at(row)))
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let ends = self.ends.capacity() * size_of::<usize>();
        self.text.capacity() + ends + self.index.as_ref().map_or(0, Index::memory)
    }

    fn at(&self, row: u32) -> &str {
        at(&self.text, &self.ends, row)
    }
}

fn at<'a>(text: &'a str, ends: &[usize], row: u32) -> &'a str {
    let row = row as usize;
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &text[start..ends[row]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_handle() {
        let mut strings = Strings::default();
        let (a, b) = (strings.intern("grüße"), strings.intern("b"));
        assert_eq!(strings.intern("grüße"), a);
        assert_ne!(a, b);
        assert_eq!((strings.get(a), strings.get(b)), ("grüße", "b"));
        assert_eq!(strings.intern(""), StringId::EMPTY);
        assert_eq!((strings.len(), strings.find("b"), strings.find("c")), (3, Some(b), None));
        let pushed = strings.push("c");
        assert_eq!((strings.intern("c"), strings.intern("b")), (pushed, b));
    }

    #[test]
    fn many_texts() {
        let mut strings = Strings::default();
        let ids: Vec<_> = (0..50_000).map(|n| strings.intern(&format!("text {n}"))).collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(strings.get(*id), format!("text {n}"));
            assert_eq!(strings.intern(&format!("text {n}")), *id);
        }
    }
}
