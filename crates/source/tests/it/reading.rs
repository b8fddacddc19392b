//! How files are read: notations, lists, places, and what is passed over.

use std::fmt::Write as _;

use gatewright_api::Object;

use crate::folder::{Folder, applied, config_map, describe, gateway, problems};

/// The one problem that a file with this text has, as it is shown.
fn shown(name: &str, text: &str) -> String {
    let mut folder = Folder::new(&[(name, text)]);
    let batch = folder.scan();
    assert_eq!(batch.problems.len(), 1, "{:?}", batch.problems);
    let dir = format!("{}/", folder.dir.path().display());
    batch.problems[0].to_string().replace(&dir, "")
}

#[test]
fn a_wrong_value_is_shown_with_its_line() {
    let text = gateway("edge", "70000");
    assert_eq!(
        shown("a.yaml", &text),
        "error[GW1006]: Gateway default/edge: spec.listeners[0].port: 70000 is out of range\n  \
         --> a.yaml:9:11\n\
         9 |     port: 70000\n  \
         |           ^\n\
         hint: use a whole number from 1 to 65535"
    );
}

#[test]
fn an_unknown_field_is_a_warning_at_its_key_and_the_object_is_used() {
    let text = gateway("edge", "80").replace("  listeners", "  adresses: []\n  listeners");
    assert_eq!(
        shown("a.yaml", &text),
        "warning[GW1001]: Gateway default/edge: spec.adresses: unknown field \"adresses\"\n  \
         --> a.yaml:7:3\n\
         7 |   adresses: []\n  \
         |   ^\n\
         hint: did you mean \"addresses\"?"
    );
    assert_eq!(
        Folder::new(&[("a.yaml", &text)]).changes(),
        ["apply Gateway default/edge"]
    );
}

#[test]
fn tabs_are_an_error_with_their_place() {
    let text = shown("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: one\n");
    assert!(text.contains("--> a.yaml:4:2\n4 | \tname: one\n  | \t^\n"), "{text}");
    assert!(
        text.ends_with("hint: indent with spaces: YAML does not allow tabs there"),
        "{text}"
    );
}

#[test]
fn a_key_twice_is_an_error_with_its_place() {
    let text = shown("a.yaml", &format!("{}data: {{}}\n", config_map("one", "1")));
    assert!(text.starts_with("error[GW1101]"), "{text}");
    assert!(text.contains("--> a.yaml:7:1\n7 | data: {}"), "{text}");
}

#[test]
fn json_is_read_with_the_same_rules() {
    let json = |name: &str| {
        format!("{{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"ConfigMap\",\n\t\"metadata\": {{\"name\": {name}}}\n}}\n")
    };
    let mut folder = Folder::new(&[("a.json", &format!("{}{}", json("\"one\""), json("\"tw\\u006f\"")))]);
    assert_eq!(
        folder.changes(),
        ["apply ConfigMap default/one", "apply ConfigMap default/two"]
    );
    assert_eq!(
        shown("b.json", &json("\"UPPER\"")).lines().nth(1),
        Some("  --> b.json:4:23"),
    );
    assert_eq!(
        shown("c.json", "{\n  \"kind\": oops\n}").lines().nth(1),
        Some("  --> c.json:2:11")
    );
    let twice = shown("d.json", "{\"kind\": \"A\", \"kind\": \"B\"}");
    assert!(twice.contains("duplicate key"), "{twice}");
}

#[test]
fn json_with_escapes_has_places_too() {
    let text = "{\n  \"apiVersion\": \"v1\", \"kind\": \"ConfigMap\",\n  \"data\": {\"a\": \"\\ud83d\\ude00 \\/\"},\n  \"metadata\": {\"name\": \"A\"}\n}";
    assert_eq!(shown("a.json", text).lines().nth(1), Some("  --> a.json:4:24"));
}

