//! The audit log of an API server: what an account asked for, by what right it got it, and what was refused.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::files::{Right, of_kind, rights};

/// Where a right was granted: by which binding, with its namespace if it has one, as the API server names it.
pub(super) type Granted = (String, Right);

/// The log, from some moment on.
pub(super) struct AuditLog {
    file: PathBuf,
    start: u64,
}

/// What happened.
#[derive(Default)]
pub(super) struct Found {
    /// The rights that were made use of.
    pub(super) used: BTreeSet<Granted>,
    /// What was refused: verb, resource and namespace.
    pub(super) refused: BTreeSet<String>,
    /// What was allowed by nothing that the manifests grant.
    pub(super) borrowed: BTreeSet<String>,
}

impl AuditLog {
    pub(super) fn from_now(file: &Path) -> Self {
        let start = fs::metadata(file).map_or(0, |metadata| metadata.len());
        Self {
            file: file.to_owned(),
            start,
        }
    }

    /// What happened since then.
    pub(super) fn read(&self) -> Found {
        let mut file = File::open(&self.file).unwrap();
        file.seek(SeekFrom::Start(self.start)).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        let mut found = Found::default();
        // The last line may still be written.
        let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
        for line in complete.lines() {
            found.take(&serde_json::from_str(line).unwrap());
        }
        found
    }
}

impl Found {
    fn take(&mut self, event: &Value) {
        let asked = &event["objectRef"];
        let field = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
        let verb = event["verb"].as_str().unwrap();
        let mut resource = field("resource");
        if let Some(part) = asked["subresource"].as_str() {
            resource = format!("{resource}/{part}");
        }
        let annotation = |name: &str| {
            let text = event["annotations"][format!("authorization.k8s.io/{name}")].as_str();
            text.unwrap_or_default()
        };
        let code = event["responseStatus"]["code"].as_u64();
        if code == Some(403) || annotation("decision") == "forbid" {
            let uri = event["requestURI"].as_str().unwrap().split('?').next().unwrap();
            self.refused.insert(format!("{verb} {uri}"));
            return;
        }
        // Which versions a server offers, and what oneself may do, everybody may ask.
        if resource.is_empty() || resource == "selfsubjectaccessreviews" {
            return;
        }
        let reason = annotation("reason");
        let Some(binding) = binding(reason) else {
            self.borrowed.insert(format!("{verb} {resource}: {reason}"));
            return;
        };
        let mut use_right = |verb: &str| {
            let right = (field("apiGroup"), resource.clone(), verb.to_owned());
            self.used.insert((binding.clone(), right));
        };
        use_right(verb);
        // An apply that makes an object needs both rights, and is one request.
        if verb == "patch" && code == Some(201) {
            use_right("create");
        }
    }
}

/// The binding that a request was allowed by, if it is one of ours.
fn binding(reason: &str) -> Option<String> {
    let (_, rest) = reason.split_once("allowed by ")?;
    let (kind, rest) = rest.split_once(" \"")?;
    let (name, _) = rest.split_once('"')?;
    name.starts_with("gatewright").then(|| format!("{kind} {name}"))
}

/// Everything that manifests grant, by the binding that grants it.
pub(super) fn granted(objects: &[Value]) -> BTreeSet<Granted> {
    let mut granted = BTreeSet::new();
    for kind in ["ClusterRole", "Role"] {
        for role in of_kind(objects, kind) {
            let metadata = &role["metadata"];
            let name = metadata["name"].as_str().unwrap();
            // A binding has the name of its role; the API server puts the namespace behind it.
            let place = metadata["namespace"].as_str().map(|place| format!("/{place}"));
            let binding = format!("{kind}Binding {name}{}", place.unwrap_or_default());
            granted.extend(rights([role]).into_iter().map(|right| (binding.clone(), right)));
        }
    }
    granted
}
