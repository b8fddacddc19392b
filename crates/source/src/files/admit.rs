//! The text of a file to the objects it declares, and what is wrong with it.
//!
//! Does what an API server does when an object is created: checks it, applies defaults, puts it in a namespace and
//! drops what only a server may set. Which object wins over another, and what was there before, is for the loader.

use std::{
    hash::{BuildHasher, Hash, Hasher},
    path::Path,
};

use ahash::RandomState;
use gatewright_api::{
    Kind, Object, ObjectName,
    validate::{self, Code, Finding, Severity, Step},
};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    locate::Located,
    parallel,
    parse::{Notation, SyntaxError, parse_json, parse_yaml},
    problem::{Place, Problem, printable},
    split::{Chunk, split},
};

/// Metadata that a server sets: written in a file (a dump from a cluster has it) it means nothing.
const SERVER_METADATA: [&str; 8] = [
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// One object as declared.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) name: ObjectName,
    pub(super) object: Object,
    /// Changes when anything in the object changes.
    pub(super) content: u64,
    /// Changes when its spec changes.
    pub(super) spec: u64,
    /// The age that the file itself gives.
    pub(super) created: Option<Timestamp>,
    pub(super) origin: Origin,
}

/// Where in its file an object is declared.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    /// How many lines stand before its document.
    pub(super) lines_before: u64,
    /// The steps to it when the document is a list.
    pub(super) steps: Vec<Step>,
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct FileContent {
    pub(super) declared: Vec<Declared>,
    pub(super) problems: Vec<Problem>,
    /// `apiVersion` and `kind` of objects that are not read.
    pub(super) passed_over: Vec<String>,
}

/// Reads the text of a file.
pub(super) fn admit_text(file: &Path, text: &str, notation: Notation) -> FileContent {
    let contents = match notation {
        Notation::Yaml => parallel::map(split(text), |chunk| admit_document(file, chunk, parse_yaml(chunk))),
        Notation::Json => parse_json(text)
            .into_iter()
            .map(|(chunk, result)| admit_document(file, chunk, result))
            .collect(),
    };
    let mut all = FileContent::default();
    for FileContent {
        declared,
        problems,
        passed_over,
    } in contents
    {
        all.declared.extend(declared);
        all.problems.extend(problems);
        all.passed_over.extend(passed_over);
    }
    all
}

fn admit_document(file: &Path, chunk: Chunk<'_>, result: Result<Value, SyntaxError>) -> FileContent {
    let mut reader = Reader {
        file,
        chunk,
        content: FileContent::default(),
    };
    match result {
        Ok(Value::Null) => {}
        Ok(value) => reader.value(value, &mut Vec::new()),
        Err(error) => {
            let is_secret = may_be_secret(chunk.text);
            // The parser's own words may quote what stands there.
            let message = if is_secret {
                "cannot be parsed".to_owned()
            } else {
                printable(&error.message)
            };
            let line = if error.line == 0 {
                chunk.lines_before + 1
            } else {
                error.line
            };
            let place = Place::new(chunk, line, error.column.max(1), is_secret);
            reader
                .content
                .problems
                .push(Problem::of_file(Code::Syntax, file, message, error.hint).at(place));
        }
    }
    reader.content
}

/// The place of an object in the text of its file.
pub(super) fn place_of(text: &str, notation: Notation, origin: &Origin, is_secret: bool) -> Place {
    let chunks = match notation {
        Notation::Yaml => split(text),
        Notation::Json => parse_json(text).into_iter().map(|(chunk, _)| chunk).collect(),
    };
    let Some(chunk) = chunks
        .into_iter()
        .find(|chunk| chunk.lines_before == origin.lines_before)
    else {
        return Place {
            line: origin.lines_before + 1,
            column: 1,
            excerpt: None,
        };
    };
    let name: [Step; 2] = ["metadata".into(), "name".into()];
    let path = origin.steps.iter().chain(&name);
    let (line, column) = Located::read(chunk).map_or((chunk.lines_before + 1, 1), |located| located.find(path, false));
    Place::new(chunk, line, column, is_secret)
}

/// A document that does not parse has no kind; when it looks like a Secret it is treated as one.
fn may_be_secret(text: &str) -> bool {
    text.contains("Secret") && (text.contains("data") || text.contains("stringData"))
}

struct Reader<'t> {
    file: &'t Path,
    chunk: Chunk<'t>,
    content: FileContent,
}