#[test]
fn what_would_command_a_terminal_is_not_shown() {
    for text in ["kind: \u{1b}[31m\n", "kind: \"a\u{1b}[31m\n", "a: [\u{7}\n"] {
        let problem = shown("a.yaml", text);
        assert!(
            problem
                .chars()
                .all(|character| character == '\n' || !character.is_control()),
            "{problem:?}"
        );
    }
}

#[test]
fn file_names_need_not_be_unicode() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let mut folder = Folder::new(&[]);
    let path = folder.dir.path().join(OsStr::from_bytes(b"\xff.yaml"));
    std::fs::write(path, "kind: [").unwrap();
    let batch = folder.scan();
    assert!(serde_json::to_string(&*batch.problems).unwrap().contains(".yaml"));
}

#[test]
fn byte_order_mark_and_windows_line_ends_are_read() {
    let text = format!("\u{feff}{}---\n{}", config_map("one", "1"), gateway("edge", "0")).replace('\n', "\r\n");
    let mut folder = Folder::new(&[("a.yaml", &text)]);
    let batch = folder.scan();
    assert_eq!(describe(&batch), ["apply ConfigMap default/one"]);
    assert_eq!(problems(&batch), ["GW1006 a.yaml:16:11"]);
    assert_eq!(batch.problems[0].excerpt.as_deref(), Some("    port: 0"));
}

#[test]
fn other_encodings_are_an_error_with_their_place() {
    let folder = Folder::new(&[]);
    std::fs::write(folder.path("a.yaml"), b"kind: x\nname: \xe9\n").unwrap();
    let mut folder = folder;
    assert_eq!(folder.problems(), ["GW1101 a.yaml:2:7"]);
}

#[test]
fn lists_are_read_item_by_item() {
    let list = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: one}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: Bad}
---
apiVersion: v1
kind: ConfigMapList
metadata: {resourceVersion: \"1\"}
items:
- metadata: {name: two, namespace: other}
";
    let mut folder = Folder::new(&[("a.yaml", list)]);
    let batch = folder.scan();
    assert_eq!(
        describe(&batch),
        ["apply ConfigMap default/one", "apply ConfigMap other/two"]
    );
    assert_eq!(problems(&batch), ["GW1010 a.yaml:9:20"]);
}

#[test]
fn other_kinds_are_passed_over_and_named() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: apps/v1\nkind: Deployment\n";
    let mut folder = Folder::new(&[("a.yaml", pod), ("b.yaml", &config_map("one", "1"))]);
    let batch = folder.scan();
    assert_eq!(describe(&batch), ["apply ConfigMap default/one"]);
    assert!(batch.problems.is_empty());
    assert!(folder.loader.passed_over().iter().eq(["apps/v1 Deployment", "v1 Pod"]));
}

#[test]
fn a_version_that_is_not_read_is_an_error() {
    let text = shown("a.yaml", &gateway("edge", "80").replace("io/v1", "io/v1alpha2"));
    assert!(
        text.starts_with("error[GW1104]: version \"v1alpha2\" of Gateway is not read"),
        "{text}"
    );
    assert!(text.ends_with("hint: use one of: v1, v1beta1"), "{text}");
}

#[test]
fn what_is_no_object_is_an_error() {
    for text in [
        "just text\n",
        "- a\n- list\n",
        "replicas: 3\n",
        "kind: ConfigMap\nmetadata: {name: a}\n",
    ] {
        let problem = shown("values.yaml", text);
        assert!(
            problem.starts_with("error[GW1105]: is not a Kubernetes object"),
            "{problem}"
        );
        assert!(problem.contains("values.yaml:1:"), "{problem}");
    }
}

#[test]
fn empty_documents_are_nothing() {
    for text in [
        "",
        "---\n",
        "# only a comment\n",
        "---\n# a\n---\n...\n---\n",
        "~\n",
        "%YAML 1.1\n---\n",
    ] {
        let mut folder = Folder::new(&[("a.yaml", text)]);
        let batch = folder.scan();
        assert!(
            batch.changes.is_empty() && batch.problems.is_empty(),
            "{text:?}: {:?}",
            batch.problems
        );
    }
}

