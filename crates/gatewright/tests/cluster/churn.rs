//! Backends that come and go under load: rolling ten replicas costs no request.
//!
//! The client sends as many requests a second as a busy service gets, on connections that it keeps, and takes nothing lightly: an
//! answer that is not 200, and a connection that is closed without having been announced, is a failure. Nothing asks for
//! retries: what is tried again here, every request may rely on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    bed::{eventually, holds, shared},
    install::name,
    namespace::{CLASS, Namespace, backend, documents, until_status},
    web,
};

const REPLICAS: usize = 10;
/// Requests per second that are sent if the machine can.
const RATE: u32 = 2_000;
/// With fewer it is too slow, or too busy, to say anything about churn under load.
const LEAST_RATE: f64 = 1_000.0;
const CONNECTIONS: u32 = 40;
/// How often it is tried to reach that rate. No roll may cost a request, however slow the machine.
const MOST_ROLLS: usize = 3;
/// A client that was held up sends later what it could not, but no more than it would have in this time.
const LONGEST_DEBT: Duration = Duration::from_secs(1);
/// How long a replica goes on serving after it was told to leave, as charts of many services have it.
const LINGER: u64 = 10;
/// By when a replica that leaves must have got its last request. Much less than it lingers, and much more than it takes.
const FAREWELL: Duration = Duration::from_secs(4);

/// Two of these at once would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn ten_replicas_that_linger_are_rolled_without_a_failure_and_get_nothing_while_they_leave() {
    let rolled = roll("churn-lingering", Some(LINGER));
    assert_eq!(rolled.leaving.len(), REPLICAS, "{:?}", rolled.leaving.keys());
    let late: Vec<String> = rolled
        .farewells()
        .filter(|(_, late)| *late > FAREWELL)
        .map(|(pod, late)| format!("{pod} got a request {late:?} after it was told to leave"))
        .collect();
    assert!(late.is_empty(), "{late:#?}");
}

/// Replicas that close their door in the very moment in which they are told to leave, before anybody can know. They finish what
/// they have begun, as every server should.
#[test]
fn ten_replicas_that_leave_at_once_are_rolled_without_a_failure() {
    roll("churn-hasty", None);
}

/// What was seen of a rolling restart.
struct Rolled {
    asked: usize,
    time: Duration,
    failures: Vec<String>,
    /// The replicas before and after.
    replicas: [BTreeSet<String>; 2],
    /// When each of the old replicas was seen to be leaving.
    leaving: BTreeMap<String, Instant>,
    /// When each replica answered last.
    answered: BTreeMap<String, Instant>,
}

impl Rolled {
    /// Requests per second.
    fn rate(&self) -> f64 {
        f64::from(u32::try_from(self.asked).unwrap()) / self.time.as_secs_f64()
    }

    /// How long each of the old replicas went on getting requests.
    fn farewells(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.leaving.iter().map(|(pod, since)| {
            let last = self.answered.get(pod).copied().unwrap_or(*since);
            (pod.as_str(), last.saturating_duration_since(*since))
        })
    }

    /// Fails if a request did, or if a replica was left out.
    fn assert_sound(&self, what: &str) {
        let longest = self.farewells().map(|(_, late)| late).max().unwrap_or_default();
        println!(
            "{what}: {} requests in {:.1} s of rolling, {:.0} each second, {} failed; \
             the last one of a leaving replica came {longest:?} after that was seen to leave",
            self.asked,
            self.time.as_secs_f64(),
            self.rate(),
            self.failures.len()
        );
        let first: Vec<&String> = self.failures.iter().take(20).collect();
        assert!(
            first.is_empty(),
            "{what}: {} failed, for example {first:#?}",
            self.failures.len()
        );
        let [old, new] = &self.replicas;
        assert!(old.is_disjoint(new), "{old:?} {new:?}");
        let unasked: Vec<&String> = old.union(new).filter(|pod| !self.answered.contains_key(*pod)).collect();
        assert!(unasked.is_empty(), "{what}: these got no request: {unasked:?}");
    }
}

/// Rolls ten replicas under load, which none of the requests may feel. On a machine that was too busy to send enough of them,
/// once more.
fn roll(place: &str, linger: Option<u64>) -> Rolled {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let namespace = Namespace::make(shared(), place);
    namespace.gateway("door", CLASS);
    namespace.route("all", "door", "echo");
    let objects = documents(&backend("echo")).into_iter();
    let objects: Vec<String> = objects.map(|object| rolling(object, linger).to_string()).collect();
    namespace.apply(&objects.join("\n---\n"));
    until_settled(&namespace, |_| {});
    let address = SocketAddr::new(namespace.programmed("door"), 80);
    until_status(address, "/", 200);
    let mut rolls = (0..MOST_ROLLS).map(|_| {
        let rolled = roll_once(&namespace, address);
        rolled.assert_sound(place);
        rolled
    });
    let rolled = rolls.find(|rolled| rolled.rate() >= LEAST_RATE);
    // Others need the processor.
    namespace.delete("deployment", "echo");
    rolled.unwrap_or_else(|| panic!("{place}: never {LEAST_RATE} requests each second"))
}

