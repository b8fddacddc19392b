//! More than one replica: one that leaves costs no request, one that dies at most those it had in hand.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    bed::{eventually, holds, shared, within},
    install::{Installation, address, is_ready, kill, metric, name, signal},
    namespace::{Namespace, condition, path},
    steady::{Steady, Style},
    web::get,
};

/// The Lease of the writer runs out after 15 s; the rest is for a busy machine.
const TAKEOVER: Duration = Duration::from_secs(30);

/// Clients of both styles.
fn load(address: SocketAddr) -> Vec<Steady> {
    let styles = [Style::Fresh, Style::Kept, Style::Fresh, Style::Kept];
    let clients: Vec<Steady> = styles.into_iter().map(|style| Steady::start(address, style)).collect();
    let everybody = || clients.iter().all(|client| client.asked() > 20);
    eventually("load", || holds(everybody(), "not all have begun"));
    clients
}

/// When a Gateway became Programmed, which it is.
fn programmed_since(namespace: &Namespace<'_>, gateway: &str) -> Value {
    let gateway = namespace.get("gateway", gateway).unwrap();
    let conditions = &gateway["status"]["conditions"];
    assert_eq!(condition(conditions, "Programmed").0, "True", "{conditions}");
    let all = conditions.as_array().unwrap().iter();
    let mut programmed = all.filter(|condition| condition["type"] == "Programmed");
    programmed.next().unwrap()["lastTransitionTime"].clone()
}

