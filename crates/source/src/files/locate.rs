//! Finds the line and column of a field in a document.
//!
//! Documents are read without places, because nearly all are fine. When something is found in one, it is read a
//! second time, with places, to say where.

use std::fmt;

use gatewright_api::validate::Step;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::{parse::options, split::Chunk};

/// A document with the place of everything in it; the scalars themselves are not needed.
#[derive(Debug)]
enum Node {
    Scalar,
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

/// A document read with places.
#[derive(Debug)]
pub(super) struct Located {
    root: Spanned<Node>,
    lines_before: u64,
}

impl Located {
    /// Reads a document. Nothing if it cannot be read so, which for what parsed before is rare.
    pub(super) fn read(chunk: Chunk<'_>) -> Option<Located> {
        let root = serde_saphyr::from_str_with_options(chunk.text, options(chunk.text.len())).ok()?;
        Some(Located {
            root,
            lines_before: chunk.lines_before,
        })
    }

    /// Line and column, in the file, of the deepest part of `path` that exists in the document.
    ///
    /// For a scalar that is the value; for a list or mapping, or if `wants_key`, the key in front of it.
    pub(super) fn find<'s>(&self, path: impl IntoIterator<Item = &'s Step>, wants_key: bool) -> (u64, u64) {
        let mut here = &self.root;
        let mut place = self.root.referenced;
        for step in path {
            let (next_place, next) = match (step, &here.value) {
                (Step::Field(name), Node::Map(entries)) => {
                    let Some((key, value)) = entries.iter().find(|(key, _)| key.value == *name) else {
                        break;
                    };
                    let is_value = matches!(value.value, Node::Scalar) && !wants_key;
                    (if is_value { value.referenced } else { key.referenced }, value)
                }
                (Step::Index(index), Node::List(items)) => {
                    let Some(item) = items.get(*index) else { break };
                    (item.referenced, item)
                }
                _ => break,
            };
            (place, here) = (next_place, next);
        }
        (place.line() + self.lines_before, place.column())
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}
