//! What went wrong with a request, in words for people and for counters.

use std::{error::Error as _, fmt::Write as _, future::Future, time::Duration};

use ::kube::Error;

/// The status code of an answer, if there was one.
pub(crate) fn code(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// One word for a counter: the server's reason, or what kept it from answering.
pub(crate) fn reason(error: &Error) -> String {
    match error {
        Error::Api(status) if !status.reason.is_empty() && !status.reason.contains(' ') => status.reason.clone(),
        Error::Api(status) => format!("Status{}", status.code),
        Error::Service(source) if source.is::<Late>() => "Timeout".to_owned(),
        Error::SerdeError(_) => "Unreadable".to_owned(),
        _ => "Unreachable".to_owned(),
    }
}

/// A sentence: what the server said, or the innermost cause of a connection that failed.
pub(crate) fn message(error: &Error) -> String {
    if let Error::Api(status) = error {
        return status.message.clone();
    }
    let mut text = String::new();
    let mut cause = error.source();
    if cause.is_none() {
        text = error.to_string();
    }
    while let Some(error) = cause {
        let said = error.to_string();
        // Wrappers repeat what they wrap.
        if !text.contains(&said) {
            let _ = write!(text, "{}{said}", if text.is_empty() { "" } else { ": " });
        }
        cause = error.source();
    }
    text
}

/// Whether the server, and not this request, is the trouble: everything should wait, not only this object.
pub(crate) fn is_of_the_server(error: &Error) -> bool {
    match error {
        Error::Api(status) => status.code == 429 || (status.code >= 500 && status.reason != "InternalError"),
        Error::SerdeError(_) | Error::BuildRequest(_) => false,
        _ => true,
    }
}

/// How long the server asked us to wait.
pub(crate) fn retry_after(error: &Error) -> Option<Duration> {
    let Error::Api(status) = error else { return None };
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
}

/// An answer that came too late.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
pub(crate) struct Late(Duration);

/// Gives up after so long.
pub(crate) async fn within<T>(limit: Duration, request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match tokio::time::timeout(limit, request).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::Service(Box::new(Late(limit)))),
    }
}
