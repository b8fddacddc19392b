//! What the roles grant: nothing by wildcard, everything that is watched, and every rule with its reason in the documentation.

use std::collections::BTreeSet;

use super::files::{Right, manifest, of_kind, read, renderings, rights};
use gatewright_api::Kind;

fn in_cluster(name: &str) -> BTreeSet<Right> {
    rights(of_kind(&manifest(name), "ClusterRole"))
}

fn in_namespace(name: &str, namespace: &str) -> BTreeSet<Right> {
    let objects = manifest(name);
    let roles = of_kind(&objects, "Role");
    rights(
        roles
            .into_iter()
            .filter(|role| role["metadata"]["namespace"] == namespace),
    )
}

fn right(group: &str, resource: &str, verb: &str) -> Right {
    (group.to_owned(), resource.to_owned(), verb.to_owned())
}

#[test]
fn nothing_is_granted_by_wildcard_and_what_may_be_secret_is_only_read() {
    for name in renderings() {
        let objects = manifest(&name);
        let roles = [of_kind(&objects, "ClusterRole"), of_kind(&objects, "Role")].concat();
        assert!(!roles.is_empty());
        for role in roles {
            for (group, resource, verb) in rights([role]) {
                assert!(
                    ![&group, &resource, &verb].into_iter().any(|word| word.contains('*')),
                    "{role}"
                );
                let is_only_read = ["configmaps", "secrets"].contains(&resource.as_str());
                assert!(
                    !is_only_read || ["list", "watch"].contains(&verb.as_str()),
                    "{verb} {resource}"
                );
            }
        }
    }
}

#[test]
fn every_kind_that_is_read_may_be_listed_and_watched() {
    let everywhere = in_cluster("install.yaml");
    let (cluster, namespace) = (
        in_cluster("install-namespaced.yaml"),
        in_namespace("install-namespaced.yaml", "default"),
    );
    for kind in Kind::ALL {
        for verb in ["list", "watch"] {
            let right = right(kind.group(), kind.plural(), verb);
            assert!(everywhere.contains(&right), "install.yaml: {right:?}");
            let limited = if kind.is_namespaced() { &namespace } else { &cluster };
            assert!(limited.contains(&right), "install-namespaced.yaml: {right:?}");
        }
    }
}

#[test]
fn rights_in_some_namespaces_are_the_same_as_everywhere_but_there() {
    let everywhere = in_cluster("install.yaml");
    let (cluster, namespace) = (
        in_cluster("install-namespaced.yaml"),
        in_namespace("install-namespaced.yaml", "default"),
    );
    assert_eq!(cluster.union(&namespace).cloned().collect::<BTreeSet<_>>(), everywhere);
    let outside: BTreeSet<&str> = cluster.iter().map(|(_, resource, _)| resource.as_str()).collect();
    let expected = [
        "customresourcedefinitions",
        "gatewayclasses",
        "gatewayclasses/status",
        "namespaces",
    ];
    assert_eq!(outside, BTreeSet::from(expected));
}

#[test]
fn leases_are_touched_in_the_namespace_of_the_replicas_alone() {
    for name in renderings() {
        let is_lease = |right: &Right| right.1 == "leases";
        assert!(!in_cluster(&name).iter().any(is_lease));
        assert!(in_namespace(&name, "gatewright-system").iter().all(is_lease));
    }
}

#[test]
fn every_role_is_bound_to_the_account_of_the_replicas() {
    for name in renderings() {
        let objects = manifest(&name);
        for kind in ["ClusterRole", "Role"] {
            let bindings = of_kind(&objects, &format!("{kind}Binding"));
            for role in of_kind(&objects, kind) {
                let is_bound = bindings.iter().any(|binding| {
                    binding["roleRef"]["name"] == role["metadata"]["name"]
                        && binding["metadata"].get("namespace") == role["metadata"].get("namespace")
                        && binding["subjects"][0]["name"] == "gatewright"
                        && binding["subjects"][0]["namespace"] == "gatewright-system"
                });
                assert!(is_bound, "{name}: {role}");
            }
        }
    }
}

#[test]
fn the_documentation_gives_a_reason_for_every_right() {
    let page = read("docs/kubernetes.md");
    let (_, table) = page.split_once("## Rights").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    // The first column of each row: resources in backticks; the second: verbs.
    let mut documented = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(!cells[2].is_empty(), "no reason: {row}");
        for resource in cells[0].split(',') {
            for verb in cells[1].split(',') {
                documented.insert((resource.trim().trim_matches('`').to_owned(), verb.trim().to_owned()));
            }
        }
    }
    let mut granted = in_cluster("install.yaml");
    granted.extend(in_namespace("install.yaml", "gatewright-system"));
    let granted: BTreeSet<(String, String)> = granted
        .into_iter()
        .map(|(_, resource, verb)| (resource, verb))
        .collect();
    assert_eq!(documented, granted);
}
