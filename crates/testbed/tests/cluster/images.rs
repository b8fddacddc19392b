//! The images that others made: a program of this machine stands for each.

use std::net::SocketAddr;

use crate::world::{Namespace, eventually, http};

#[test]
fn envoy_runs_in_a_pod_from_the_file_that_its_image_reads() {
    let namespace = Namespace::make("envoy");
    namespace.apply(
        "
apiVersion: v1
kind: ConfigMap
metadata: { name: envoy }
data:
  envoy.yaml: |
    static_resources:
      listeners:
      - address: { socket_address: { address: 0.0.0.0, port_value: 10000 } }
        filter_chains:
        - filters:
          - name: http
            typed_config:
              '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
              stat_prefix: test
              http_filters:
              - name: router
                typed_config: { '@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
              route_config:
                virtual_hosts:
                - name: all
                  domains: ['*']
                  routes: [{ match: { prefix: / }, direct_response: { status: 203, body: { inline_string: from Envoy } } }]
---
apiVersion: v1
kind: Pod
metadata: { name: envoy, labels: { app: envoy } }
spec:
  securityContext: { runAsUser: 65532 }
  containers:
  - name: envoy
    image: docker.io/envoyproxy/envoy:v1.40.0
    readinessProbe: { tcpSocket: { port: 10000 }, periodSeconds: 1 }
    volumeMounts: [{ name: configuration, mountPath: /etc/envoy }]
  volumes: [{ name: configuration, configMap: { name: envoy } }]
---
apiVersion: v1
kind: Service
metadata: { name: envoy }
spec: { type: LoadBalancer, selector: { app: envoy }, ports: [{ port: 80, targetPort: 10000 }] }
",
    );
    let address = SocketAddr::new(namespace.address("envoy"), 80);
    let answer = eventually("an answer of Envoy", || match http(address, "/") {
        Ok((203, body)) => Ok(body),
        other => Err(format!("{other:?}: {:?}", namespace.try_kubectl(["logs", "envoy"]))),
    });
    assert!(answer.contains("from Envoy"), "{answer}");
}
