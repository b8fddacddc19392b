//! Pods: what runs, what does not, how it starts again and how it ends.

use std::{
    io::{BufRead, BufReader, Read},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::world::{Namespace, eventually};

#[test]
fn an_image_that_nobody_knows_cannot_be_pulled() {
    let namespace = Namespace::make("unknown");
    namespace.kubectl(["run", "stranger", "--image=registry.example.com/stranger:v1"]);
    let place = "/status/containerStatuses/0/state/waiting/reason";
    let pod = namespace.until("pod", "stranger", place, |reason| reason == "ImagePullBackOff");
    assert_eq!(pod["status"]["phase"], "Pending");
    let events = namespace.kubectl(["get", "events", "--output=jsonpath={.items[*].message}"]);
    assert!(events.contains("registry.example.com/stranger:v1"), "{events}");
    namespace.kubectl(["delete", "pod", "stranger", "--timeout=60s"]);
}

#[test]
fn a_container_that_keeps_crashing_is_started_again_and_then_made_to_wait() {
    let namespace = Namespace::make("crashing");
    namespace.apply(
        "
apiVersion: v1
kind: Pod
metadata: { name: crash }
spec:
  containers: [{ name: crash, image: shell, args: ['-c', 'echo I crash; exit 3'] }]
",
    );
    let place = "/status/containerStatuses/0/state/waiting/reason";
    let pod = namespace.until("pod", "crash", place, |reason| reason == "CrashLoopBackOff");
    let status = &pod["status"]["containerStatuses"][0];
    assert!(status["restartCount"].as_i64().unwrap() >= 1, "{status}");
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 3);
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(namespace.kubectl(["logs", "crash"]), "I crash\n");
    assert_eq!(namespace.kubectl(["logs", "crash", "--previous"]), "I crash\n");
}

#[test]
fn a_pod_that_is_done_has_succeeded_or_failed() {
    let namespace = Namespace::make("done");
    namespace.apply(
        "
apiVersion: v1
kind: Pod
metadata: { name: good }
spec:
  restartPolicy: Never
  initContainers: [{ name: first, image: shell, args: ['-c', 'echo 1 >/shared/file'], volumeMounts: [{ name: shared, mountPath: /shared }] }]
  containers: [{ name: main, image: shell, args: ['-c', 'cat /shared/file'], volumeMounts: [{ name: shared, mountPath: /shared }] }]
  volumes: [{ name: shared, emptyDir: {} }]
---
apiVersion: v1
kind: Pod
metadata: { name: bad }
spec:
  restartPolicy: Never
  containers: [{ name: main, image: shell, args: ['-c', 'kill -KILL $$$$'] }]
",
    );
    namespace.until("pod", "good", "/status/phase", |phase| phase == "Succeeded");
    assert_eq!(namespace.kubectl(["logs", "good"]), "1\n");
    let bad = namespace.until("pod", "bad", "/status/phase", |phase| phase == "Failed");
    assert_eq!(
        bad.pointer("/status/containerStatuses/0/state/terminated/exitCode"),
        Some(&Value::from(137))
    );
}

