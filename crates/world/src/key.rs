//! Names of objects, shared between everything that mentions them.

use std::fmt;

use ahash::AHashSet;
use gatewright_ir::Text;

/// Namespace and name of an object whose kind is known from context.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The namespace.
    pub namespace: Text,
    /// The name.
    pub name: Text,
}

impl Key {
    /// Makes a key of texts.
    pub fn new(namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// Keeps one copy of every name: a namespace with ten thousand routes is stored once.
#[derive(Debug, Default)]
pub struct Interner {
    texts: AHashSet<Text>,
    /// How many texts were left after the last sweep.
    kept: usize,
}

impl Interner {
    /// The shared copy of a text.
    pub fn text(&mut self, text: &str) -> Text {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        // Names come and go with their objects; those that nobody holds any more are dropped when the set has doubled.
        if self.texts.len() > 1024 && self.texts.len() > 2 * self.kept {
            self.texts.retain(|text| std::sync::Arc::strong_count(text) > 1);
            self.kept = self.texts.len();
        }
        let shared: Text = text.into();
        self.texts.insert(shared.clone());
        shared
    }

    /// The shared copy of an optional text.
    pub fn optional(&mut self, text: Option<&str>) -> Option<Text> {
        text.map(|text| self.text(text))
    }

    /// A key of shared copies.
    pub fn key(&mut self, namespace: &str, name: &str) -> Key {
        Key {
            namespace: self.text(namespace),
            name: self.text(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Interner;

    #[test]
    fn equal_texts_are_stored_once() {
        let mut names = Interner::default();
        let (first, second) = (names.text("default"), names.text("default"));
        assert!(std::sync::Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn names_of_objects_that_are_gone_do_not_pile_up() {
        let mut names = Interner::default();
        for index in 0..100_000 {
            names.text(&format!("route-{index}"));
        }
        assert!(names.texts.len() < 5_000, "{} texts are still held", names.texts.len());
    }
}
