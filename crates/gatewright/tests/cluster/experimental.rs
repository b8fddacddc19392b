//! What only Gateway API's experimental channel has, in a cluster that has it: default Gateways, sessions, external
//! authorisation.

use std::{collections::BTreeSet, net::SocketAddr, sync::LazyLock};

use gatewright_testbed::cluster::Channel;
use serde_json::{Value, json};

use crate::{
    bed::{Bed, eventually, holds},
    install::{Installation, by_the_documentation},
    namespace::{CLASS, Namespace, condition, plain_gateway, plain_route, until_status},
    web::{Response, ask, get},
};

/// A cluster with the experimental channel and two replicas.
fn experimental() -> &'static Bed {
    static EXPERIMENTAL: LazyLock<Bed> = LazyLock::new(|| {
        let bed = Bed::start("gatewright-experimental", Some(Channel::Experimental));
        by_the_documentation(&bed);
        Installation::shared(&bed).until_ready(2);
        bed
    });
    &EXPERIMENTAL
}

/// The Gateways in a route's status as `namespace/name`, with what they say of the route.
fn parents(route: &Value) -> Vec<(String, String)> {
    let parents = route["status"]["parents"].as_array().cloned().unwrap_or_default();
    let one = |parent: &Value| {
        let reference = &parent["parentRef"];
        let text = |field: &str| reference[field].as_str().unwrap_or_default().to_owned();
        let accepted = condition(&parent["conditions"], "Accepted").0;
        (format!("{}/{}", text("namespace"), text("name")), accepted)
    };
    parents.iter().map(one).collect()
}

#[test]
fn a_route_attaches_to_a_default_gateway_of_another_namespace_that_comes_later() {
    let bed = experimental();
    let (shop, edge) = (
        Namespace::make(bed, "defaults-shop"),
        Namespace::make(bed, "defaults-edge"),
    );
    shop.backend("echo");
    let mut route = plain_route("anywhere", "", "echo");
    route["spec"]["parentRefs"].take();
    route["spec"]["useDefaultGateways"] = json!("All");
    shop.create("httproute", &route);

    let offered = |name: &str, from: &str| {
        let mut gateway = plain_gateway(name, CLASS);
        gateway["spec"]["defaultScope"] = json!("All");
        gateway["spec"]["listeners"][0]["allowedRoutes"] = json!({ "namespaces": { "from": from } });
        edge.create("gateway", &gateway);
        SocketAddr::new(edge.programmed(name), 80)
    };
    // One that lets nobody else in is offered first, and one that is not offered at all.
    let closed = offered("closed", "Same");
    edge.gateway("ordinary", CLASS);
    let open = offered("open", "All");
    assert_eq!(until_status(open, "/", 200).service(), "echo");
    let accepted = |route: &Value| {
        let parents = parents(route).into_iter().filter(|(_, accepted)| accepted == "True");
        parents.map(|(name, _)| name).collect::<Vec<_>>()
    };
    shop.until("httproute", "anywhere", "the open Gateway alone", |route| {
        accepted(route) == ["defaults-edge/open"]
    });
    assert_eq!(get(closed, "/").unwrap().status, 404);
    assert_eq!(
        get(SocketAddr::new(edge.programmed("ordinary"), 80), "/")
            .unwrap()
            .status,
        404
    );

    // What is offered no longer is no parent any more, and what is offered now is.
    edge.patch("gateway", "open", &json!({ "spec": { "defaultScope": "None" } }));
    until_status(open, "/", 404);
    shop.until("httproute", "anywhere", "no Gateway", |route| {
        accepted(route).is_empty()
    });
    edge.patch(
        "gateway",
        "ordinary",
        &json!({ "spec": { "defaultScope": "All", "listeners": [
            { "name": "http", "protocol": "HTTP", "port": 80, "allowedRoutes": { "namespaces": { "from": "All" } } }
        ] } }),
    );
    until_status(SocketAddr::new(edge.programmed("ordinary"), 80), "/", 200);
    edge.delete("gateway", "ordinary");
    shop.until("httproute", "anywhere", "no Gateway", |route| {
        accepted(route).is_empty()
    });
}

