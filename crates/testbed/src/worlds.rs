//! Declared objects in any number, as a large installation would have them.
//!
//! A world of N routes has one class, one Gateway with one listener, and per route an HTTPRoute, its own Service and its
//! own EndpointSlice with two endpoints, a hundred routes to a namespace. Every object is typed as a source would hand it
//! over. Used by the plan benchmark, its test, and the folders that the proxy is measured with.

mod paths;

use std::net::{Ipv4Addr, SocketAddrV4};

use gatewright_api::{
    EndpointSlice, Gateway, GatewayClass, HttpRoute, Kind, Object, Service, core, discovery, gatewayclasses, gateways,
    httproutes, meta::ObjectMeta,
};

pub use paths::{PathKind, path, paths};

/// The namespace of the Gateway.
pub const INFRA: &str = "infra";
/// The name of the Gateway and of its class.
pub const GATEWAY: &str = "edge";
/// Who runs the class.
pub const CONTROLLER: &str = "gatewright.dev/gateway-controller";

/// How the routes of a world are spread over hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each route has a host of its own.
    OwnHosts,
    /// All routes share one host and differ by path.
    OneHost,
}

impl Layout {
    /// What it means, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::OwnHosts => "each on a host of its own",
            Self::OneHost => "all on one host",
        }
    }
}

/// The class and the Gateway, whose one listener is on this port.
pub fn frame(port: u16) -> Vec<Object> {
    let class = GatewayClass {
        metadata: named("", GATEWAY),
        spec: gatewayclasses::GatewayClassSpec {
            controller_name: CONTROLLER.to_owned(),
            ..Default::default()
        },
        status: None,
    };
    let listener = gateways::GatewayListeners {
        name: "http".to_owned(),
        port: port.into(),
        protocol: "HTTP".to_owned(),
        allowed_routes: Some(gateways::GatewayListenersAllowedRoutes {
            namespaces: Some(gateways::GatewayListenersAllowedRoutesNamespaces {
                from: Some(gateways::GatewayListenersAllowedRoutesNamespacesFrom::All),
                selector: None,
            }),
            kinds: None,
        }),
        ..Default::default()
    };
    let gateway = Gateway {
        metadata: named(INFRA, GATEWAY),
        spec: gateways::GatewaySpec {
            gateway_class_name: GATEWAY.to_owned(),
            listeners: vec![listener],
            ..Default::default()
        },
        status: None,
    };
    vec![
        Object::GatewayClass(Box::new(class)),
        Object::Gateway(Box::new(gateway)),
    ]
}

/// The objects of one application: its Service, its EndpointSlice and its HTTPRoute in the given version.
pub fn application(layout: Layout, index: usize, version: usize) -> [Object; 3] {
    [
        service(&namespace(index), &application_name(index)),
        moved_endpoints(index, version),
        route(layout, index, version),
    ]
}

/// The EndpointSlice of an application, on another port in each version.
pub fn moved_endpoints(index: usize, version: usize) -> Object {
    let byte = |number: usize| u8::try_from(number % 250).unwrap_or_default();
    let (third, fourth) = (byte(index / 250), byte(index));
    let port = 8_080 + u16::try_from(version % 50_000).unwrap_or_default();
    let endpoints = [
        SocketAddrV4::new(Ipv4Addr::new(10, 0, third, fourth), port),
        SocketAddrV4::new(Ipv4Addr::new(10, 1, third, fourth), port),
    ];
    endpoint_slice(&namespace(index), &application_name(index), &endpoints)
}

/// The HTTPRoute of an application. Its versions differ in the path, so that a new one must reach the routing table.
pub fn route(layout: Layout, index: usize, version: usize) -> Object {
    let (host, path) = match layout {
        Layout::OwnHosts => (format!("app-{index}.example.com"), format!("/v{version}")),
        Layout::OneHost => ("shared.example.com".to_owned(), format!("/app-{index}/v{version}")),
    };
    let mut object = http_route(
        &namespace(index),
        &application_name(index),
        &host,
        vec![vec![match_path(PathKind::Prefix, &path)]],
    );
    object.metadata_mut().generation = i64::try_from(version).ok().map(|version| version + 1);
    object
}

