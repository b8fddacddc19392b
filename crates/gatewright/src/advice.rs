//! What `check` and `status` point out beyond validation and conditions, each with a stable code of its own.
//!
//! Kubernetes has no condition for these: nobody is responsible for a Gateway of a class that does not exist, or for a
//! route whose parent does not, and a status that cannot be written cannot say so itself.

use crate::finding::{Finding, Severity};

macro_rules! advice {
    ($($variant:ident = $code:literal, $severity:ident, $title:literal, $remedy:literal;)+) => {
        /// The kinds of advice.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Advice { $($variant,)+ }

        impl Advice {
            /// Every kind, in the order of its code.
            pub(crate) const ALL: &'static [Advice] = &[$(Self::$variant,)+];

            pub(crate) fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            pub(crate) fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)+ }
            }

            /// What it means, in a sentence.
            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// What to do.
            pub(crate) fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)+ }
            }
        }
    };
}

advice! {
    ParentNotFound = "GW3001", Error, "A route or ListenerSet names a parent that does not exist.",
        "declare the Gateway, or correct name and namespace in parentRefs";
    ClassNotFound = "GW3002", Error, "A Gateway names a GatewayClass that does not exist.",
        "declare the GatewayClass, or correct gatewayClassName";
    ForeignClass = "GW3003", Warning, "A GatewayClass is for another controller, so its Gateways are not served.",
        "set controllerName of the GatewayClass, or start with --controller-name";
    NoEndpoints = "GW3004", Warning, "A Service that routes use has no ready endpoint; requests to it are answered with 503, connections to it are closed.",
        "declare an EndpointSlice with the label kubernetes.io/service-name";
    NoParent = "GW3005", Warning, "A route names no parent, or a ListenerSet no Gateway, so it attaches to nothing.",
        "name a Gateway in parentRefs";
    NothingToServe = "GW3006", Warning, "No Gateway is declared, so nothing listens.",
        "declare a GatewayClass and a Gateway; examples/quickstart has both";
    KindMissing = "GW3007", Warning, "The cluster does not know a kind, so there are no objects of it.",
        "install its definition if you want to use it: those of Gateway API, and ours with `gatewright crds | kubectl apply -f -`";
    KindForbidden = "GW3008", Error, "A kind may not be listed and watched; what is not known of it counts as empty.",
        "grant the rights of deploy/manifests/install.yaml, or limit what is read with --watch-namespaces";
    ServerAway = "GW3009", Error, "The API server does not answer; traffic goes on with the last plan.",
        "see whether the API server is up, and whether its address can be reached from here";
    CannotWrite = "GW3010", Error, "A status or an object of ours cannot be written; it is tried again.",
        "the message is the API server's: grant the right, or see to the webhook or quota that refuses";
}

impl Advice {
    pub(crate) fn finding(self, message: impl Into<String>) -> Finding {
        Finding {
            code: self.code().to_owned(),
            severity: self.severity(),
            object: None,
            part: None,
            message: message.into(),
            hint: Some(self.remedy().to_owned()),
            place: None,
            uses_last_good: false,
        }
    }
}