/// Where each replica accepts connections for a Gateway, by its EndpointSlices.
fn doors(namespace: &Namespace<'_>, gateway: &str) -> Vec<SocketAddr> {
    let slices = namespace.list("endpointslice").into_iter();
    let ours = slices.filter(|slice| slice["metadata"]["labels"]["gateway.networking.k8s.io/gateway-name"] == gateway);
    let mut doors = Vec::new();
    for slice in ours {
        let port = u16::try_from(slice["ports"][0]["port"].as_u64().unwrap()).unwrap();
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            let address = endpoint["addresses"][0].as_str().unwrap();
            doors.push(SocketAddr::new(address.parse().unwrap(), port));
        }
    }
    doors
}

fn cookie(response: &Response) -> Option<String> {
    let set = response.header("set-cookie")?;
    Some(set.split(';').next().unwrap().to_owned())
}

#[test]
fn a_session_leads_to_its_pod_through_every_replica_and_moves_when_the_pod_is_gone() {
    let namespace = Namespace::make(experimental(), "sessions");
    namespace.gateway("door", CLASS);
    namespace.backend("echo");
    namespace.patch("deployment", "echo", &json!({ "spec": { "replicas": 3 } }));
    namespace.until("deployment", "echo", "three replicas", |deployment| {
        deployment["status"]["readyReplicas"] == 3
    });
    let mut route = plain_route("kept", "door", "echo");
    route["spec"]["rules"][0]["sessionPersistence"] = json!({ "sessionName": "seat" });
    namespace.create("httproute", &route);
    until_status(SocketAddr::new(namespace.programmed("door"), 80), "/", 200);
    let doors = eventually("both replicas behind the Gateway", || {
        let doors = doors(&namespace, "door");
        holds(doors.len() == 2, format!("{doors:?}")).map(|()| doors)
    });
    for door in &doors {
        eventually("the route and all pods at every replica", || {
            let pods: BTreeSet<String> = (0..30)
                .map(|_| get(*door, "/").map(|response| response.echoed("pod")))
                .collect::<Result<_, _>>()?;
            holds(pods.len() == 3, format!("{pods:?}"))
        });
    }
    let through = |door: SocketAddr, cookie: &str| {
        let response = ask(door, "/", "a.test", &[("cookie", cookie)]).unwrap();
        assert_eq!(response.status, 200, "{response:?}");
        response
    };
    for round in 0..10 {
        let first = get(doors[round % 2], "/").unwrap();
        let seat = cookie(&first).unwrap();
        for door in doors.iter().cycle().take(6) {
            let again = through(*door, &seat);
            assert_eq!(again.echoed("pod"), first.echoed("pod"), "through {door}");
            assert_eq!(cookie(&again), None, "through {door}");
        }
    }
    let first = get(doors[0], "/").unwrap();
    let (pod, seat) = (first.echoed("pod"), cookie(&first).unwrap());
    namespace.delete("pod", &pod);
    let moved = eventually("another pod", || {
        let response = ask(doors[1], "/", "a.test", &[("cookie", &seat)])?;
        holds(
            response.status == 200 && response.echoed("pod") != pod,
            format!("{response:?}"),
        )
        .map(|()| response)
    });
    let seat = cookie(&moved).unwrap();
    for door in &doors {
        assert_eq!(through(*door, &seat).echoed("pod"), moved.echoed("pod"));
    }
}

#[test]
fn an_authoriser_in_the_cluster_is_asked_and_nothing_passes_without_it() {
    let namespace = Namespace::make(experimental(), "guarded");
    namespace.gateway("door", CLASS);
    namespace.backend("echo");
    // The echo says yes to everything, and no below `/status`.
    namespace.backend("guard");
    let rule = |path: &str, front: &str| {
        json!({
            "matches": [{ "path": { "type": "PathPrefix", "value": path } }],
            "filters": [{ "type": "ExternalAuth", "externalAuth": {
                "protocol": "HTTP", "backendRef": { "name": "guard", "port": 80 }, "http": { "path": front },
            } }],
            "backendRefs": [{ "name": "echo", "port": 80 }],
        })
    };
    let mut route = plain_route("guarded", "door", "echo");
    route["spec"]["rules"] = json!([rule("/open", "/check"), rule("/shut", "/status")]);
    namespace.create("httproute", &route);
    let address = SocketAddr::new(namespace.programmed("door"), 80);
    assert_eq!(until_status(address, "/open", 200).service(), "echo");
    assert_eq!(get(address, "/shut").unwrap().status, 400, "what the authoriser says");
    namespace.patch("deployment", "guard", &json!({ "spec": { "replicas": 0 } }));
    until_status(address, "/open", 403);
    namespace.patch("deployment", "guard", &json!({ "spec": { "replicas": 1 } }));
    until_status(address, "/open", 200);
}