/// An HTTPRoute on the Gateway whose rules have these matches and lead to the Service of its own name.
pub fn http_route(
    namespace: &str,
    name: &str,
    host: &str,
    rules: Vec<Vec<httproutes::HttpRouteRulesMatches>>,
) -> Object {
    let rule = |matches| httproutes::HttpRouteRules {
        matches: Some(matches),
        backend_refs: Some(vec![httproutes::HttpRouteRulesBackendRefs {
            name: name.to_owned(),
            port: Some(80),
            ..Default::default()
        }]),
        ..Default::default()
    };
    let route = HttpRoute {
        metadata: named(namespace, name),
        spec: httproutes::HttpRouteSpec {
            hostnames: Some(vec![host.to_owned()]),
            parent_refs: Some(vec![httproutes::HttpRouteParentRefs {
                name: GATEWAY.to_owned(),
                namespace: Some(INFRA.to_owned()),
                ..Default::default()
            }]),
            rules: Some(rules.into_iter().map(rule).collect()),
            ..Default::default()
        },
        status: None,
    };
    Object::HttpRoute(Box::new(route))
}

/// A match of a path.
pub fn match_path(kind: PathKind, path: &str) -> httproutes::HttpRouteRulesMatches {
    httproutes::HttpRouteRulesMatches {
        path: Some(httproutes::HttpRouteRulesMatchesPath {
            r#type: Some(match kind {
                PathKind::Exact => httproutes::HttpRouteRulesMatchesPathType::Exact,
                PathKind::Prefix => httproutes::HttpRouteRulesMatchesPathType::PathPrefix,
            }),
            value: Some(path.to_owned()),
        }),
        ..Default::default()
    }
}

/// A Service with port 80.
pub fn service(namespace: &str, name: &str) -> Object {
    let service = Service {
        metadata: named(namespace, name),
        spec: Some(core::ServiceSpec {
            ports: Some(vec![core::ServicePort {
                port: 80,
                ..Default::default()
            }]),
            ..Default::default()
        }),
        status: None,
    };
    Object::Service(Box::new(service))
}

/// The EndpointSlice of a Service of the same name. All endpoints have the port of the first.
pub fn endpoint_slice(namespace: &str, name: &str, endpoints: &[SocketAddrV4]) -> Object {
    let endpoint = |address: &SocketAddrV4| discovery::Endpoint {
        addresses: vec![address.ip().to_string()],
        conditions: Some(discovery::EndpointConditions {
            ready: Some(true),
            ..Default::default()
        }),
        ..Default::default()
    };
    let mut metadata = named(namespace, name);
    metadata.labels = Some([("kubernetes.io/service-name".to_owned(), name.to_owned())].into());
    let slice = EndpointSlice {
        metadata,
        address_type: "IPv4".to_owned(),
        endpoints: Some(endpoints.iter().map(endpoint).collect()),
        ports: Some(vec![discovery::EndpointPort {
            port: endpoints.first().map(|address| address.port().into()),
            ..Default::default()
        }]),
    };
    Object::EndpointSlice(Box::new(slice))
}

/// Objects as a folder would hold them: one `List` in JSON.
pub fn list(objects: &[Object]) -> anyhow::Result<String> {
    let mut items = Vec::new();
    for object in objects {
        let mut value = object.to_value()?;
        if let Some(fields) = value.as_object_mut() {
            // The core types know their own kind only when they come from a server.
            fields.insert("apiVersion".to_owned(), api_version(object.kind()).into());
            fields.insert("kind".to_owned(), object.kind().as_str().into());
        }
        items.push(value);
    }
    Ok(serde_json::to_string(
        &serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items}),
    )?)
}

fn api_version(kind: Kind) -> String {
    let version = kind.versions().first().copied().unwrap_or("v1");
    match kind.group() {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

fn named(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
        generation: Some(1),
        ..Default::default()
    }
}

fn namespace(index: usize) -> String {
    format!("team-{}", index / 100)
}

fn application_name(index: usize) -> String {
    format!("app-{index}")
}
