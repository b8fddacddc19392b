//! LoadBalancer Services: addresses, and traffic to whoever is ready.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    net::{SocketAddr, UdpSocket},
    process::Stdio,
    time::Duration,
};

use crate::world::{Namespace, echo, eventually, http};

const ECHO: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: echo }
spec:
  replicas: 2
  selector: { matchLabels: { app: echo } }
  template:
    metadata: { labels: { app: echo } }
    spec:
      containers:
      - name: echo
        image: registry.example.com/gateway-api/echo-basic:v1.6.1
        env:
        - { name: POD_NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
        - { name: NAMESPACE, valueFrom: { fieldRef: { fieldPath: metadata.namespace } } }
        readinessProbe: { httpGet: { path: /health, port: 3000 }, periodSeconds: 1 }
---
apiVersion: v1
kind: Service
metadata: { name: echo }
spec:
  type: LoadBalancer
  selector: { app: echo }
  ports: [{ name: web, port: 80, targetPort: 3000 }]
";

#[test]
fn a_deployment_answers_through_its_load_balancer_and_its_pods_logs_are_read() {
    let namespace = Namespace::make("balanced");
    namespace.apply(ECHO);
    let address = SocketAddr::new(namespace.address("echo"), 80);
    let pods = eventually("answers of both pods", || {
        let pods: BTreeSet<String> = (0..4)
            .map(|_| echo(address)["pod"].as_str().unwrap().to_owned())
            .collect();
        if pods.len() == 2 {
            Ok(pods)
        } else {
            Err(format!("{pods:?}"))
        }
    });
    assert_eq!(echo(address)["namespace"], "balanced");
    let pod = pods.first().unwrap().as_str();
    assert!(pod.starts_with("echo-"), "{pod}");
    namespace.until_log(pod, "Echoing back request made to /");
    assert_eq!(namespace.kubectl(["logs", pod, "--tail=1"]).lines().count(), 1);
    assert_eq!(
        namespace.kubectl(["logs", pod, "--since-time=2999-01-01T00:00:00Z"]),
        ""
    );
    let timed = namespace.kubectl(["logs", pod, "--timestamps", "--tail=1"]);
    assert!(timed.starts_with("20") && timed.contains("Z "), "{timed}");
    follow_a_log(&namespace, pod, address);

    namespace.kubectl(["scale", "deployment", "echo", "--replicas=1"]);
    eventually("only one pod that answers", || {
        let pods: BTreeSet<String> = (0..6).map(|_| echo(address)["pod"].to_string()).collect();
        if pods.len() == 1 {
            Ok(())
        } else {
            Err(format!("{pods:?}"))
        }
    });
    namespace.kubectl(["scale", "deployment", "echo", "--replicas=0"]);
    eventually("no answer without pods", || match http(address, "/") {
        Err(_) => Ok(()),
        Ok(answer) => Err(format!("{answer:?}")),
    });
    namespace.kubectl(["delete", "service", "echo"]);
    eventually("nobody listening", || match std::net::TcpStream::connect(address) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

/// Lines are seen as they come.
fn follow_a_log(namespace: &Namespace<'_>, pod: &str, address: SocketAddr) {
    let mut child = namespace
        .command(["logs", pod, "--follow", "--tail=0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    eventually("a line while following", || {
        http(address, "/followed")?;
        http(address, "/followed")?;
        match receiver.recv_timeout(Duration::from_millis(200)) {
            Ok(line) if line.contains("/followed") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn datagrams_are_forwarded_and_answers_find_their_way_back() {
    let namespace = Namespace::make("datagrams");
    namespace.apply(
        "
apiVersion: v1
kind: Pod
metadata: { name: udp, labels: { app: udp } }
spec:
  containers:
  - { name: udp, image: echo-basic:v1, env: [{ name: UDP_ECHO_SERVER, value: '1' }, { name: POD_NAME, value: udp }] }
---
apiVersion: v1
kind: Pod
metadata: { name: dns, labels: { app: dns } }
spec:
  containers:
  - { name: dns, image: 'coredns:v1.12.2', args: ['-conf', /root/Corefile] }
---
apiVersion: v1
kind: Service
metadata: { name: udp }
spec:
  type: LoadBalancer
  selector: { app: udp }
  ports: [{ port: 5300, targetPort: 8080, protocol: UDP }]
---
apiVersion: v1
kind: Service
metadata: { name: dns }
spec:
  type: LoadBalancer
  selector: { app: dns }
  ports: [{ port: 53, protocol: UDP }]
",
    );
    let address = SocketAddr::new(namespace.address("udp"), 5300);
    let answer = eventually("an answer over UDP", || ask(address, b"hello"));
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!((&answer["request"], &answer["pod"]), (&"hello".into(), &"udp".into()));
    let address = SocketAddr::new(namespace.address("dns"), 53);
    let question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03foo\x03bar\x03com\x00\x00\x01\x00\x01";
    let answer = eventually("an answer of the name server", || ask(address, question));
    assert_eq!(&answer[..2], &question[..2]);
}

pub(crate) fn ask(address: SocketAddr, datagram: &[u8]) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| error.to_string();
    let socket = UdpSocket::bind(("0.0.0.0", 0)).map_err(failed)?;
    socket
        .set_read_timeout(Some(Duration::from_millis(500)))
        .map_err(failed)?;
    socket.send_to(datagram, address).map_err(failed)?;
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).map_err(failed)?;
    Ok(buffer[..length].to_vec())
}

#[test]
fn a_service_without_selector_follows_the_slices_that_others_write() {
    let namespace = Namespace::make("unselected");
    namespace.apply(
        "
apiVersion: v1
kind: Pod
metadata: { name: echo }
spec:
  containers: [{ name: echo, image: 'echo-basic:v1', env: [{ name: POD_NAME, value: echo }] }]
",
    );
    let pod = namespace.until("pod", "echo", "/status/podIP", serde_json::Value::is_string);
    let pod_address = pod["status"]["podIP"].as_str().unwrap();
    // The pool is the upper half of the cluster's addresses.
    let pool = upper_part(pod_address);
    let wish = format!("{pool}.77");
    namespace.apply(&format!(
        "
apiVersion: v1
kind: Service
metadata: {{ name: chosen }}
spec:
  type: LoadBalancer
  loadBalancerIP: {wish}
  ports: [{{ name: web, port: 8081 }}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{ name: chosen-1, labels: {{ kubernetes.io/service-name: chosen }} }}
addressType: IPv4
ports: [{{ name: web, port: 3000 }}]
endpoints: [{{ addresses: ['{pod_address}'] }}]
---
apiVersion: v1
kind: Service
metadata: {{ name: late }}
spec:
  type: LoadBalancer
  loadBalancerIP: {wish}
  ports: [{{ name: web, port: 8081 }}]
"
    ));
    assert_eq!(namespace.address("chosen").to_string(), wish);
    let address = SocketAddr::new(namespace.address("chosen"), 8081);
    assert_eq!(echo(address)["pod"], "echo");
    eventually("a word about the address that is taken", || {
        let events = namespace.kubectl([
            "get",
            "events",
            "--output=name",
            "--field-selector=involvedObject.name=late",
        ]);
        if events.is_empty() { Err(events) } else { Ok(()) }
    });
    assert!(
        namespace
            .get("service", "late")
            .pointer("/status/loadBalancer/ingress")
            .is_none()
    );
    namespace.kubectl(["delete", "service", "chosen"]);
    // What is free again goes to the one who waits.
    assert_eq!(namespace.address("late").to_string(), wish);
}

/// The first three numbers of a part of the pool that nobody gets by chance.
fn upper_part(pod: &str) -> String {
    let numbers: Vec<u8> = pod.split('.').map(|number| number.parse().unwrap()).collect();
    format!("10.244.{}", (numbers[2] & 0xf0) + 15)
}