/// The addresses to which a Gateway's Service leads.
fn endpoints(namespace: &Namespace<'_>, gateway: &str) -> Vec<String> {
    let label = "gateway.networking.k8s.io/gateway-name";
    let slices = namespace.list("endpointslice").into_iter();
    let slices = slices.filter(|slice| slice["metadata"]["labels"][label] == gateway);
    let listed = slices.flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
    let ready = listed.filter(|endpoint| endpoint["conditions"]["ready"] == true);
    ready
        .map(|endpoint| endpoint["addresses"][0].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_writer_that_is_told_to_stop_costs_no_request_and_hands_the_writing_on() {
    let bed = shared();
    let installation = Installation::make(bed, "orderly", 2, &[]);
    let namespace = Namespace::make(bed, "orderly");
    let address = namespace.served("door", "orderly");
    let since = programmed_since(&namespace, "door");
    let writer = eventually("a writer", || installation.writer().ok_or_else(String::new));
    let clients = load(address);
    // One after the other, so that both replicas have some.
    let slow = [(); 4].map(|()| thread::spawn(move || get(address, "/?delay=8s")));
    let began = Instant::now();
    bed.kubectl(&[
        "--namespace",
        &installation.namespace,
        "delete",
        "pod",
        &writer,
        "--wait=false",
    ])
    .unwrap();
    within(TAKEOVER, "another writer", || {
        let now = installation.writer();
        holds(now.as_ref().is_some_and(|now| *now != writer), format!("{now:?}"))
    });
    println!(
        "the next writer took over {:.1} s after the order",
        began.elapsed().as_secs_f64()
    );
    assert!(
        began.elapsed() < Duration::from_secs(13),
        "sooner than a Lease that runs out"
    );
    eventually("the old pod's end", || {
        let names: Vec<String> = installation.pods().iter().map(name).collect();
        holds(!names.contains(&writer), format!("{names:?}"))
    });
    println!(
        "the old writer had left {:.1} s after the order",
        began.elapsed().as_secs_f64()
    );
    let pods = installation.until_ready(2);
    eventually("both replicas behind the Service", || {
        let found = endpoints(&namespace, "door");
        let is_listed = |pod: &Value| found.contains(&self::address(pod).to_string());
        holds(found.len() == 2 && pods.iter().all(is_listed), format!("{found:?}"))
    });
    for request in slow {
        let response = request.join().unwrap().unwrap();
        assert_eq!(response.status, 200, "a request that was under way: {response:?}");
    }
    replace_all(&installation, &pods);
    for client in clients {
        client.stop().assert_sound("traffic while replicas leave");
    }
    assert_eq!(programmed_since(&namespace, "door"), since);
}

/// As an upgrade does: one by one, by others.
fn replace_all(installation: &Installation<'_>, old: &[Value]) {
    let began = Instant::now();
    let deployment = path("deployment", &installation.namespace, "gatewright");
    let annotation = json!({ "spec": { "template": { "metadata": { "annotations": { "restarted": "once" } } } } });
    installation.bed.patch(&deployment, &annotation).unwrap();
    eventually("other replicas", || {
        let pods = installation.pods();
        let is_new = |pod: &Value| is_ready(pod) && old.iter().all(|old| name(old) != name(pod));
        let seen = format!("{:?}", pods.iter().map(name).collect::<Vec<_>>());
        holds(pods.len() == old.len() && pods.iter().all(is_new), seen)
    });
    println!("all replicas were replaced in {:.1} s", began.elapsed().as_secs_f64());
}

/// A replica that is not started again: a pod of its own, beside the Deployment's.
fn mortal(installation: &Installation<'_>, pod: &str) -> Value {
    let deployment = installation
        .bed
        .get(&path("deployment", &installation.namespace, "gatewright"))
        .unwrap();
    let mut object = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": pod } });
    object["spec"] = deployment["spec"]["template"]["spec"].clone();
    object["spec"]["restartPolicy"] = json!("Never");
    installation
        .bed
        .create(&path("pod", &installation.namespace, ""), &object)
        .unwrap();
    eventually(&format!("{pod} to be ready"), || {
        let found = installation.pod(pod);
        holds(is_ready(&found), found["status"].to_string()).map(|()| found)
    })
}

/// Kills a replica under load, and waits until no Service leads to it. Returns how long that took.
fn kill_under_load(namespace: &Namespace<'_>, door: SocketAddr, pod: &Value) -> Duration {
    let dead = address(pod).to_string();
    eventually("the replica behind the Service", || {
        let found = endpoints(namespace, "door");
        holds(found.contains(&dead), format!("{found:?}"))
    });
    let clients = load(door);
    let count = clients.len();
    let began = Instant::now();
    kill(&name(pod));
    within(TAKEOVER, "a Service without the dead replica", || {
        let found = endpoints(namespace, "door");
        holds(!found.is_empty() && !found.contains(&dead), format!("{found:?}"))
    });
    let took = began.elapsed();
    let tallies: Vec<_> = clients.into_iter().map(Steady::stop).collect();
    let asked: usize = tallies.iter().map(|tally| tally.asked).sum();
    let failures: Vec<&String> = tallies.iter().flat_map(|tally| &tally.failures).collect();
    // Each client has one request in hand at a time.
    assert!(failures.len() <= count, "{failures:#?}");
    println!(
        "{} of {asked} requests were lost with {}, out of the Service after {took:.1?}",
        failures.len(),
        name(pod)
    );
    took
}

#[test]
fn a_replica_that_is_killed_costs_what_it_had_in_hand_and_another_writes_within_the_lease() {
    let bed = shared();
    let installation = Installation::make(bed, "sudden", 0, &[]);
    let namespace = Namespace::make(bed, "sudden");
    let first = mortal(&installation, "first");
    eventually("the first to write", || {
        let now = installation.writer();
        holds(now.as_deref() == Some("first"), format!("{now:?}"))
    });
    let second = mortal(&installation, "second");
    bed.patch(
        &path("deployment", &installation.namespace, "gatewright"),
        &json!({ "spec": { "replicas": 1 } }),
    )
    .unwrap();
    let door = namespace.served("door", "sudden");
    let since = programmed_since(&namespace, "door");

    let took = kill_under_load(&namespace, door, &second);
    // Six seconds, and what a busy machine needs.
    assert!(
        took < Duration::from_secs(14),
        "a replica that does not write: {took:?}"
    );
    assert_eq!(installation.writer().as_deref(), Some("first"));
    let began = Instant::now();
    kill_under_load(&namespace, door, &first);
    within(TAKEOVER, "another writer", || {
        let now = installation.writer();
        holds(now.as_ref().is_some_and(|now| now != "first"), format!("{now:?}"))
    });
    println!("another writer {:.1} s after the kill", began.elapsed().as_secs_f64());
    assert_eq!(programmed_since(&namespace, "door"), since);
    let beyond = namespace.served("new", "sudden");
    assert_ne!(beyond, door, "the new writer makes what is new");
}

/// Lets a replica go on when dropped, also when the test fails.
struct Frozen(String);

impl Frozen {
    fn make(pod: String) -> Self {
        signal(&pod, "STOP");
        Self(pod)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal(&self.0, "CONT");
    }
}

#[test]
fn a_writer_that_hangs_is_replaced_and_does_not_write_when_it_goes_on() {
    let bed = shared();
    let installation = Installation::make(bed, "hanging", 2, &[]);
    let namespace = Namespace::make(bed, "hanging");
    let door = namespace.served("door", "hanging");
    let since = programmed_since(&namespace, "door");
    let writer = eventually("a writer", || installation.writer().ok_or_else(String::new));
    let hung = address(&installation.pod(&writer)).to_string();
    let began = Instant::now();
    let frozen = Frozen::make(writer.clone());
    within(
        TAKEOVER,
        "another writer, and a Service without the one that hangs",
        || {
            let (now, found) = (installation.writer(), endpoints(&namespace, "door"));
            let is_replaced = now.as_ref().is_some_and(|now| *now != writer);
            holds(is_replaced && !found.contains(&hung), format!("{now:?} {found:?}"))
        },
    );
    println!(
        "another writer {:.1} s after the first hung",
        began.elapsed().as_secs_f64()
    );
    let clients = load(door);
    for client in clients {
        client.stop().assert_sound("traffic while a replica hangs");
    }
    let services = namespace.get("service", "gatewright-door").unwrap();
    drop(frozen);
    eventually("the replica in its place again", || {
        let found = endpoints(&namespace, "door");
        holds(found.contains(&hung) && found.len() == 2, format!("{found:?}"))
    });
    for pod in installation.until_ready(2) {
        let leads = metric(&pod, "gatewright_leader")[0].1;
        assert_eq!(leads == 1, name(&pod) != writer, "{}", name(&pod));
    }
    assert_eq!(namespace.get("service", "gatewright-door").unwrap(), services);
    assert_eq!(programmed_since(&namespace, "door"), since);
}

#[test]
fn no_service_leads_to_replicas_that_all_left_and_those_that_come_find_it_as_it_was() {
    let bed = shared();
    let installation = Installation::make(bed, "closing", 2, &[]);
    let namespace = Namespace::make(bed, "closing");
    let door = namespace.served("door", "closing");
    eventually("both replicas behind the Service", || {
        let found = endpoints(&namespace, "door");
        holds(found.len() == 2, format!("{found:?}"))
    });
    let service = namespace.get("service", "gatewright-door").unwrap();
    let scale = |count: u32| {
        let deployment = path("deployment", &installation.namespace, "gatewright");
        bed.patch(&deployment, &json!({ "spec": { "replicas": count } }))
            .unwrap();
        installation.until_ready(count as usize);
    };
    // Whoever leaves last has seconds to say so. Where the API server takes longer, because the machine is too busy, nobody
    // is left who could; so it counts if it works one time of three.
    let mut leftovers = Vec::new();
    for _ in 0..3 {
        scale(0);
        let left = endpoints(&namespace, "door");
        scale(2);
        eventually("an answer", || {
            let response = get(door, "/")?;
            holds(response.status == 200, format!("{response:?}"))
        });
        if left.is_empty() {
            leftovers.clear();
            break;
        }
        println!("{left:?} still listed after all replicas left");
        leftovers.push(left);
    }
    assert!(
        leftovers.is_empty(),
        "their addresses may be others' soon: {leftovers:?}"
    );
    assert_eq!(namespace.get("service", "gatewright-door").unwrap(), service);
}
