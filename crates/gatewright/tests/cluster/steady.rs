//! A client that asks all the time, and remembers what went wrong.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{
    bed::{eventually, holds},
    web,
};

/// The pause between two requests.
const PACE: Duration = Duration::from_millis(4);

/// So many requests at least.
const FEWEST: usize = 50;

/// How it uses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// One for each request.
    Fresh,
    /// One as long as it lasts. As HTTP has it, a request on a kept connection that is closed without one byte of an answer
    /// is sent again, once, on another.
    Kept,
}

/// The client, at work.
pub(crate) struct Steady {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<String>>,
}

/// What it met.
pub(crate) struct Tally {
    pub(crate) asked: usize,
    pub(crate) failures: Vec<String>,
}

impl Tally {
    /// Fails if a request did.
    pub(crate) fn assert_sound(&self, what: &str) {
        assert!(
            self.failures.is_empty(),
            "{what}: {} of {} requests failed: {:#?}",
            self.failures.len(),
            self.asked,
            self.failures
        );
        println!("{what}: {} requests, none failed", self.asked);
    }
}

impl Steady {
    pub(crate) fn start(address: SocketAddr, style: Style) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(AtomicUsize::new(0));
        let (is_over, count) = (Arc::clone(&stop), Arc::clone(&asked));
        let thread = thread::spawn(move || {
            let began = Instant::now();
            let mut connection = None;
            let mut failures = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let answer = match style {
                    Style::Fresh => web::get(address, "/").map(|response| response.status),
                    Style::Kept => ask_kept(&mut connection, address).map_err(|error| error.to_string()),
                };
                if answer != Ok(200) {
                    failures.push(format!("{style:?} after {:?}: {answer:?}", began.elapsed()));
                    connection = None;
                }
                count.fetch_add(1, Ordering::Relaxed);
                thread::sleep(PACE);
            }
            failures
        });
        Self { stop, asked, thread }
    }

    /// How many requests were answered or lost so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Stops, after so many requests at least that they say something.
    pub(crate) fn stop(self) -> Tally {
        eventually("some requests", || holds(self.asked() > FEWEST, self.asked()));
        self.stop.store(true, Ordering::Relaxed);
        let failures = self.thread.join().unwrap();
        Tally {
            asked: self.asked.load(Ordering::Relaxed),
            failures,
        }
    }
}

type Connection = BufReader<TcpStream>;

fn ask_kept(kept: &mut Option<Connection>, address: SocketAddr) -> io::Result<u16> {
    if let Some(mut connection) = kept.take()
        && let Some(answer) = ask_once(&mut connection, address)?
    {
        if answer.1 {
            *kept = Some(connection);
        }
        return Ok(answer.0);
    }
    let mut connection = BufReader::new(web::connect(address)?);
    let answer = ask_once(&mut connection, address)?;
    let (status, is_kept) = answer.ok_or_else(|| io::Error::other("closed without an answer"))?;
    if is_kept {
        *kept = Some(connection);
    }
    Ok(status)
}

/// The status, and whether the connection may be used again; none if it was closed without one byte of an answer.
fn ask_once(connection: &mut Connection, address: SocketAddr) -> io::Result<Option<(u16, bool)>> {
    let request = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", address.ip());
    let mut line = String::new();
    let begun = connection.get_mut().write_all(request.as_bytes());
    match begun.and_then(|()| connection.read_line(&mut line)) {
        Ok(0) => return Ok(None),
        Err(error) if line.is_empty() && is_closed(&error) => return Ok(None),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let (mut length, mut is_kept) = (0, true);
    loop {
        let mut header = String::new();
        connection.read_line(&mut header)?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().map_err(io::Error::other)?;
        }
        is_kept &= header != "connection: close";
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    let status = status.ok_or_else(|| io::Error::other(format!("no status in {line:?}")))?;
    Ok(Some((status, is_kept)))
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
    )
}
