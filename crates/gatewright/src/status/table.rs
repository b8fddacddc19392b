//! The tables of `gatewright status`: classes, Gateways, ListenerSets, listeners, routes, policies, and below them what is
//! wrong.

use std::fmt::Write as _;

use gatewright_api::Kind;

use crate::{
    admin::document::{
        ClassSummary, Document, GatewaySummary, ListenerSummary, PolicySummary, ReplicaSummary, RouteSummary,
        Selection, SetSummary, Verdict,
    },
    ui::{count, table},
};

/// Renders the document for people.
pub(super) fn render(document: &Document, selection: &Selection) -> String {
    let mut sections = Vec::new();
    if selection.is_everything() {
        sections.push(title(document));
    }
    if selection.is_everything() {
        sections.extend(replicas(&document.replicas));
    }
    sections.extend(classes(&document.classes));
    sections.extend(gateways(&document.gateways));
    let of_gateways = document.gateways.iter();
    let of_gateways = of_gateways.map(|gateway| (&gateway.namespace, &gateway.name, &gateway.listeners));
    sections.extend(listeners("GATEWAY", of_gateways));
    sections.extend(sets(&document.listener_sets));
    let of_sets = document.listener_sets.iter();
    let of_sets = of_sets.map(|set| (&set.namespace, &set.name, &set.listeners));
    sections.extend(listeners("LISTENERSET", of_sets));
    for &kind in Kind::ALL.iter().filter(|kind| kind.is_route()) {
        sections.extend(routes(kind, &document.routes));
    }
    for kind in [Kind::BackendTlsPolicy, Kind::BackendTrafficPolicy] {
        sections.extend(policies(kind, &document.policies));
    }
    if sections.is_empty() {
        sections.push("no such objects\n".to_owned());
    }
    if selection.is_everything() && !document.problems.is_empty() {
        let mut problems = String::from("PROBLEMS\n");
        for finding in &document.problems {
            let _ = writeln!(problems, "{finding:#}");
        }
        sections.push(problems);
    }
    sections.join("\n")
}

/// What runs, how far it is, and where its objects come from.
fn title(document: &Document) -> String {
    let mut title = format!("gatewright {}: {}", document.version, document.state.to_lowercase());
    if let Some(files) = &document.files {
        let (files_count, objects) = (count(files.files, "file"), count(files.objects, "object"));
        let _ = write!(title, ", {files_count} and {objects} from {}", files.directory);
    }
    if let Some(cluster) = &document.cluster {
        let role = if cluster.writer.is_leader {
            "writes"
        } else {
            "does not write"
        };
        let objects = count(document.counts.values().sum(), "object");
        let _ = write!(
            title,
            ", {objects} from {}\nreplica {} {role}",
            cluster.server, cluster.identity
        );
        let queued = cluster.writer.queued + cluster.writer.in_flight;
        if queued > 0 {
            let _ = write!(title, ", {} to do", count(queued, "write"));
        }
    }
    title.push('\n');
    title
}

fn replicas(replicas: &[ReplicaSummary]) -> Option<String> {
    let rows = replicas.iter().map(|replica| {
        let addresses: Vec<String> = replica.addresses.iter().map(ToString::to_string).collect();
        vec![
            replica.name.clone(),
            list(&addresses),
            replica.node.clone().unwrap_or_else(|| "-".to_owned()),
            replica.listening.to_string(),
            replica.failed.to_string(),
            if replica.is_leaving { "Leaving" } else { "Serving" }.to_owned(),
        ]
    });
    section(&["REPLICA", "ADDRESSES", "NODE", "LISTENING", "FAILED", "STATE"], rows)
}

fn classes(classes: &[ClassSummary]) -> Option<String> {
    let rows = classes.iter().map(|class| {
        vec![
            class.name.clone(),
            class.controller.clone(),
            verdict(class.accepted.as_ref()),
        ]
    });
    section(&["CLASS", "CONTROLLER", "ACCEPTED"], rows)
}

fn gateways(gateways: &[GatewaySummary]) -> Option<String> {
    let rows = gateways.iter().map(|gateway| {
        vec![
            gateway.namespace.clone(),
            gateway.name.clone(),
            gateway.class.clone(),
            list(&gateway.addresses),
            verdict(gateway.accepted.as_ref()),
            verdict(gateway.programmed.as_ref()),
        ]
    });
    section(
        &["NAMESPACE", "GATEWAY", "CLASS", "ADDRESSES", "ACCEPTED", "PROGRAMMED"],
        rows,
    )
}

