//! Asks the admin API over one plain HTTP/1.1 connection.

use std::fmt::Write as _;
use std::{io, net::SocketAddr, time::Duration};

use http::{Request, StatusCode, header::HOST};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

use crate::{
    admin::document::{Document, Selection},
    failure::Failure,
    run::control_runtime,
};

/// A gatewright that serves answers at once; one that does not within this time hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fetches the status document.
pub(super) fn fetch(admin: SocketAddr, selection: &Selection) -> Result<Document, Failure> {
    let answer = control_runtime()?.block_on(async {
        match timeout(PATIENCE, ask(admin, selection)).await {
            Ok(answer) => answer,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into()),
        }
    });
    let unreachable = |error: anyhow::Error| {
        Failure::new(format!("cannot reach a running gatewright at {admin}: {error}"))
            .hint("start one with `gatewright run --files DIR`, or name its address with `--admin ADDRESS`")
    };
    let (status, body) = answer.map_err(unreachable)?;
    let foreign = |what: String| {
        Failure::new(format!(
            "{admin} is not the admin address of this version of gatewright: {what}"
        ))
        .hint("name the admin address with `--admin ADDRESS`; `gatewright run` logs it when it starts")
    };
    if status != StatusCode::OK {
        return Err(foreign(format!("it answered {status}")));
    }
    serde_json::from_slice(&body).map_err(|error| foreign(error.to_string()))
}

async fn ask(admin: SocketAddr, selection: &Selection) -> anyhow::Result<(StatusCode, Bytes)> {
    let stream = TcpStream::connect(admin).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let request = Request::get(path(selection))
        .header(HOST, admin.to_string())
        .body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    driver.abort();
    Ok((status, body))
}

fn path(selection: &Selection) -> String {
    let Selection { kind, name, namespace } = selection;
    let mut path = "/status".to_owned();
    for (key, value) in [("kind", kind), ("name", name), ("namespace", namespace)] {
        if let Some(value) = value {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(key);
            path.push('=');
            for byte in value.bytes() {
                if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
                    path.push(char::from(byte));
                } else {
                    let _ = write!(path, "%{byte:02X}");
                }
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::{Selection, path};

    #[test]
    fn what_is_asked_for_cannot_leave_its_parameter() {
        let selection = Selection {
            kind: Some("Gateway".to_owned()),
            name: Some("a&b=c d".to_owned()),
            namespace: None,
        };
        assert_eq!(path(&selection), "/status?kind=Gateway&name=a%26b%3Dc%20d");
        assert_eq!(path(&Selection::default()), "/status");
    }
}
