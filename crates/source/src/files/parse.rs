//! Text to values: a document of a YAML or JSON file, or where it cannot be parsed.
//!
//! Scalars are read as `kubectl` reads them (YAML 1.1: `yes` is true, `010` is eight). Work and memory are bounded by
//! the length of the text, so that aliases cannot make much of little.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Options;

use super::split::Chunk;

/// Deepest nesting: Kubernetes objects need a dozen levels.
const MOST_DEPTH: usize = 64;
/// Aliases may add so many nodes to what the text itself could hold.
const ALIAS_ALLOWANCE: usize = 10_000;

/// A file's notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    Yaml,
    Json,
}

/// Why a document cannot be parsed, with line and column in the file (0 when unknown).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) message: String,
    pub(super) hint: &'static str,
    pub(super) line: u64,
    pub(super) column: u64,
}

/// How YAML is read, for a text of this length.
pub(super) fn options(length: usize) -> Options {
    // Without aliases a text cannot have more nodes than characters, nor more events than three per node.
    let nodes = length.saturating_add(ALIAS_ALLOWANCE);
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 2,
            max_depth: MOST_DEPTH,
            max_nodes: nodes,
            max_events: nodes.saturating_mul(3),
            max_total_scalar_bytes: length.saturating_mul(2).saturating_add(ALIAS_ALLOWANCE),
            max_recorded_anchor_events: nodes,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: nodes,
        },
        legacy_octal_numbers: true,
        emit_comments: false,
        with_snippet: false,
    }
}

/// Reads one document of a YAML stream; null if it has no content.
pub(super) fn parse_yaml(chunk: Chunk<'_>) -> Result<Value, SyntaxError> {
    let read: Result<Strict, _> = serde_saphyr::from_str_with_options(chunk.text, options(chunk.text.len()));
    read.map(|Strict(value)| value).map_err(|error| {
        let error = error.without_snippet();
        let (line, column) = error.location().map_or((0, 0), |place| (place.line(), place.column()));
        let message = strip_location(&error.to_string());
        let line = if line == 0 { 0 } else { line + chunk.lines_before };
        SyntaxError {
            hint: hint_for(chunk, line, &message),
            message,
            line,
            column,
        }
    })
}

/// The parser says the place again at the end of its text; it is shown apart.
fn strip_location(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let end = [" at line ", " at byte "]
        .into_iter()
        .filter_map(|mark| first.find(mark))
        .min()
        .unwrap_or(first.len());
    let text = first.get(..end).unwrap_or(first).trim_end_matches([' ', ',', ':']);
    if text.is_empty() {
        "cannot be parsed as YAML".to_owned()
    } else {
        text.to_owned()
    }
}

fn hint_for(chunk: Chunk<'_>, line: u64, message: &str) -> &'static str {
    let position = usize::try_from(line.saturating_sub(chunk.lines_before + 1)).unwrap_or(usize::MAX);
    let text = chunk.text.lines().nth(position).unwrap_or_default();
    let indentation: &str = text.get(..text.len() - text.trim_start().len()).unwrap_or_default();
    if indentation.contains('\t') {
        "indent with spaces: YAML does not allow tabs there"
    } else if message.contains("uplicate") {
        "remove one of the two keys"
    } else if message.contains("udget") || message.contains("limit") {
        "write the document without so many aliases, or less deeply nested"
    } else {
        "check the indentation and the quotes of this line and the one before"
    }
}

/// Reads every document of a JSON file, which may hold several one after the other.
pub(super) fn parse_json(text: &str) -> Vec<(Chunk<'_>, Result<Value, SyntaxError>)> {
    let mut documents = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Strict>();
    let mut start = 0;
    let mut lines_before = 0;
    while let Some(read) = stream.next() {
        let result = read.map(|Strict(value)| value).map_err(|error| SyntaxError {
            // The place at the end of the text is shown apart.
            message: error
                .to_string()
                .split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned(),
            hint: "check the commas, quotes and brackets of this line and the one before",
            line: error.line() as u64,
            column: error.column() as u64,
        });
        // After an error there is no telling where the next document begins: the rest is part of this one.
        let is_broken = result.is_err();
        let end = if is_broken { text.len() } else { stream.byte_offset() };
        let chunk = Chunk {
            text: text.get(start..end).unwrap_or_default(),
            lines_before,
        };
        documents.push((chunk, result));
        if is_broken {
            break;
        }
        lines_before += chunk.text.matches('\n').count() as u64;
        start = end;
    }
    documents
}

/// A JSON value read the way `kubectl` reads it: whole floats are integers, and a key twice is an error.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        // Beyond this, floats have no fraction to lose but no exact integers either.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() == 0.0 && value.abs() <= EXACT {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "whole, and within what both types hold exactly"
            )]
            return Ok(Value::from(value as i64));
        }
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if entries.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key {key:?}")));
            }
            let Strict(value) = access.next_value()?;
            entries.insert(key, value);
        }
        Ok(Value::Object(entries))
    }
}
