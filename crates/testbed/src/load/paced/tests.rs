use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use super::{Plan, run};
use crate::load::head;

/// Serves every connection with a thread; each pauses once, at its fifth request.
fn serve(pause: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = move |mut stream: TcpStream| {
        let mut buffer = [0; 1024];
        let mut answered = 0;
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
            answered += 1;
            if answered == 5 {
                thread::sleep(pause);
            }
            if stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .is_err()
            {
                break;
            }
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    address
}

fn plan(address: SocketAddr) -> Plan {
    let SocketAddr::V4(address) = address else {
        panic!("not IPv4")
    };
    Plan {
        address,
        host: "bench.example.com".to_owned(),
        path: "/".to_owned(),
        rate: 640.0,
        time: Duration::from_millis(1_500),
    }
}

#[test]
fn requests_held_up_by_a_slow_answer_count_as_slow_and_none_is_left_out() {
    let latencies = run(&plan(serve(Duration::from_millis(400)))).unwrap();
    // A second is counted. Of about ten requests per connection, about four were due while one was waited for.
    assert!((480..=800).contains(&latencies.requests), "{latencies:?}");
    assert!(latencies.p99 > 200_000.0, "{latencies:?}");
}

#[test]
fn answers_other_than_200_are_no_measurement() {
    assert!(head(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").is_err());
    assert!(
        head(b"HTTP/1.1 200 OK\r\n\r\n").is_err(),
        "a length is needed to find the next answer"
    );
}

#[test]
fn an_answer_is_as_long_as_its_head_and_its_declared_length() {
    let text = b"HTTP/1.1 200 OK\r\nContent-LENGTH: 12\r\n\r\n";
    assert_eq!(head(text).unwrap(), Some((text.len(), 12)));
    assert_eq!(head(b"HTTP/1.1 200 OK\r\nContent-").unwrap(), None);
}