#[test]
fn scalars_are_read_as_kubectl_reads_them() {
    let text = "\
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  publishNotReadyAddresses: yes
  ports:
  - port: 0100
    nodePort: 1e3
";
    let mut folder = Folder::new(&[("a.yaml", text)]);
    let batch = folder.scan();
    let Object::Service(service) = applied(&batch, "Service default/web") else {
        unreachable!("a Service")
    };
    let spec = service.spec.unwrap();
    assert_eq!(spec.publish_not_ready_addresses, Some(true));
    let port = &spec.ports.unwrap()[0];
    assert_eq!((port.port, port.node_port), (64, Some(1000)));
}

#[test]
fn anchors_and_merges_are_read_and_bombs_refused() {
    let text = "\
apiVersion: v1
kind: ConfigMap
metadata: &m
  name: one
  labels: &l {a: b}
data:
  <<: *l
  key: value
";
    let mut folder = Folder::new(&[("a.yaml", text)]);
    let batch = folder.scan();
    let Object::ConfigMap(map) = applied(&batch, "ConfigMap default/one") else {
        unreachable!("a ConfigMap")
    };
    assert_eq!(map.data.unwrap().len(), 2);

    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let alias = format!("*a{}", level - 1);
        writeln!(bomb, "a{level}: &a{level} [{}]", [alias.as_str(); 9].join(", ")).unwrap();
    }
    let text = shown("a.yaml", &bomb);
    assert!(text.starts_with("error[GW1101]"), "{text}");
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("a: {}{}\n", "[".repeat(10_000), "]".repeat(10_000));
    assert!(shown("a.yaml", &deep).starts_with("error[GW1101]"));
}

#[test]
fn a_file_may_hold_thousands_of_documents() {
    let mut text = String::new();
    for number in 0..2000 {
        write!(text, "---\n{}", config_map(&format!("map-{number}"), "1")).unwrap();
    }
    let mut folder = Folder::new(&[("a.yaml", &text)]);
    let batch = folder.scan();
    assert_eq!(
        (batch.changes.len(), batch.objects, batch.problems.len()),
        (2000, 2000, 0)
    );
}

#[test]
fn what_a_secret_holds_is_in_no_problem() {
    let secret = |body: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{body}");
    let bodies = [
        "data:\n  password: hunter2!\n",
        "stringData:\n  password: 4242424242\n",
        "data:\n  password: \"hunter2\n",
        "stringData:\n  password: *hunter2\n",
        "stringData:\n  password: {hunter2: [4242424242}\n",
        "data:\n  password: [hunter2, 4242424242]\n",
        "immutable: hunter2\n",
    ];
    for body in bodies {
        let mut folder = Folder::new(&[("a.yaml", &secret(body))]);
        let batch = folder.scan();
        assert!(!batch.problems.is_empty(), "{body}");
        for problem in batch.problems.iter() {
            let json = serde_json::to_string(problem).unwrap();
            let text = format!("{problem}{json}");
            assert!(!text.contains("hunter2") && !text.contains("4242"), "{text}");
        }
    }
}

#[test]
fn problems_are_serialised_with_code_place_and_object() {
    let mut folder = Folder::new(&[("a.yaml", &gateway("edge", "0"))]);
    let batch = folder.scan();
    let mut json = serde_json::to_value(&batch.problems[0]).unwrap();
    json["file"] = "a.yaml".into();
    let expected = serde_json::json!({
        "code": "GW1006",
        "severity": "error",
        "file": "a.yaml",
        "line": 9,
        "column": 11,
        "object": {"kind": "Gateway", "namespace": "default", "name": "edge"},
        "message": "spec.listeners[0].port: 0 is out of range",
        "hint": "use a whole number from 1 to 65535",
        "excerpt": "    port: 0",
        "usesLastGood": false,
    });
    assert_eq!(json, expected);
}
