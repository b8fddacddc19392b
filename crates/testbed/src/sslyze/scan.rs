//! One scan, and what sslyze says of it at the end.

use std::{net::SocketAddrV4, path::Path, process::Command};

use anyhow::{Context, bail};

use crate::process;

/// What came of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// What is not as the configuration wants it, a line each: the criterion, and what is wrong.
    pub issues: Vec<String>,
    /// All that sslyze printed.
    pub text: String,
}

/// Judges a port by Mozilla's "intermediate" configuration.
pub(super) fn run(sslyze: &Path, address: SocketAddrV4, authority: &Path) -> anyhow::Result<Scan> {
    let mut command = Command::new("sh");
    // It also fails when a server is not as it should be, which is an answer; that is in what it prints.
    command
        .args(["-c", "\"$@\" 2>&1 || true", "scan"])
        .arg(sslyze)
        .arg("--mozilla_config=intermediate")
        .arg(format!("--certinfo_ca_file={}", authority.display()))
        .arg(format!("localhost:{}{{{}}}", address.port(), address.ip()));
    let text = process::output(&command)?;
    read(text.clone()).with_context(|| format!("sslyze said:\n{text}"))
}

/// Reads what sslyze printed.
fn read(text: String) -> anyhow::Result<Scan> {
    let verdict = text
        .split("COMPLIANCE AGAINST TLS CONFIGURATION")
        .nth(1)
        .context("it came to no verdict")?;
    let issues: Vec<String> = verdict
        .lines()
        .filter_map(|line| line.trim().strip_prefix("* "))
        .map(str::to_owned)
        .collect();
    // An unfinished scan has no issues either.
    match (
        verdict.contains(": OK - Compliant."),
        verdict.contains(": FAILED - Not compliant."),
    ) {
        (true, false) if issues.is_empty() => {}
        (false, true) if !issues.is_empty() => {}
        _ => bail!("its verdict is neither that the server is compliant nor that it is not"),
    }
    Ok(Scan { issues, text })
}

#[cfg(test)]
mod tests {
    use super::read;

    fn printed(verdict: &str) -> String {
        format!(
            " * Downgrade Attacks:\n       TLS_FALLBACK_SCSV:  OK - Supported\n\n COMPLIANCE AGAINST TLS CONFIGURATION\n \
             ------------------------------------\n\n    Checking results against Mozilla's \"intermediate\" configuration.\n\n{verdict}"
        )
    }

    #[test]
    fn a_verdict_is_read_with_its_reasons() {
        let good = read(printed("    localhost:443: OK - Compliant.\n\n")).unwrap();
        assert!(good.issues.is_empty());
        let bad = "    localhost:443: FAILED - Not compliant.\n        * tls_versions: TLS versions {'TLSv1'} are supported, but should be rejected.\n\n";
        assert_eq!(
            read(printed(bad)).unwrap().issues,
            ["tls_versions: TLS versions {'TLSv1'} are supported, but should be rejected."]
        );
    }

    #[test]
    fn a_scan_that_did_not_finish_is_no_verdict() {
        for text in [
            printed("    localhost:443: ERROR - Scan did not run successfully; review the scan logs above.\n"),
            printed(""),
            "cannot connect".to_owned(),
        ] {
            assert!(read(text.clone()).is_err(), "{text}");
        }
    }
}
