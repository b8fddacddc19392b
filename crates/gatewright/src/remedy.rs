//! What to do about each code: the hint below a finding, and the text of `docs/codes.md`.
//!
//! One match per enum, without a catch-all, so that a new code cannot be published without its remedy.

use gatewright_api::validate::Code;
use gatewright_world::desired::Reason;

/// What to do about a problem of an object or its file.
pub(crate) fn of_code(code: Code) -> &'static str {
    match code {
        Code::UnknownField => "correct the spelling or remove the field; it has no effect as it stands",
        Code::MissingField => "write the field",
        Code::WrongType => "write a value of the type that the message names",
        Code::NotAllowed => "use one of the values that the message lists",
        Code::BadFormat => "write the value in the format that the message describes",
        Code::OutOfRange => "use a number within the range that the message names",
        Code::WrongCount => "add or remove items until there are as many as the message says",
        Code::Duplicate => "remove one of the two items, or give it another name",
        Code::RuleBroken => "change one of the fields that the message names",
        Code::BadName => "use lower-case letters, digits and hyphens as the message says",
        Code::WrongLength => "shorten or lengthen the text as the message says",
        Code::NoEffect => "remove the field, or use the one that the message names",
        Code::Syntax => "check the indentation, quotes and brackets of the line shown and of the one before",
        Code::Unreadable => "check that the file or folder exists and may be read",
        Code::DuplicateObject => "remove one of the two declarations; until then the first path wins",
        Code::UnknownVersion => "write the object in a version that the message lists",
        Code::NotAnObject => "write apiVersion, kind and metadata, or move the file out of the folder",
    }
}

/// What to do about a condition.
pub(crate) fn of_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Accepted
        | Reason::Programmed
        | Reason::ResolvedRefs
        | Reason::NoConflicts
        | Reason::DefaultScope
        | Reason::SupportedVersion => "nothing: all is well",
        Reason::UnsupportedVersion => "install definitions of Gateway API of a version that the message names",
        Reason::ConfigurationChanged => "use mode AllowValidOnly as soon as every client has a certificate",
        Reason::NoValidCACertificate => "mend what ResolvedRefs names; until then nobody gets through",
        Reason::InvalidCACertificateRef => "declare a ConfigMap with certificates in PEM under ca.crt",
        Reason::InvalidCACertificateKind => "put the certificates into a ConfigMap and refer to that",
        Reason::NotAllowed => "widen allowedListeners of the Gateway",
        Reason::ParentNotAccepted => "mend what the conditions of the Gateway name",
        Reason::Pending => "wait a moment; if it stays, look into the log",
        Reason::Invalid => "mend what the other conditions of the object name",
        Reason::InvalidParameters => {
            "declare the GatewayConfig that parametersRef names, with settings that can be honoured"
        }
        Reason::ListenersNotValid => "mend what the conditions of the listeners name",
        Reason::UnsupportedAddress => "ask for an address of type IPAddress, or for none",
        Reason::AddressNotUsable => {
            "ask for an address that is free, of this host or of the cluster's load balancer, or for none"
        }
        Reason::AddressNotAssigned => {
            "add an address to host.addresses of the GatewayConfig, or give the listener another port; in a cluster, look at the events of the Service"
        }
        Reason::NoResources => "free what the message names; if it is a port of a replica, look into its log",
        Reason::OverlappingHostnames => "nothing: requests are told apart all the same",
        Reason::Conflicted => "remove one of the two policies",
        Reason::HostnameConflict => "give one of the listeners another hostname or port",
        Reason::ProtocolConflict => "give one of the listeners another port",
        Reason::PortUnavailable => "free the port, or give the listener another one",
        Reason::UnsupportedProtocol => {
            "use HTTP, HTTPS, TLS, TCP or UDP on listeners; http, https, kubernetes.io/h2c, ws or wss as appProtocol of Services"
        }
        Reason::InvalidRouteKinds => "name only kinds that the message lists in allowedRoutes.kinds, or leave it out",
        Reason::InvalidCertificateRef | Reason::InvalidClientCertificateRef => {
            "declare a Secret of type kubernetes.io/tls with a tls.crt and a tls.key that fit together"
        }
        Reason::RefNotPermitted => "declare a ReferenceGrant in the namespace that is referred to",
        Reason::InvalidKind => "refer to a kind that can stand there: a Service as backend, a Secret as certificate",
        Reason::BackendNotFound => "declare the Service, or correct its name, namespace and port",
        Reason::UnsupportedValue => "remove the field, or give it a value that is supported",
        Reason::NotAllowedByListeners => "widen allowedRoutes of a listener, or attach to another one",
        Reason::NoMatchingListenerHostname => "let the hostnames of route and listener intersect",
        Reason::NoMatchingParent => "correct sectionName or port in parentRefs",
    }
}
