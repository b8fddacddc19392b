//! The definitions of our own kinds, as they are committed. `GOLDEN=write` (that is, `make gen`) writes them.

use std::{env, fs, path::Path, process::Command};

use serde_json::Value;

const FRONT: &str = "# Made by `make gen` from the types of crates/api; `gatewright crds` prints the same.\n";

#[test]
fn what_is_generated_is_what_is_committed() {
    let output = Command::new(env!("CARGO_BIN_EXE_gatewright"))
        .arg("crds")
        .output()
        .unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let mut names = Vec::new();
    for document in printed.split_inclusive("\n---\n") {
        let text = document.strip_suffix("---\n").unwrap_or(document);
        let definition: Value = serde_saphyr::from_str(text).unwrap();
        let part = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let name = format!("{}_{}.yaml", part("/spec/group"), part("/spec/names/plural"));
        let (path, expected) = (folder.join(&name), format!("{FRONT}{text}"));
        if env::var("GOLDEN").is_ok_and(|value| value == "write") {
            fs::write(&path, &expected).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == expected,
            "deploy/crds/{name} is out of date: run `make gen`"
        );
        names.push(name);
    }
    let committed = fs::read_dir(folder).unwrap();
    let mut committed: Vec<String> = committed
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    committed.sort();
    names.sort();
    assert_eq!(committed, names, "definitions that nobody has");
}
