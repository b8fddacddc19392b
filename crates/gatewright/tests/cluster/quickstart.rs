//! The quickstarts, as the documentation tells them.

use std::{collections::BTreeMap, fs, net::SocketAddr};

use serde_json::{Value, json};

use crate::{
    bed::{eventually, holds, root, shared},
    install::{commands, shell},
    namespace::{Namespace, backend, condition, documents, until_status},
    web::{ask, ask_secretly, get},
};

/// The objects of an example's folder.
pub(crate) fn example(folder: &str) -> Vec<Value> {
    let files = fs::read_dir(root().join("examples").join(folder)).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let texts = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    texts.flat_map(|text| documents(&text)).collect()
}

fn certificate(objects: &[Value]) -> String {
    let secret = objects.iter().find(|object| object["kind"] == "Secret").unwrap();
    secret["stringData"]["tls.crt"].as_str().unwrap().to_owned()
}

/// What both quickstarts promise, of their two listeners.
fn behaves_as_promised(plain: SocketAddr, secret: SocketAddr, trusted: &str) {
    let mut answered = BTreeMap::new();
    for _ in 0..100 {
        let response = get(plain, "/").unwrap();
        assert_eq!(response.status, 200, "{response:?}");
        *answered.entry(response.service()).or_insert(0) += 1;
    }
    let count = |service: &str| answered.get(service).copied().unwrap_or_default();
    assert_eq!(count("blue") + count("green"), 100, "{answered:?}");
    // Nine of ten; replicas and their threads count for themselves.
    assert!((75..=99).contains(&count("blue")), "{answered:?}");
    let chosen = ask(plain, "/", "any.example.com", &[("x-colour", "green")]).unwrap();
    assert_eq!(chosen.service(), "green");
    assert_eq!(get(plain, "/green/leaf").unwrap().service(), "green");
    assert_eq!(get(plain, "/greenish").unwrap().status, 200);

    let response = ask_secretly(secret, "/green", &[], trusted).unwrap();
    assert_eq!((response.status, response.service()), (200, "green".to_owned()));
    let redirected = ask(plain, "/secure/door", "localhost", &[]).unwrap();
    let port = match secret.port() {
        443 => String::new(),
        port => format!(":{port}"),
    };
    let expected = format!("https://localhost{port}/secure/door");
    assert_eq!(
        (redirected.status, redirected.header("location")),
        (301, Some(expected.as_str()))
    );
    let response = ask_secretly(secret, "/secure/door", &[("x-colour", "green")], trusted).unwrap();
    assert_eq!(response.service(), "green", "there is no redirect where it leads to");
}

#[test]
fn three_commands_lead_from_an_empty_cluster_to_the_first_request() {
    let bed = shared();
    // The first two have been run.
    let answer = shell(bed, &commands()[2]);
    assert!(answer.contains("condition met"), "{answer}");
    let body: Value = serde_json::from_str(
        answer
            .split_once('{')
            .map(|(_, rest)| format!("{{{rest}"))
            .unwrap()
            .as_str(),
    )
    .unwrap_or_else(|error| panic!("{error}: {answer}"));
    assert!(body["service"] == "blue" || body["service"] == "green", "{body}");

    let namespace = Namespace {
        bed,
        name: "default".to_owned(),
    };
    let address = namespace.programmed("quickstart");
    let gateway = namespace.get("gateway", "quickstart").unwrap();
    for listener in gateway["status"]["listeners"].as_array().unwrap() {
        for kind in ["Accepted", "Programmed", "ResolvedRefs"] {
            assert_eq!(condition(&listener["conditions"], kind).0, "True", "{listener}");
        }
        let expected = if listener["name"] == "http" { 2 } else { 1 };
        assert_eq!(listener["attachedRoutes"], expected, "{listener}");
    }
    let (plain, secret) = (SocketAddr::new(address, 80), SocketAddr::new(address, 443));
    let trusted = certificate(&example("cluster-quickstart"));
    behaves_as_promised(plain, secret, &trusted);

    bed.kubectl(&["scale", "deployment", "green", "--replicas=2"]).unwrap();
    eventually("answers of both pods of green", || {
        let pods = (0..8).map(|_| Ok(get(plain, "/green")?.echoed("pod")));
        let pods: std::collections::BTreeSet<String> = pods.collect::<Result<_, String>>()?;
        holds(pods.len() == 2, format!("{pods:?}"))
    });
    bed.kubectl(&["scale", "deployment", "green", "--replicas=1"]).unwrap();
    for _ in 0..50 {
        let response = get(plain, "/green").unwrap();
        assert_eq!(response.status, 200, "while a backend leaves: {response:?}");
    }
    bed.kubectl(&["delete", "httproute", "colours"]).unwrap();
    until_status(plain, "/", 404);
    assert_eq!(get(plain, "/secure").unwrap().status, 301, "the other route stays");
    shell(bed, "kubectl apply --server-side -f examples/cluster-quickstart");
    until_status(plain, "/", 200);
}

#[test]
fn the_quickstart_of_files_behaves_alike_in_a_cluster() {
    let namespace = Namespace::make(shared(), "files-quickstart");
    let objects = example("quickstart");
    let trusted = certificate(&objects);
    // The class is installed, and a cluster makes EndpointSlices; the Services get their pods.
    for mut object in objects {
        let kind = object["kind"].as_str().unwrap().to_owned();
        match kind.as_str() {
            "GatewayClass" | "EndpointSlice" => continue,
            "Service" => {
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                object = documents(&backend(&name)).remove(1);
                namespace.backend(&name);
            }
            _ => {}
        }
        namespace.apply(&object.to_string());
    }
    let address = namespace.programmed("quickstart");
    let (plain, secret) = (SocketAddr::new(address, 8080), SocketAddr::new(address, 8443));
    until_status(plain, "/", 200);
    namespace.until_route("to-https", "Accepted", ("True", "Accepted"));
    until_status(plain, "/secure", 301);
    behaves_as_promised(plain, secret, &trusted);
    assert_eq!(
        namespace.get("httproute", "colours").unwrap()["status"]["parents"][0]["controllerName"],
        json!("gatewright.dev/gateway-controller")
    );
}