/// The listeners of some kind of objects.
fn listeners<'d>(
    holder: &str,
    holders: impl Iterator<Item = (&'d String, &'d String, &'d Vec<ListenerSummary>)>,
) -> Option<String> {
    let rows = holders.flat_map(|(namespace, name, listeners)| {
        listeners.iter().map(move |listener| {
            let is_nameless = ["TCP", "UDP"].contains(&listener.protocol.as_str());
            vec![
                namespace.clone(),
                name.clone(),
                listener.name.clone(),
                listener.protocol.clone(),
                listener.port.to_string(),
                if is_nameless {
                    "-".to_owned()
                } else {
                    listener.hostname.clone()
                },
                listener.attached_routes.to_string(),
                verdict(listener.accepted.as_ref()),
                verdict(listener.programmed.as_ref()),
                verdict(listener.resolved_refs.as_ref()),
            ]
        })
    });
    let header = [
        "NAMESPACE",
        holder,
        "LISTENER",
        "PROTOCOL",
        "PORT",
        "HOSTNAME",
        "ROUTES",
        "ACCEPTED",
        "PROGRAMMED",
        "RESOLVED",
    ];
    section(&header, rows)
}

fn sets(sets: &[SetSummary]) -> Option<String> {
    let rows = sets.iter().map(|set| {
        vec![
            set.namespace.clone(),
            set.name.clone(),
            set.gateway.clone().unwrap_or_else(|| "-".to_owned()),
            verdict(set.accepted.as_ref()),
            verdict(set.programmed.as_ref()),
        ]
    });
    section(&["NAMESPACE", "LISTENERSET", "GATEWAY", "ACCEPTED", "PROGRAMMED"], rows)
}

fn policies(kind: Kind, policies: &[PolicySummary]) -> Option<String> {
    let policies = policies.iter().filter(|policy| policy.kind == kind.as_str());
    let rows = policies.map(|policy| {
        vec![
            policy.namespace.clone(),
            policy.name.clone(),
            list(&policy.targets),
            list(&policy.gateways),
            verdict(policy.accepted.as_ref()),
            verdict(policy.resolved_refs.as_ref()),
        ]
    });
    let kind = kind.as_str().to_uppercase();
    section(
        &["NAMESPACE", &kind, "SERVICES", "GATEWAYS", "ACCEPTED", "RESOLVED"],
        rows,
    )
}

fn routes(kind: Kind, routes: &[RouteSummary]) -> Option<String> {
    // A connection or datagram names no host.
    let has_hostnames = !matches!(kind, Kind::TcpRoute | Kind::UdpRoute);
    let routes = routes.iter().filter(|route| route.kind == kind.as_str());
    let rows = routes.flat_map(|route| {
        let row = |parent: String, accepted: String, resolved: String| {
            let mut row = vec![route.namespace.clone(), route.name.clone()];
            row.extend(has_hostnames.then(|| list(&route.hostnames)));
            row.extend([parent, accepted, resolved]);
            row
        };
        let mut rows: Vec<Vec<String>> = route
            .parents
            .iter()
            .map(|parent| {
                let (accepted, resolved) = (
                    verdict(parent.accepted.as_ref()),
                    verdict(parent.resolved_refs.as_ref()),
                );
                row(parent.parent.clone(), accepted, resolved)
            })
            .collect();
        if rows.is_empty() {
            rows.push(row("-".to_owned(), "-".to_owned(), "-".to_owned()));
        }
        rows
    });
    let kind = kind.as_str().to_uppercase();
    let mut header = vec!["NAMESPACE", &kind];
    header.extend(has_hostnames.then_some("HOSTNAMES"));
    header.extend(["PARENT", "ACCEPTED", "RESOLVED"]);
    section(&header, rows)
}

/// A table, unless it would be empty.
fn section(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Option<String> {
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| table::render(header, &rows))
}

fn list(texts: &[String]) -> String {
    if texts.is_empty() {
        "-".to_owned()
    } else {
        texts.join(",")
    }
}

/// `True`, or whatever else it is with its reason in the same cell, so that a cell stays one word for `awk`.
fn verdict(verdict: Option<&Verdict>) -> String {
    match verdict {
        None => "-".to_owned(),
        Some(verdict) => match (verdict.holds, verdict.reason.as_str()) {
            (true, "Accepted" | "Programmed" | "ResolvedRefs") => "True".to_owned(),
            (true, reason) => format!("True({reason})"),
            (false, reason) => format!("False({reason})"),
        },
    }
}
