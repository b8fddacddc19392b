//! The tour in README.md does what it says: its commands are run as written, and print what is written below them.

use std::{fmt::Write as _, fs, net::TcpListener, path::Path, process::Command};

use crate::process::free_port;

/// The tour's blocks: commands, and what they print.
fn blocks(readme: &str) -> Vec<(String, String)> {
    let tour = readme
        .split_once("## A five-minute tour")
        .unwrap()
        .1
        .split_once("\n## ")
        .unwrap()
        .0;
    let fenced = |kind: &str, text: &str| -> Option<(String, String)> {
        let (_, rest) = text.split_once(&format!("```{kind}\n"))?;
        let (block, rest) = rest.split_once("```\n")?;
        Some((block.to_owned(), rest.to_owned()))
    };
    let mut found = Vec::new();
    let mut rest = tour.to_owned();
    while let Some((commands, after)) = fenced("sh", &rest) {
        let (output, after) = fenced("text", &after).unwrap();
        found.push((commands, output));
        rest = after;
    }
    found
}

#[test]
fn the_tour_prints_what_it_says() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let mut readme = fs::read_to_string(readme).unwrap();
    // Other tests and other programs use the ports of the tour too.
    let (backend, admin, probes) = (free_port(), free_port(), free_port());
    // As many digits as the port it stands for, for the columns of a table.
    let port = (7000..8000)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap();
    readme = readme.replace("9081", &backend.to_string()).replace(
        "gatewright run --files site",
        &format!(
            "gatewright run --files site --admin 127.0.0.1:{admin} --metrics-bind-address 127.0.0.1:{probes} \
             --health-probe-bind-address 127.0.0.1:{probes}"
        ),
    );
    readme = readme.replace(
        "gatewright status\n",
        &format!("gatewright status --admin 127.0.0.1:{admin}\n"),
    );
    let blocks = blocks(&readme);
    assert!(blocks.len() >= 5, "the tour has only {} steps", blocks.len());
    let folder = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_gatewright")).parent().unwrap();
    let mut script = String::from("trap 'kill $(jobs -p); wait' EXIT\n");
    for (index, (commands, _)) in blocks.iter().enumerate() {
        let commands = commands.replace("8080", &port.to_string());
        let _ = writeln!(script, "{commands}\necho '=== end of step {index}'");
    }
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let output = Command::new("timeout")
        .args(["--kill-after=5", "60", "bash", "-c", &script])
        .current_dir(folder.path())
        .env("PATH", path)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout)
        .unwrap()
        .replace(&port.to_string(), "8080")
        .replace("\r\n", "\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    let mut rest = printed.as_str();
    for (index, (commands, expected)) in blocks.iter().enumerate() {
        let marker = format!("=== end of step {index}\n");
        let (step, after) = rest
            .split_once(&marker)
            .unwrap_or_else(|| panic!("step {index} did not end\n{rest}\n{errors}"));
        assert_eq!(step, expected, "after\n{commands}\n{errors}");
        rest = after;
    }
}