impl Reader<'_> {
    /// Takes a document, or an item of a list in it at `steps`.
    fn value(&mut self, value: Value, steps: &mut Vec<Step>) {
        let Value::Object(mut entries) = value else {
            let hint = "write apiVersion, kind and metadata, or move the file out of the folder";
            self.refuse(Code::NotAnObject, steps, "is not a Kubernetes object", hint);
            return;
        };
        let read = |field| entries.get(field).and_then(Value::as_str).map(str::to_owned);
        let (Some(api_version), Some(kind)) = (read("apiVersion"), read("kind")) else {
            let missing = if read("kind").is_some() { "apiVersion" } else { "kind" };
            let message = format!("is not a Kubernetes object: field {missing:?} is missing or not text");
            let hint = "write apiVersion and kind, or move the file out of the folder";
            self.refuse(Code::NotAnObject, steps, &message, hint);
            return;
        };
        if let Some(item_kind) = kind.strip_suffix("List")
            && let Some(Value::Array(items)) = entries.remove("items")
        {
            for (index, mut item) in items.into_iter().enumerate() {
                // Items of a typed list (`HTTPRouteList`) may leave out what the list says.
                if let (Value::Object(entries), false) = (&mut item, item_kind.is_empty()) {
                    entries
                        .entry("apiVersion")
                        .or_insert_with(|| Value::from(api_version.as_str()));
                    entries.entry("kind").or_insert_with(|| Value::from(item_kind));
                }
                steps.extend([Step::from("items"), Step::Index(index)]);
                self.value(item, steps);
                steps.truncate(steps.len() - 2);
            }
            return;
        }
        match Kind::of(&api_version, &kind) {
            Some(kind) => self.object(kind, entries, steps),
            None => self.unknown(&api_version, &kind, steps),
        }
    }

    fn unknown(&mut self, api_version: &str, kind: &str, steps: &[Step]) {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if let Some(known) = Kind::of_group(group, kind) {
            let message = format!("version {version:?} of {kind} is not read");
            let hint = format!("use one of: {}", known.versions().join(", "));
            self.refuse(Code::UnknownVersion, steps, &message, &hint);
        } else {
            self.content.passed_over.push(format!("{api_version} {kind}"));
        }
    }

    fn object(&mut self, kind: Kind, mut entries: Map<String, Value>, steps: &[Step]) {
        entries.remove("status");
        let mut value = Value::Object(entries);
        validate::complete(kind, &mut value);
        let findings = validate::validate_completed(kind, &value);
        let name = adopt(kind, &mut value);
        let (content, spec) = fingerprints(&value);
        let admission = validate::admit_checked(kind, value, findings);
        self.report(kind, &name, steps, &admission.findings);
        if let Some(object) = admission.object {
            let created = object.metadata().creation_timestamp.as_ref().map(|time| time.0);
            let origin = Origin {
                lines_before: self.chunk.lines_before,
                steps: steps.to_vec(),
            };
            self.content.declared.push(Declared {
                name,
                object,
                content,
                spec,
                created,
                origin,
            });
        }
    }

    fn report(&mut self, kind: Kind, name: &ObjectName, steps: &[Step], findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        let located = Located::read(self.chunk);
        for finding in findings {
            let wants_key = finding.code == Code::UnknownField;
            let path = steps.iter().chain(finding.path.steps());
            let (line, column) = located.as_ref().map_or((self.chunk.lines_before + 1, 1), |located| {
                located.find(path, wants_key)
            });
            let message = if finding.path.is_empty() {
                finding.message.clone()
            } else {
                format!("{}: {}", finding.path, finding.message)
            };
            let place = Place::new(self.chunk, line, column, kind == Kind::Secret);
            let mut problem = Problem::of_file(finding.code, self.file, message, "").at(place);
            problem.severity = finding.severity;
            problem.hint.clone_from(&finding.hint);
            problem.object = Some(name.clone());
            self.content.problems.push(problem);
        }
    }

    /// Something that is no object we know.
    fn refuse(&mut self, code: Code, steps: &[Step], message: &str, hint: &str) {
        let located = Located::read(self.chunk);
        let (line, column) = located.map_or((self.chunk.lines_before + 1, 1), |located| located.find(steps, false));
        let place = Place::new(self.chunk, line, column, may_be_secret(self.chunk.text));
        let problem = Problem::of_file(code, self.file, message.to_owned(), hint).at(place);
        debug_assert_eq!(problem.severity, Severity::Error);
        self.content.problems.push(problem);
    }
}

/// Gives an object its namespace, drops what only a server may set, and returns its name.
fn adopt(kind: Kind, value: &mut Value) -> ObjectName {
    let Some(Value::Object(metadata)) = value.get_mut("metadata") else {
        return ObjectName {
            kind,
            namespace: String::new(),
            name: String::new(),
        };
    };
    for field in SERVER_METADATA {
        metadata.remove(field);
    }
    if !kind.is_namespaced() {
        metadata.remove("namespace");
    } else if metadata.get("namespace").is_none_or(|namespace| namespace == "") {
        metadata.insert("namespace".to_owned(), Value::from("default"));
    }
    let read = |field| {
        metadata
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    ObjectName {
        kind,
        namespace: read("namespace"),
        name: read("name"),
    }
}

/// Digests of everything that matters in an object, and of its spec (of a kind without one: all but the metadata).
fn fingerprints(value: &Value) -> (u64, u64) {
    let state = digest_state();
    let (mut content, mut spec) = (state.build_hasher(), state.build_hasher());
    for (field, value) in value.as_object().into_iter().flatten() {
        // The version in which an object is written is not part of it.
        if field == "apiVersion" || field == "kind" {
            continue;
        }
        (field, value).hash(&mut content);
        if field != "metadata" {
            (field, value).hash(&mut spec);
        }
    }
    (content.finish(), spec.finish())
}

/// Digests are compared only with others of the same process.
pub(super) fn digest_state() -> RandomState {
    RandomState::with_seeds(0x6761_7465, 0x7772_6967, 0x6874_2066, 0x696c_6573)
}