fn roll_once(namespace: &Namespace<'_>, address: SocketAddr) -> Rolled {
    let old = until_settled(namespace, |_| {});
    let load = Load::default();
    thread::scope(|scope| {
        let _end = load.ends();
        let clients: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(|| load.run(address))).collect();
        load.until_more(2);
        let (began, before) = (Instant::now(), load.asked());
        let restart = ["rollout", "restart", "deployment/echo", "--namespace", &namespace.name];
        namespace.bed.kubectl(&restart).unwrap();
        let mut leaving = BTreeMap::new();
        let new = until_settled(namespace, |pod| {
            if !pod["metadata"]["deletionTimestamp"].is_null() {
                leaving.entry(name(pod)).or_insert_with(Instant::now);
            }
        });
        load.until_more(1);
        let (asked, time) = (load.asked() - before, began.elapsed());
        load.stop();
        let (mut failures, mut answered) = (Vec::new(), BTreeMap::new());
        for client in clients {
            let seen = client.join().unwrap();
            failures.extend(seen.failures);
            for (pod, at) in seen.answered {
                let last = answered.entry(pod).or_insert(at);
                *last = at.max(*last);
            }
        }
        Rolled {
            asked,
            time,
            failures,
            replicas: [old, new],
            leaving,
            answered,
        }
    })
}

/// A backend of ten replicas that says nothing about each request.
fn rolling(mut object: Value, linger: Option<u64>) -> Value {
    if object["kind"] == "Deployment" {
        object["spec"]["replicas"] = json!(REPLICAS);
        let pod = &mut object["spec"]["template"]["spec"];
        pod["containers"][0]["args"] = json!(["--quiet"]);
        if let Some(seconds) = linger {
            pod["containers"][0]["lifecycle"] = json!({ "preStop": { "sleep": { "seconds": seconds } } });
        }
    }
    object
}

/// Waits until all replicas are of one generation and ready, and no others are left. Returns their names; shows each pod that
/// was seen meanwhile.
fn until_settled(namespace: &Namespace<'_>, mut see: impl FnMut(&Value)) -> BTreeSet<String> {
    eventually("ten replicas and no others", || {
        let deployment = namespace.get("deployment", "echo").map_err(|error| error.message)?;
        let pods = namespace.list("pod");
        pods.iter().for_each(&mut see);
        let status = &deployment["status"];
        let has_all = |count: &str| status[count].as_u64() == u64::try_from(REPLICAS).ok();
        let is_settled = status["observedGeneration"] == deployment["metadata"]["generation"]
            && ["replicas", "updatedReplicas", "readyReplicas"]
                .into_iter()
                .all(has_all)
            && pods.len() == REPLICAS;
        holds(is_settled, format!("{} pods, {status}", pods.len())).map(|()| pods.iter().map(name).collect())
    })
}

/// A load that many connections share.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    asked: AtomicUsize,
}

/// What one connection saw.
#[derive(Default)]
struct Seen {
    failures: Vec<String>,
    /// When each replica answered last.
    answered: BTreeMap<String, Instant>,
}

/// Ends a load, also where a test fails in its midst.
struct End<'a>(&'a Load);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Load {
    fn ends(&self) -> End<'_> {
        End(self)
    }

    fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits for as many more requests as so many seconds should have.
    fn until_more(&self, seconds: usize) {
        let before = self.asked();
        let wanted = before + seconds * usize::try_from(RATE).unwrap();
        eventually("more requests", || holds(self.asked() >= wanted, self.asked() - before));
    }

    /// Sends one connection's share until the load is over.
    fn run(&self, address: SocketAddr) -> Seen {
        let pace = Duration::from_secs(1) * CONNECTIONS / RATE;
        let mut seen = Seen::default();
        let mut connection = None;
        let mut due = Instant::now();
        while !self.is_over.load(Ordering::Relaxed) {
            match ask(&mut connection, address) {
                Ok(pod) => {
                    seen.answered.insert(pod, Instant::now());
                }
                Err(error) => {
                    seen.failures.push(error.to_string());
                    connection = None;
                }
            }
            self.asked.fetch_add(1, Ordering::Relaxed);
            due += pace;
            due = due.max(Instant::now().checked_sub(LONGEST_DEBT).unwrap_or(due));
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        seen
    }
}

/// Asks once, and returns which replica answered.
fn ask(kept: &mut Option<BufReader<TcpStream>>, address: SocketAddr) -> io::Result<String> {
    let connection = match kept {
        Some(connection) => connection,
        None => kept.insert(BufReader::new(web::connect(address)?)),
    };
    let mut request = String::new();
    let _ = write!(request, "GET / HTTP/1.1\r\nhost: {}\r\n\r\n", address.ip());
    connection.get_mut().write_all(request.as_bytes())?;
    let (mut head, mut length, mut is_kept) = (String::new(), 0, true);
    loop {
        let begun = head.len();
        if connection.read_line(&mut head)? == 0 {
            return Err(io::Error::other(format!("closed after {head:?}")));
        }
        let line = head[begun..].trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().map_err(io::Error::other)?;
        }
        is_kept &= line != "connection: close";
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body);
    if !is_kept {
        *kept = None;
    }
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(format!("{head}{body}")));
    }
    // Read in full, this would cost more than all the rest.
    let pod = body
        .split_once("\"pod\": \"")
        .and_then(|(_, rest)| rest.split_once('"'));
    let (pod, _) = pod.ok_or_else(|| io::Error::other(format!("no pod in {body}")))?;
    Ok(pod.to_owned())
}
