//! How a process ends: in order after one signal, at once after two.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::Instant,
};

use crate::{
    process::{DEADLINE, Process, free_port, wait_for},
    web::{Backends, Response, get},
    yaml::{FOLDER, folder, gateway, route, service},
};

struct Served {
    _parent: tempfile::TempDir,
    process: Process,
    traffic: SocketAddr,
    backends: Backends,
}

fn serve() -> Served {
    let backends = Backends::start();
    let port = free_port();
    let all = gateway(port) + &service("blue", backends.blue) + &route("all", "blue");
    let parent = folder(&[("all.yaml", &all)]);
    let process = Process::serve(parent.path(), FOLDER);
    Served {
        _parent: parent,
        process,
        traffic: SocketAddr::from(([127, 0, 0, 1], port)),
        backends,
    }
}

/// Begins a request that the backend answers only after a while, and waits until the backend has it.
fn begin(served: &Served, delay: &str) -> TcpStream {
    let mut stream = TcpStream::connect(served.traffic).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    write!(stream, "GET /slow?delay={delay} HTTP/1.1\r\nhost: edge\r\n\r\n").unwrap();
    wait_for("request at the backend", || {
        served.backends.has_seen("/slow").then_some(())
    });
    stream
}

#[test]
fn a_signal_lets_open_requests_end_and_then_ends_the_process() {
    for signal in ["TERM", "INT"] {
        let mut served = serve();
        let probes = served.process.probes();
        let mut stream = begin(&served, "2s");
        served.process.signal(signal);
        wait_for("draining", || {
            let response = get(probes, "/readyz");
            (response.status == 503 && response.body == "draining\n").then_some(())
        });
        assert_eq!(get(probes, "/healthz").status, 200);
        wait_for("closed port", || (get(served.traffic, "/").status == 0).then_some(()));
        assert!(get(probes, "/metrics").body.contains("\ngatewright_ready 0\n"));
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let answer = Response::read(&answer);
        assert_eq!((answer.status, answer.service().as_str()), (200, "blue"), "{answer:?}");
        assert_eq!(served.process.end().code(), Some(0));
    }
}

#[test]
fn a_second_signal_cuts_open_requests_off() {
    let mut served = serve();
    let _stream = begin(&served, "60s");
    served.process.signal("TERM");
    served.process.logged("stopping");
    let asked = Instant::now();
    served.process.signal("TERM");
    assert_eq!(served.process.end().code(), Some(1));
    println!("forced end took {:?}", asked.elapsed());
    served.process.logged("stopped by force");
}

#[test]
fn requests_that_take_too_long_are_cut_off_after_the_drain_timeout() {
    let backends = Backends::start();
    let port = free_port();
    let all = gateway(port) + &service("blue", backends.blue) + &route("all", "blue");
    let parent = folder(&[("all.yaml", &all)]);
    let off = [
        "--admin",
        "off",
        "--metrics-bind-address",
        "off",
        "--health-probe-bind-address",
        "off",
    ];
    let arguments = [
        "run",
        "--files",
        FOLDER,
        "--host-address",
        "127.0.0.1",
        "--drain-timeout",
        "100ms",
        "--log-format",
        "json",
    ];
    let arguments: Vec<&str> = arguments.into_iter().chain(off).collect();
    let process = Process::start(parent.path(), &arguments);
    process.logged("listening");
    let mut served = Served {
        _parent: parent,
        process,
        traffic: SocketAddr::from(([127, 0, 0, 1], port)),
        backends,
    };
    let _stream = begin(&served, "60s");
    served.process.signal("TERM");
    assert_eq!(served.process.end().code(), Some(0));
}

#[test]
fn an_echo_ends_with_its_signal() {
    let mut process = Process::start(
        Path::new("."),
        &["echo", "--bind-address", "127.0.0.1", "--service", "one=0"],
    );
    wait_for("echo", || {
        process.stdout().contains("echo one listens on").then_some(())
    });
    process.signal("TERM");
    assert_eq!(process.end().code(), Some(0));
}
