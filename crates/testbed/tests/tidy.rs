//! The rules of the house that a compiler does not check: which crate may know which, how long a file may be, and that
//! every module says what it is.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Who may depend on whom, besides tests. ARCHITECTURE.md draws the same picture.
const ARROWS: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("echo", &[]),
    ("ir", &[]),
    ("world", &["api", "ir"]),
    ("plan", &["api", "ir", "world"]),
    ("proxy", &["ir"]),
    ("source", &["api", "world"]),
    ("testbed", &["api", "echo", "ir", "plan", "proxy", "source", "world"]),
    ("gatewright", &["api", "echo", "ir", "plan", "proxy", "source", "world"]),
];

/// External crates that only some of ours may name.
const RESERVED: &[(&str, &[&str])] = &[
    ("kube", &["api", "source", "testbed"]),
    ("k8s-openapi", &["api", "testbed"]),
    ("gateway-api", &["api"]),
    ("tokio", &["echo", "gatewright", "proxy", "source", "testbed"]),
    ("axum", &["gatewright"]),
    ("clap", &["gatewright", "testbed"]),
    ("anyhow", &["gatewright", "testbed"]),
    ("notify", &["source"]),
    ("h2", &["proxy"]),
    ("hyper", &["echo", "gatewright", "testbed"]),
];

const LONGEST_FILE: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The normal dependencies of each of our crates, ours without their prefix.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let short = |name: &serde_json::Value| {
        let name = name.as_str().unwrap();
        name.strip_prefix("gatewright-").unwrap_or(name).to_owned()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    let packages = packages.map(|package| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
        (
            short(&package["name"]),
            normal.map(|dependency| short(&dependency["name"])).collect(),
        )
    });
    packages.collect()
}

#[test]
fn crates_know_only_what_they_may() {
    let dependencies = dependencies();
    let ours: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    assert_eq!(
        found, ours,
        "a new crate needs a row in ARROWS and a paragraph in ARCHITECTURE.md"
    );
    for (name, allowed) in ARROWS {
        for dependency in dependencies[*name]
            .iter()
            .filter(|dependency| ours.contains(dependency.as_str()))
        {
            assert!(
                allowed.contains(&dependency.as_str()),
                "{name} must not know {dependency}"
            );
        }
    }
    for (external, allowed) in RESERVED {
        for (name, dependencies) in &dependencies {
            let knows = dependencies.contains(*external);
            assert!(
                !knows || allowed.contains(&name.as_str()),
                "{name} must not depend on {external}"
            );
        }
    }
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 50, "only {} source files found", found.len());
    found
}

#[test]
fn no_file_is_too_long_and_few_are_long() {
    let sources = sources();
    let lengths: Vec<(usize, &PathBuf)> = sources
        .iter()
        .map(|(path, text)| (text.lines().count(), path))
        .collect();
    let too_long: Vec<_> = lengths.iter().filter(|(length, _)| *length > LONGEST_FILE).collect();
    assert!(too_long.is_empty(), "longer than {LONGEST_FILE} lines: {too_long:#?}");
    let long: Vec<_> = lengths.iter().filter(|(length, _)| *length > 500).collect();
    assert!(
        long.len() * 20 <= lengths.len(),
        "more than one file in twenty has over 500 lines: {long:#?}"
    );
}

#[test]
fn every_module_says_what_it_is() {
    let silent: Vec<PathBuf> = sources()
        .into_iter()
        .filter(|(path, text)| path.file_name().is_some_and(|name| name != "tests.rs") && !text.starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(silent.is_empty(), "these modules do not begin with //!: {silent:#?}");
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("#[", "ignore"),
        concat!("unimple", "mented!("),
    ];
    for (path, text) in sources() {
        for mark in marks {
            assert!(!text.contains(mark), "{} has a {mark}", path.display());
        }
    }
}
