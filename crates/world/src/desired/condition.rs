//! Conditions and their reasons.
//!
//! Reasons are Gateway API's own words wherever it has one. Each has a stable diagnostic code, which `gatewright check`
//! prints and the documentation explains.

use std::borrow::Cow;

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is about.
    pub kind: ConditionKind,
    /// Whether it holds.
    pub state: State,
    /// Why, in one word.
    pub reason: Reason,
    /// Why, in a sentence: what, which object, what to do.
    pub message: Cow<'static, str>,
}

impl Condition {
    /// A condition that holds.
    pub fn holds(kind: ConditionKind, reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            state: State::True,
            reason,
            message: message.into(),
        }
    }

    /// A condition that does not hold.
    pub fn fails(kind: ConditionKind, reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            state: State::False,
            reason,
            message: message.into(),
        }
    }

    /// Whether this tells of something an operator should mend.
    pub fn is_problem(&self) -> bool {
        let is_good = match self.kind {
            ConditionKind::Conflicted | ConditionKind::PartiallyInvalid => State::False,
            ConditionKind::Accepted
            | ConditionKind::Programmed
            | ConditionKind::ResolvedRefs
            | ConditionKind::SupportedVersion => State::True,
            // Worth knowing, and nothing to mend: requests are told apart all the same.
            ConditionKind::OverlappingTlsConfig
            | ConditionKind::DefaultGateway
            | ConditionKind::InsecureFrontendValidationMode => return false,
        };
        self.state != is_good || self.reason == Reason::ListenersNotValid
    }
}

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConditionKind {
    /// The object is valid and taken on.
    Accepted,
    /// A data plane does what it says.
    Programmed,
    /// Everything it refers to exists and may be referred to.
    ResolvedRefs,
    /// A listener clashes with another.
    Conflicted,
    /// Some rules of a route are left out.
    PartiallyInvalid,
    /// Another TLS listener on the port answers for some of the same names. Stands only where it holds.
    OverlappingTlsConfig,
    /// A Gateway takes routes that ask for default Gateways. Stands only where it holds.
    DefaultGateway,
    /// A Gateway lets clients in that show no valid certificate where one is asked for. Stands only where it holds.
    InsecureFrontendValidationMode,
    /// The definitions of Gateway API in the cluster are of versions that are known here.
    SupportedVersion,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It holds.
    True,
    /// It does not.
    False,
}

impl ConditionKind {
    /// Every type of condition that we write. Others in the same list are somebody else's.
    pub const ALL: &'static [Self] = &[
        Self::Accepted,
        Self::Programmed,
        Self::ResolvedRefs,
        Self::Conflicted,
        Self::PartiallyInvalid,
        Self::OverlappingTlsConfig,
        Self::DefaultGateway,
        Self::InsecureFrontendValidationMode,
        Self::SupportedVersion,
    ];

    /// The type as it stands in Kubernetes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Programmed => "Programmed",
            Self::ResolvedRefs => "ResolvedRefs",
            Self::Conflicted => "Conflicted",
            Self::PartiallyInvalid => "PartiallyInvalid",
            Self::OverlappingTlsConfig => "OverlappingTLSConfig",
            Self::DefaultGateway => "DefaultGateway",
            Self::InsecureFrontendValidationMode => "InsecureFrontendValidationMode",
            Self::SupportedVersion => "SupportedVersion",
        }
    }
}

impl State {
    /// The status as it stands in Kubernetes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
        }
    }
}

macro_rules! reasons {
    ($($variant:ident = $code:literal, $title:literal;)+) => {
        /// Why a condition is as it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason { $(#[doc = $title] $variant,)+ }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Reason] = &[$(Self::$variant,)+];

            /// The reason as it stands in Kubernetes.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)+ }
            }

            /// The stable diagnostic code.
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// What it means, in a sentence.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }
        }
    };
}

reasons! {
    Accepted = "GW2000", "The object is valid and taken on.";
    Programmed = "GW2001", "A data plane has taken the configuration over.";
    ResolvedRefs = "GW2002", "Every reference leads to an object that may be used.";
    NoConflicts = "GW2003", "The listener clashes with no other.";
    Pending = "GW2004", "No data plane has taken the configuration over yet.";
    Invalid = "GW2005", "The object is not served, because something it depends on is not valid.";
    DefaultScope = "GW2006", "The Gateway takes routes that ask for default Gateways.";
    ConfigurationChanged = "GW2007", "A setting of the Gateway weakens what protects it; it is in force as declared.";
    SupportedVersion = "GW2008", "The definitions of Gateway API in the cluster are of versions that are supported.";
    InvalidParameters = "GW2010", "The GatewayConfig that is named does not exist or cannot be honoured.";
    ListenersNotValid = "GW2011", "At least one listener is not valid; its own conditions say why.";
    UnsupportedAddress = "GW2012", "An address of a type that cannot be had was asked for.";
    AddressNotUsable = "GW2013", "The address cannot be had: it is not of this host, or taken, or its load balancer does not give it.";
    AddressNotAssigned = "GW2014", "No address is left on which the ports of the Gateway are free, or its Service has none yet.";
    NoResources = "GW2015", "What the Gateway needs to be reached could not be made or opened.";
    UnsupportedVersion = "GW2016", "A definition of Gateway API in the cluster is of a version that is not supported; it is served as well as can be.";
    HostnameConflict = "GW2020", "Two listeners have the same port, protocol and hostname.";
    ProtocolConflict = "GW2021", "Two listeners on one port speak different protocols.";
    PortUnavailable = "GW2022", "The port is taken by an older Gateway or another program.";
    UnsupportedProtocol = "GW2023", "The protocol of the listener or backend is not supported.";
    InvalidRouteKinds = "GW2024", "allowedRoutes names kinds that cannot attach to this listener.";
    InvalidCertificateRef = "GW2025", "A certificate does not exist or cannot be used.";
    OverlappingHostnames = "GW2026", "Another TLS listener on the port answers for some of the same names.";
    NoValidCACertificate = "GW2027", "No certificate of an authority can be had, so nobody can be known.";
    InvalidCACertificateRef = "GW2028", "A ConfigMap with certificates of authorities does not exist or cannot be used.";
    InvalidCACertificateKind = "GW2029", "Certificates of authorities are asked from an object that is no ConfigMap.";
    RefNotPermitted = "GW2030", "A reference leads into another namespace without a ReferenceGrant there.";
    InvalidKind = "GW2031", "A reference names a kind that cannot stand there.";
    BackendNotFound = "GW2032", "A backend does not exist.";
    UnsupportedValue = "GW2033", "A field has a value that is not supported; what it stands in is not served.";
    Conflicted = "GW2034", "An older policy is for the same backend.";
    InvalidClientCertificateRef = "GW2035", "The certificate for backends does not exist or cannot be used.";
    NotAllowed = "GW2036", "The Gateway does not let this ListenerSet add listeners.";
    ParentNotAccepted = "GW2037", "The Gateway that a ListenerSet adds to is not accepted itself.";
    NotAllowedByListeners = "GW2040", "No listener of the parent lets this route attach.";
    NoMatchingListenerHostname = "GW2041", "No listener of the parent answers for a hostname of this route.";
    NoMatchingParent = "GW2042", "The parent has no listener of that name or port.";
}
