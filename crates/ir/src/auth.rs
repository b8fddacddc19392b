//! Somebody else decides whether a request may pass: Gateway API's external authorisation filter.

use serde::Serialize;

use crate::{Target, Text};

/// Who is asked, and how. A filter that cannot be asked refuses every request: it fails closed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExternalAuth {
    /// Who is asked.
    pub target: Target,
    /// How.
    pub protocol: AuthProtocol,
    /// So many bytes of the body are sent along; more is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_body: Option<u32>,
}

/// How the question is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum AuthProtocol {
    /// Envoy's gRPC protocol, `envoy.service.auth.v3.Authorization/Check`.
    Grpc {
        /// Request headers that are sent along, in lower case; nothing: all of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_headers: Option<Box<[Text]>>,
    },
    /// An HTTP request of the same method; 200 lets the request pass.
    Http {
        /// What comes before the path of the request.
        path: Text,
        /// Request headers that are sent along beside those that always are, in lower case.
        request_headers: Box<[Text]>,
        /// Headers of a granting response that are put on the request, in lower case; nothing: all of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        response_headers: Option<Box<[Text]>>,
    },
}
