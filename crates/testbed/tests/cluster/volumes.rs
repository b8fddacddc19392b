//! What containers are given: variables, and files that change while they run.

use crate::world::Namespace;

#[test]
fn variables_come_from_everywhere_and_refer_to_each_other() {
    let namespace = Namespace::make("variables");
    namespace.apply(
        "
apiVersion: v1
kind: Pod
metadata: { name: print, labels: { tier: front } }
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: shell
    args: ['-c', 'echo $(GREETING); echo $PLAIN $FROM_SECRET $FROM_MAP $ALL_one $LABEL $NODE; test -n \"$IP\" && echo \"[$SET]\"']
    envFrom: [{ prefix: ALL_, configMapRef: { name: late } }]
    env:
    - { name: PLAIN, value: plain }
    - { name: GREETING, value: 'hello $(PLAIN)' }
    - { name: FROM_SECRET, valueFrom: { secretKeyRef: { name: late, key: password } } }
    - { name: FROM_MAP, valueFrom: { configMapKeyRef: { name: late, key: one } } }
    - { name: SET, valueFrom: { configMapKeyRef: { name: late, key: nothing, optional: true } } }
    - { name: LABEL, valueFrom: { fieldRef: { fieldPath: \"metadata.labels['tier']\" } } }
    - { name: NODE, valueFrom: { fieldRef: { fieldPath: spec.nodeName } } }
    - { name: IP, valueFrom: { fieldRef: { fieldPath: status.podIP } } }
",
    );
    // What it refers to comes after it, as it may in a cluster.
    let place = "/status/containerStatuses/0/state/waiting/reason";
    namespace.until("pod", "print", place, |reason| reason == "CreateContainerConfigError");
    namespace.kubectl(["create", "configmap", "late", "--from-literal=one=1"]);
    namespace.kubectl(["create", "secret", "generic", "late", "--from-literal=password=secret"]);
    namespace.until("pod", "print", "/status/phase", |phase| phase == "Succeeded");
    assert_eq!(
        namespace.kubectl(["logs", "print"]),
        "hello plain\nplain secret 1 1 front testbed\n[]\n"
    );
}

#[test]
fn files_of_a_volume_are_where_the_pod_wants_them_and_change_while_it_runs() {
    let namespace = Namespace::make("files");
    namespace.apply(
        "
apiVersion: v1
kind: Pod
metadata: { name: reader }
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: shell
    args: ['-c', 'while :; do echo $(cat /etc/secret-volume/crt) $(cat /srv/deep/maps/one) $(cat /srv/single); sleep 0.2; done']
    volumeMounts:
    - { name: secret, mountPath: /etc/secret-volume, readOnly: true }
    - { name: map, mountPath: /srv/deep/maps }
    - { name: map, mountPath: /srv/single, subPath: two }
  volumes:
  - { name: secret, secret: { secretName: late, items: [{ key: tls.crt, path: crt }] } }
  - { name: map, configMap: { name: late } }
",
    );
    let events = [
        "get",
        "events",
        "--field-selector=reason=FailedMount",
        "--output=jsonpath={.items[*].message}",
    ];
    crate::world::eventually("a word about the missing Secret", || {
        let events = namespace.kubectl(events);
        if events.contains("late") { Ok(()) } else { Err(events) }
    });
    namespace.kubectl([
        "create",
        "configmap",
        "late",
        "--from-literal=one=a",
        "--from-literal=two=b",
    ]);
    namespace.kubectl(["create", "secret", "generic", "late", "--from-literal=tls.crt=old"]);
    namespace.until_log("reader", "old a b\n");
    namespace.kubectl([
        "patch",
        "secret",
        "late",
        "--patch",
        "{\"stringData\":{\"tls.crt\":\"new\"}}",
    ]);
    namespace.kubectl([
        "patch",
        "configmap",
        "late",
        "--patch",
        "{\"data\":{\"one\":\"A\",\"two\":\"B\"}}",
    ]);
    // A single file that is mounted does not change, in a cluster as here.
    namespace.until_log("reader", "new A b\n");
}
