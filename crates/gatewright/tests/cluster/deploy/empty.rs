//! A cluster in which nothing is installed, not even the kinds of Gateway API, and whose API server keeps an audit log.
//!
//! One test at a time has it. What a test installs it removes; the next one checks that.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use gatewright_testbed::cluster::{Channel, gateway_api_manifests};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    audit::AuditLog,
    files::{manifest, of_kind, root},
};
use crate::bed::{Bed, eventually, holds};

/// The namespace that the manifests install into.
pub(super) const SYSTEM: &str = "gatewright-system";

/// Seconds that no command takes.
const LONGEST: &str = "300";

static CLUSTER: LazyLock<(Bed, TempDir)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    let rules = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            { "level": "Metadata", "userGroups": [format!("system:serviceaccounts:{SYSTEM}")] },
            { "level": "None" },
        ],
    });
    fs::write(&policy, rules.to_string()).unwrap();
    let flags = vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log_file(&folder).display()),
    ];
    (Bed::start_with("gatewright-deploy-tests", None, flags), folder)
});

fn log_file(folder: &TempDir) -> PathBuf {
    folder.path().join("audit.log")
}

static TURN: Mutex<()> = Mutex::new(());

/// The cluster, for as long as a test runs.
pub(super) struct Empty {
    pub(super) bed: &'static Bed,
    audit_log: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Empty {
    pub(super) fn take() -> Self {
        // A test that failed says so itself; what it left behind the next one finds.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let (bed, folder) = &*CLUSTER;
        let installed = bed.get(&format!("/api/v1/namespaces/{SYSTEM}"));
        assert!(installed.is_err(), "an earlier test did not remove what it installed");
        Self {
            bed,
            audit_log: log_file(folder),
            _turn: turn,
        }
    }

    /// The log of what the installed account asks from now on.
    pub(super) fn audit(&self) -> AuditLog {
        AuditLog::from_now(&self.audit_log)
    }

    /// The kinds of Gateway API, as flags of `kubectl apply`: the standard ones, and the experimental kind that we read.
    pub(super) fn gateway_api() -> String {
        let mut files = gateway_api_manifests(Channel::Standard).unwrap();
        let experimental = gateway_api_manifests(Channel::Experimental).unwrap();
        files.extend(experimental.into_iter().filter(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.contains(gatewright_api::Kind::BackendTrafficPolicy.plural())
        }));
        let flags = files.iter().map(|file| format!("--filename={} ", file.display()));
        flags.collect()
    }

    /// A program in the root of the source tree, with this cluster's `kubectl` and this `gatewright` on its path.
    pub(super) fn program(&self, words: &[&str]) -> Command {
        let kubectl = self.bed.cluster.kubectl();
        let programs = [
            kubectl.get_program().as_ref(),
            env!("CARGO_BIN_EXE_gatewright").as_ref(),
        ];
        let mut folders: Vec<PathBuf> = programs
            .iter()
            .map(|program: &&std::path::Path| program.parent().unwrap().to_owned())
            .collect();
        folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .current_dir(root())
            .env("PATH", std::env::join_paths(folders).unwrap())
            // The machine's proxy for the Internet does not know the networks of the testbed.
            .env("no_proxy", "*");
        for (name, value) in kubectl.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Runs a command to its end, and returns what it printed.
    pub(super) fn run(&self, command: &str) -> String {
        let words = ["timeout", "--kill-after=5", LONGEST, "sh", "-c", command];
        let output = self.program(&words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command}\n{printed}\n{said}");
        printed
    }

    /// Installs the kinds of Gateway API and one of the plain manifests, and waits until every replica is ready.
    pub(super) fn install(&self, name: &str) {
        self.run(&format!("kubectl apply --server-side {}", Self::gateway_api()));
        self.run("kubectl wait --for=condition=Established --timeout=60s crd --all");
        self.run(&format!(
            "kubectl apply --server-side --filename=deploy/manifests/{name}"
        ));
        let wanted = of_kind(&manifest(name), "Deployment")[0]["spec"]["replicas"].clone();
        eventually("ready replicas", || {
            let deployment = self.deployment();
            holds(deployment["status"]["readyReplicas"] == wanted, &deployment["status"])
        });
    }

    /// The installed Deployment.
    pub(super) fn deployment(&self) -> Value {
        let path = format!("/apis/apps/v1/namespaces/{SYSTEM}/deployments/gatewright");
        self.bed.get(&path).unwrap()
    }

    /// Removes what [`install`](Self::install) did, in the order of the documentation.
    pub(super) fn remove(&self, name: &str) {
        self.run(&format!(
            "kubectl --namespace {SYSTEM} delete deployment gatewright --cascade=foreground"
        ));
        self.run("gatewright uninstall --objects");
        self.run(&format!(
            "kubectl delete --ignore-not-found --filename=deploy/manifests/{name}"
        ));
        self.run(&format!("kubectl delete {}", Self::gateway_api()));
    }
}
