//! The echo backend of demos, tests and conformance.
//!
//! It answers every request with what it received, so that a test can see what a proxy made of a request on its way.
//! The binary runs it as `gatewright echo`; tests start it in process with [`EchoServer::start`]. It knows nothing of
//! Kubernetes, of the proxy or of any other crate of this workspace, and it prints nothing itself: what the contract
//! wants on stdout goes to the [`LineSink`] of the settings.
//!
//! # Modes
//!
//! One [`EchoSettings`] is one backend in one [`EchoMode`]. Several backends run in one process by starting several,
//! each with its own service name ([`run_all`] does it for the binary); `service` and `pod` in each answer tell
//! which one it was.
//!
//! | Mode | Chosen by | Ports (default) |
//! |---|---|---|
//! | HTTP | nothing else chosen | `HTTP_PORT` (3000): HTTP/1; `H2C_PORT` (3001): HTTP/2 with prior knowledge; `HTTPS_PORT` (8443): HTTP/2 and HTTP/1.1 by ALPN |
//! | gRPC | `GRPC_ECHO_SERVER` | `HTTP_PORT` (3000): HTTP/2 with prior knowledge; `HTTPS_PORT` (8443) |
//! | TCP | `TCP_ECHO_SERVER` | `TCP_PORT` (3000); `TLS_PORT` (8443) |
//! | UDP | `UDP_ECHO_SERVER` | `UDP_PORT` (8080) |
//!
//! The TLS port is open only if a certificate and a key are given: files named by `TLS_SERVER_CERT` and
//! `TLS_SERVER_PRIVKEY` (HTTP) or `TLS_SERVER_PRIV_KEY` (gRPC, TCP). With `TLS_CLIENT_CACERTS` a client certificate is
//! verified if one is shown, and not demanded. `NAMESPACE`, `POD_NAME`, `SERVICE_NAME` and `INGRESS_NAME` are repeated
//! in every answer. `BIND_ADDRESS` (ours; default `0.0.0.0`) says where to listen. Each port writes the line
//! `Listening on <address> (<what>)` once it is open.
//!
//! # HTTP paths
//!
//! `//` is read as `/` when choosing a row; the first row that fits wins. An answer comes after the whole request body
//! has been read, unless the row says otherwise.
//!
//! | Path | Answer |
//! |---|---|
//! | `/bench/NNN` | `NNN` times `x` as `text/plain`, at most 1 MiB; no line, no JSON, body unread: for load generators |
//! | `/health` | `OK` |
//! | `/status/NNN` | that status (200 to 999) with an empty body; anything else below `/status/` is 400 |
//! | `/ws` | WebSocket: every frame comes back; by HTTP/1.1 upgrade or HTTP/2 extended CONNECT |
//! | `/retry/…?uuid=ID&succeedAfter=N` | the first `N` attempts with that ID fail, later ones are echoed. A failure is a TCP reset, or the status `responseCode=`, after `delayRetry=` |
//! | `/stream?chunks=N&bytes=M&interval=DUR` | `N` chunks of `M` bytes, `DUR` apart, without a length; `length=true` announces the length; `cut=true` breaks off after the last chunk |
//! | `/upload` | JSON: `bytes` received, their FNV-1a 64 `hash` in hex, the `trailers` that followed |
//! | `/trailers` | a short body, then the trailers `X-Echo-Trailer` and `X-Echo-Hash` (over HTTP/1.1 only to clients that sent `TE: trailers`) |
//! | `/close` | the echo with `connection: close`; the connection ends (HTTP/2: GOAWAY) |
//! | `/hangup` | the echo without `connection: close`; the connection ends all the same, as a server with a short idle limit does |
//! | `/early` | 200 at once; the body is read and dropped afterwards, or, with `then=close`, never |
//! | anything else | the echo |
//!
//! The echo is 200 with JSON: `path` (request target as received), `host`, `method`, `proto`, `headers`, `httpPort`,
//! `namespace`, `ingress`, `service`, `pod`, and `tls` on TLS connections. Request headers that steer it:
//! `X-Echo-Set-Header: name:value,…` sets response headers, case kept on HTTP/1 (framing headers excepted). The query
//! parameter `delay=DUR` waits before the answer (all rows but the first four). Durations are Go's: `1.5s`, `300ms`.
//! Each echo, and each row from `/stream` on, writes the line
//! `Echoing back request made to <target> to client (<address>)` before it waits.
//!
//! Idle connections are never closed from this side.
//!
//! The `H2C_PORT` answers HTTP/1 requests with 400, except those with `Upgrade: h2c`: they are served as HTTP/1.1,
//! since a server may ignore an upgrade it was offered.
//!
//! # gRPC, TCP, UDP
//!
//! gRPC serves `gateway_api_conformance.echo_basic.grpcecho.GrpcEcho`: `Echo` and `EchoTwo` answer, everything else
//! is UNIMPLEMENTED. There is no server reflection.
//! TCP greets first, then answers lines: `PING`, `IS_TLS`, `TEST`; any other line comes back as it is. UDP answers
//! each datagram of up to 1024 bytes with JSON.

mod backend;
mod base64;
mod body;
mod counters;
mod duration;
mod error;
mod grpc;
mod query;
mod server;
mod settings;
mod shutdown;
mod stream;
mod tcp;
mod tls;
mod udp;
mod web;
mod websocket;

pub use counters::EchoCounters;
pub use error::EchoError;
pub use server::{EchoAddresses, EchoServer, run, run_all};
pub use settings::{EchoMode, EchoSettings, Identity, LineSink};
pub use tls::TlsMaterial;
