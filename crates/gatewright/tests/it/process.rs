//! Runs the binary: to its end for whole outputs, or in the background with its log at hand.

use std::{
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Nothing in these tests takes this long unless it hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Waits until something is there.
pub(crate) fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    poll(what, Duration::from_millis(1), look)
}

/// The same for what takes seconds: looks less often, which leaves the machine to other tests.
pub(crate) fn wait_long_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    poll(what, Duration::from_millis(50), look)
}

fn poll<T>(what: &str, pause: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "no {what} within {DEADLINE:?}");
        thread::yield_now();
        thread::sleep(pause);
    }
}

/// A port of 127.0.0.1 that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewright"));
    command
        .env_clear()
        .env("NO_COLOR", "1")
        // No cluster is found by chance.
        .env("HOME", "/nowhere")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a command to its end: exit code, stdout and stderr as one text.
pub(crate) fn whole(directory: &Path, arguments: &[&str]) -> String {
    let output = binary().current_dir(directory).args(arguments).output().unwrap();
    let code = output
        .status
        .code()
        .map_or("signal".to_owned(), |code| code.to_string());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    format!("exit code: {code}\n----- stdout -----\n{stdout}----- stderr -----\n{stderr}")
}

/// A command in the background. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
}

impl Process {
    pub(crate) fn start(directory: &Path, arguments: &[&str]) -> Self {
        let mut child = binary().current_dir(directory).args(arguments).spawn().unwrap();
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Serves a folder of this name, with logs as JSON, and waits until it is ready.
    pub(crate) fn serve(directory: &Path, folder: &str) -> Self {
        let process = Self::serve_unready(directory, folder);
        let probes = process.probes();
        wait_for("readiness", || {
            (crate::web::get(probes, "/readyz").status == 200).then_some(())
        });
        process
    }

    /// The same without waiting.
    pub(crate) fn serve_unready(directory: &Path, folder: &str) -> Self {
        let any = "127.0.0.1:0";
        let arguments = [
            "run",
            "--files",
            folder,
            "--host-address",
            "127.0.0.1",
            "--workers",
            "2",
            "--log-format",
            "json",
            "--admin",
            any,
            "--health-probe-bind-address",
            any,
            "--metrics-bind-address",
            any,
        ];
        Self::start(directory, &arguments)
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        self.logged_address("admin:")
    }

    pub(crate) fn probes(&self) -> SocketAddr {
        self.logged_address("probes:")
    }

    fn logged_address(&self, message: &str) -> SocketAddr {
        wait_for(message, || {
            let line = self
                .log()
                .into_iter()
                .find(|line| text(line, "message").starts_with(message))?;
            text(&line, "address").parse().ok()
        })
    }

    pub(crate) fn stdout(&self) -> String {
        self.stdout.lock().unwrap().clone()
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// The lines of the log that are JSON.
    pub(crate) fn log(&self) -> Vec<Value> {
        self.stderr()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Waits for a line of the log whose message begins like this.
    pub(crate) fn logged(&self, message: &str) -> Value {
        wait_for(message, || {
            self.log()
                .into_iter()
                .find(|line| text(line, "message").starts_with(message))
        })
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits for the end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        wait_for("end of the process", || self.child.try_wait().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            println!(
                "----- stdout -----\n{}\n----- stderr -----\n{}",
                self.stdout(),
                self.stderr()
            );
        }
    }
}

/// A text field of a JSON object; empty if there is none.
pub(crate) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn collect(stream: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let collected = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&collected);
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
            sink.lock().unwrap().push_str(&line);
            line.clear();
        }
    });
    collected
}