#[test]
fn a_pod_is_asked_to_end_and_killed_when_its_time_is_up() {
    let namespace = Namespace::make("ending");
    let pod = |name: &str, script: &str, grace: u32| {
        format!(
            "
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  terminationGracePeriodSeconds: {grace}
  containers: [{{ name: main, image: shell, args: ['-c', '{script}'] }}]
---"
        )
    };
    let polite = "trap \"echo bye; exit 0\" TERM; echo hello; while :; do sleep 0.1; done";
    let stubborn = "trap \"\" TERM; echo hello; while :; do sleep 0.1; done";
    namespace.apply(&(pod("polite", polite, 60) + &pod("stubborn", stubborn, 2)));
    namespace.until_log("polite", "hello");
    namespace.until_log("stubborn", "hello");
    let mut follower = namespace
        .command(["logs", "polite", "--follow"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(follower.stdout.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert_eq!(first, "hello\n");
    let started = Instant::now();
    namespace.kubectl(["delete", "pod", "polite", "stubborn", "--timeout=60s"]);
    let took = started.elapsed();
    assert!(
        took >= Duration::from_secs(2),
        "the stubborn one had two seconds: {took:?}"
    );
    assert!(
        took < Duration::from_secs(50),
        "the polite one does not use up its time: {took:?}"
    );
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(follower.wait().unwrap().success());
    assert_eq!(rest, "bye\n");
}

#[test]
fn a_pod_is_ready_when_its_probe_says_so_and_started_again_when_it_is_dead() {
    let namespace = Namespace::make("probed");
    namespace.apply(
        "
apiVersion: v1
kind: Pod
metadata: { name: unready, labels: { app: unready } }
spec:
  containers:
  - name: echo
    image: echo-basic
    readinessProbe: { httpGet: { path: /status/503, port: 3000 }, periodSeconds: 1 }
---
apiVersion: v1
kind: Pod
metadata: { name: dead }
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: shell
    args: ['-c', 'touch /tmp/alive; sleep 1; rm /tmp/alive; while :; do sleep 0.1; done']
    readinessProbe: { exec: { command: [test, '-e', /tmp/alive] }, periodSeconds: 1 }
    livenessProbe: { exec: { command: [test, '-e', /tmp/alive] }, periodSeconds: 1, failureThreshold: 2, initialDelaySeconds: 1 }
---
apiVersion: v1
kind: Service
metadata: { name: unready }
spec: { selector: { app: unready }, ports: [{ port: 80 }] }
",
    );
    let is_running = |state: &Value| state.get("running").is_some();
    namespace.until("pod", "unready", "/status/containerStatuses/0/state", is_running);
    namespace.until("pod", "dead", "/status/containerStatuses/0/restartCount", |count| {
        count.as_i64() > Some(0)
    });
    let pod = namespace.get("pod", "unready");
    assert_eq!(
        pod.pointer("/status/containerStatuses/0/ready"),
        Some(&Value::from(false))
    );
    eventually("an endpoint that is not ready", || {
        let slices = namespace.kubectl(["get", "endpointslices", "--output=json"]);
        let slices: Value = serde_json::from_str(&slices).unwrap();
        match slices.pointer("/items/0/endpoints/0/conditions/ready") {
            Some(Value::Bool(false)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

#[test]
fn a_pod_asks_the_api_server_with_its_token_and_may_what_its_role_says() {
    let namespace = Namespace::make("tokens");
    namespace.apply(
        "
apiVersion: v1
kind: ServiceAccount
metadata: { name: reader }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: reader }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view }
subjects: [{ kind: ServiceAccount, name: reader, namespace: tokens }]
---
apiVersion: v1
kind: Pod
metadata: { name: allowed }
spec:
  serviceAccountName: reader
  restartPolicy: Never
  containers: [{ name: main, image: kubectl, args: [get, pods, '--output=name'] }]
---
apiVersion: v1
kind: Pod
metadata: { name: forbidden }
spec:
  restartPolicy: Never
  containers: [{ name: main, image: kubectl, args: [get, pods] }]
",
    );
    namespace.until("pod", "allowed", "/status/phase", |phase| phase == "Succeeded");
    let log = namespace.kubectl(["logs", "allowed"]);
    assert!(log.contains("pod/allowed"), "{log}");
    namespace.until("pod", "forbidden", "/status/phase", |phase| phase == "Failed");
    let log = namespace.kubectl(["logs", "forbidden"]);
    assert!(log.contains("system:serviceaccount:tokens:default"), "{log}");
}

#[test]
fn a_container_runs_as_the_user_it_asks_for_and_cannot_write_where_it_must_not() {
    let namespace = Namespace::make("secured");
    namespace.apply(
        "
apiVersion: v1
kind: Pod
metadata: { name: plain }
spec:
  securityContext: { runAsUser: 65532, runAsGroup: 65533 }
  restartPolicy: Never
  containers:
  - name: main
    image: shell
    args: ['-c', 'id -u; id -g; hostname; touch /etc/x || echo sealed; touch /data/x && echo open']
    securityContext: { readOnlyRootFilesystem: true }
    volumeMounts: [{ name: data, mountPath: /data }]
  volumes: [{ name: data, emptyDir: {} }]
---
apiVersion: v1
kind: Pod
metadata: { name: sealed }
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: shell
    args: ['-c', 'touch /etc/gatewright-testbed-probe /tmp/x && echo wrote']
---
apiVersion: v1
kind: Pod
metadata: { name: read-only }
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: shell
    args: ['-c', 'for file in /etc/x /tmp/x /run/x /x; do touch $file 2>/dev/null && echo wrote $file; done; echo done']
    securityContext: { readOnlyRootFilesystem: true }
",
    );
    for (pod, expected) in [
        ("plain", "65532\n65533\nplain\nsealed\nopen\n"),
        ("sealed", "wrote\n"),
        ("read-only", "done\n"),
    ] {
        namespace.until("pod", pod, "/status/phase", |phase| phase == "Succeeded");
        let log = namespace.kubectl(["logs", pod]);
        let said: String = log
            .lines()
            .filter(|line| !line.contains("touch:"))
            .map(|line| line.to_owned() + "\n")
            .collect();
        assert_eq!(said, expected, "{pod}");
    }
    assert!(
        !std::path::Path::new("/etc/gatewright-testbed-probe").exists(),
        "a container wrote on the machine"
    );
}
