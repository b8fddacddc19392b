//! Starting, ending, and what is left: nothing, however a cluster ends.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::Path,
    process::{Command, Output},
};

use gatewright_testbed::cluster::{self, Cluster, Options};

use crate::world::{GATEWRIGHT, Namespace, cluster, echo, eventually, http, images};

const ECHO: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: echo }
spec:
  selector: { matchLabels: { app: echo } }
  template:
    metadata: { labels: { app: echo } }
    spec: { containers: [{ name: echo, image: echo-basic }] }
---
apiVersion: v1
kind: Service
metadata: { name: echo }
spec: { type: LoadBalancer, selector: { app: echo }, ports: [{ port: 80, targetPort: 3000 }] }
";

fn options(name: &str) -> Options {
    Options {
        gateway_api: None,
        images: images(),
        ..Options::new(name, &*GATEWRIGHT)
    }
}

/// What a machine shows of a cluster.
fn traces(name: &str, host_address: Option<IpAddr>) -> Vec<String> {
    let mut traces = Vec::new();
    let folder = format!("gatewright-testbed/{name}");
    traces.extend(
        cluster::list()
            .into_iter()
            .map(|(name, ..)| name)
            .filter(|found| found == name),
    );
    // The folder, and what stands beside it.
    let files = fs::read_dir("/tmp/gatewright-testbed").into_iter().flatten().flatten();
    let files = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
    traces.extend(files.filter(|file| file.split('.').next() == Some(name)));
    let namespaces = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let namespaces = namespaces.map(|entry| entry.file_name().to_string_lossy().into_owned());
    traces.extend(
        namespaces.filter(|found| *found == format!("gwtb-{name}") || found.starts_with(&format!("gwtb-{name}-"))),
    );
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(&format!("{folder}/")) || command.contains(&format!("{folder} ")) {
            traces.push(command);
        }
    }
    if let Some(address) = host_address {
        let output = Command::new("ip").args(["-oneline", "address"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        traces.extend(
            text.lines()
                .filter(|line| line.contains(&format!(" {address}/")))
                .map(str::to_owned),
        );
    }
    traces
}

#[test]
fn two_clusters_run_side_by_side_and_nothing_is_left_of_the_one_that_stops() {
    let first = Namespace::make("beside");
    let second_cluster = Cluster::start(options("beside")).unwrap();
    let second = Namespace::make_in(&second_cluster, "beside");
    first.apply(ECHO);
    second.apply(ECHO);
    let address = |namespace: &Namespace<'_>| SocketAddr::new(namespace.address("echo"), 80);
    let (of_first, of_second) = (address(&first), address(&second));
    assert_ne!(of_first, of_second);
    echo(of_first);
    echo(of_second);
    let refusal = Cluster::start(options("beside")).unwrap_err().to_string();
    assert!(refusal.contains("is running"), "{refusal}");
    let host_address = IpAddr::from(second_cluster.host_address());
    assert!(
        traces("beside", Some(host_address)).len() > 5,
        "the test knows what to look for"
    );
    second_cluster.stop().unwrap();
    assert_eq!(traces("beside", Some(host_address)), Vec::<String>::new());
    assert_eq!(echo(of_first)["httpPort"], "3000", "the other goes on");
}

#[test]
fn traffic_goes_on_without_the_api_server_and_work_goes_on_when_it_is_back() {
    let alone = Cluster::start(options("alone")).unwrap();
    let namespace = Namespace::make_in(&alone, "alone");
    namespace.apply(ECHO);
    let address = SocketAddr::new(namespace.address("echo"), 80);
    echo(address);
    let ask = |timeout: &str| alone.kubectl().args(["get", "nodes", timeout]).output().unwrap();
    alone.freeze_api_server(true).unwrap();
    assert!(!ask("--request-timeout=1s").status.success());
    assert_eq!(http(address, "/").unwrap().0, 200);
    alone.freeze_api_server(false).unwrap();
    assert!(ask("--request-timeout=60s").status.success());

    alone.stop_api_server().unwrap();
    assert!(!ask("--request-timeout=5s").status.success());
    assert_eq!(http(address, "/").unwrap().0, 200);
    alone.start_api_server().unwrap();
    namespace.kubectl(["scale", "deployment", "echo", "--replicas=2"]);
    namespace.until("deployment", "echo", "/status/readyReplicas", |count| count == 2);
    eventually("a node that is ready", || {
        let place = "--output=jsonpath={.items[0].status.conditions[?(@.type=='Ready')].status}";
        let ready = alone
            .run_kubectl(["get", "nodes", place])
            .map_err(|error| error.to_string())?;
        if ready == "True" { Ok(()) } else { Err(ready) }
    });
}

/// The program for people.
fn cli(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_cluster"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn up(name: &str) -> Output {
    let gatewright = GATEWRIGHT.to_str().unwrap();
    cli(&[
        "up",
        "--name",
        name,
        "--gateway-api",
        "none",
        "--gatewright",
        gatewright,
    ])
}

fn kill(pids: &[u32]) {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    assert!(Command::new("kill").arg("-KILL").args(pids).status().unwrap().success());
}

/// The process that cleans up after the owner.
fn janitor(name: &str) -> u32 {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter_map(|process| {
        let command = String::from_utf8_lossy(&fs::read(process.path().join("cmdline")).ok()?).into_owned();
        let is_it = command.contains("\0janitor\0") && command.contains(&format!("gatewright-testbed/{name}\0"));
        process.file_name().to_str()?.parse().ok().filter(|_| is_it)
    });
    let found: Vec<u32> = found.collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

#[test]
fn a_cluster_whose_owner_is_killed_is_cleaned_up_and_if_nobody_could_then_by_the_next_start() {
    let name = "killed";
    let output = up(name);
    let kubeconfig = String::from_utf8(output.stdout).unwrap();
    assert!(Path::new(kubeconfig.trim()).is_file(), "{kubeconfig}");
    let owner = cluster::Owner::of(name).unwrap();
    assert!(owner.is_alive());

    kill(&[janitor(name), owner.pid]);
    eventually("the end of the owner", || {
        if owner.is_alive() {
            Err(format!("{owner:?}"))
        } else {
            Ok(())
        }
    });
    let left = traces(name, None);
    assert!(
        left.iter().any(|trace| trace.contains("kube-apiserver")),
        "something is left to clean: {left:?}"
    );

    let said = String::from_utf8(up(name).stderr).unwrap();
    assert!(said.contains("cleaning up"), "{said}");
    assert_eq!(
        traces(name, None)
            .iter()
            .filter(|trace| trace.contains("kube-apiserver "))
            .count(),
        1
    );
    let owner = cluster::Owner::of(name).unwrap();
    kill(&[owner.pid]);
    eventually("nothing left", || {
        let left = traces(name, None);
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    });

    up(name);
    let again = up(name);
    assert_eq!(
        String::from_utf8(again.stdout).unwrap(),
        kubeconfig,
        "the one that runs"
    );
    let status = String::from_utf8(cli(&["status"]).stdout).unwrap();
    assert!(status.contains("killed: running"), "{status}");
    cli(&["down", "--name", name]);
    assert_eq!(traces(name, None), Vec::<String>::new());
    assert_eq!(
        cluster().name(),
        "cluster-tests",
        "the one that tests share is untouched"
    );
    assert!(cluster().run_kubectl(["get", "nodes"]).is_ok());
}
