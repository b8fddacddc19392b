//! What is committed: the definitions, the manifests, the pages, and what roles grant.
//!
//! Shared by the tests of this folder and by those that need Helm or a cluster (`tests/cluster/deploy`). Reads and compares files
//! only.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A generated file is what it would be if it were generated now; or it is, if `GOLDEN=write` asks for that.
pub(crate) fn hold(path: &str, text: &str) {
    if env::var("GOLDEN").is_ok_and(|value| value == "write") {
        fs::write(root().join(path), text).unwrap();
    }
    let committed = fs::read_to_string(root().join(path)).unwrap_or_default();
    assert!(committed == text, "{path} is out of date: run `make gen`");
}

/// The files of a folder, in order.
pub(crate) fn names_in(folder: &str) -> Vec<String> {
    let files = fs::read_dir(root().join(folder)).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The documents of a stream of YAML.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let is_content = |document: &&str| document.lines().any(|line| !line.is_empty() && !line.starts_with('#'));
    let parts = text.split("\n---").filter(is_content);
    parts
        .map(|part| {
            let part = part.strip_prefix("---").unwrap_or(part);
            serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error}\n{part}"))
        })
        .collect()
}

/// The names of the plain manifests, which are those of the values that they are rendered with.
pub(crate) fn renderings() -> Vec<String> {
    let names = names_in("deploy/chart/renderings");
    assert!(names.contains(&"install.yaml".to_owned()), "{names:?}");
    names
}

/// All objects of one of the plain manifests.
pub(crate) fn manifest(name: &str) -> Vec<Value> {
    documents(&read(&format!("deploy/manifests/{name}")))
}

pub(crate) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// The first block of a language on a page.
pub(crate) fn block(page: &str, heading: &str, language: &str) -> String {
    let (_, section) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading:?}"));
    let (_, block) = section.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// One right: a verb on a resource of a group, there where the role is.
pub(crate) type Right = (String, String, String);

/// Everything that some roles grant, of which nothing twice.
pub(crate) fn rights<'a>(roles: impl IntoIterator<Item = &'a Value>) -> BTreeSet<Right> {
    let texts = |rule: &'a Value, field: &str| {
        let texts = rule[field].as_array().unwrap().iter();
        texts.map(|text| text.as_str().unwrap())
    };
    let mut rights = BTreeSet::new();
    for rule in roles.into_iter().flat_map(|role| role["rules"].as_array().unwrap()) {
        assert!(
            rule.get("nonResourceURLs").is_none() && rule.get("resourceNames").is_none(),
            "{rule}"
        );
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                for verb in texts(rule, "verbs") {
                    let right = (group.to_owned(), resource.to_owned(), verb.to_owned());
                    assert!(rights.insert(right), "granted twice: {verb} {resource} of {group:?}");
                }
            }
        }
    }
    rights
}
