//! A file is refused where an API server would refuse it, and admitted where it would be admitted.
//!
//! Every document that the checks of files are tested with (`crates/api/golden/validate`) is also given to a real API server
//! with the real definitions, which only says what it thinks of it.

use std::{fs, path::Path};

use gatewright_api::{
    Kind,
    validate::{Finding, validate},
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, PostParams},
};
use serde_json::{Value, json};

use crate::{plane::Plane, support};

/// RFC 7386.
fn patch(target: &mut Value, with: Value) {
    let Value::Object(with) = with else {
        *target = with;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let entries = target.as_object_mut().unwrap();
    for (key, value) in with {
        if value.is_null() {
            entries.remove(&key);
        } else {
            patch(entries.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// The documents of a golden file, whole, each with the comment that says what is wrong with it.
fn documents(text: &str) -> Vec<(String, Value)> {
    let mut documents: Vec<(String, Value)> = Vec::new();
    for part in text.split("---\n") {
        let written: Value = serde_saphyr::from_str(part).unwrap();
        let comment = part.lines().next().unwrap().to_owned();
        let value = match documents.first() {
            None => written,
            Some((_, base)) => {
                let mut value = base.clone();
                patch(&mut value, written);
                value
            }
        };
        documents.push((comment, value));
    }
    documents
}

#[tokio::test]
async fn files_are_refused_where_an_api_server_refuses_them() {
    let client = Plane::shared().await.client().await;
    for namespace in ["backend", "infra", "shop"] {
        support::namespace(&client, namespace).await;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/golden/validate");
    let only_look = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let (mut compared, mut disagreements) = (0, Vec::new());
    for file in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for (comment, value) in documents(&text) {
            let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
            let (api_version, name) = (text("apiVersion"), text("kind"));
            // What a custom resource cannot be by its definition: of the others the API server knows more than we read.
            let Some(kind) = Kind::of(&api_version, &name).filter(|kind| kind.group().contains("gat")) else {
                continue;
            };
            let findings = validate(kind, &value);
            let errors: Vec<String> = findings
                .iter()
                .filter(|finding| finding.is_error())
                .map(Finding::to_string)
                .collect();
            let resource = ApiResource {
                version: api_version.rsplit('/').next().unwrap_or_default().to_owned(),
                api_version,
                ..support::resource(kind)
            };
            let namespace = value["metadata"]["namespace"].as_str().unwrap_or("default");
            let namespace = Some(namespace).filter(|_| kind.is_namespaced());
            // There is nobody who would make up a name for an object in a file.
            if value["metadata"].get("generateName").is_some() {
                continue;
            }
            let api: Api<DynamicObject> = match namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            let Ok(object) = serde_json::from_value(value.clone()) else {
                continue;
            };
            let answer = api.create(&only_look, &object).await;
            compared += 1;
            match answer {
                Ok(_) if !errors.is_empty() => {
                    disagreements.push(format!("{kind} {comment}: refused here only: {errors:#?}"));
                }
                Err(error) if errors.is_empty() => {
                    disagreements.push(format!("{kind} {comment}: refused there only: {error}"));
                }
                _ => {}
            }
        }
    }
    assert!(compared > 150, "{compared} documents");
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}
