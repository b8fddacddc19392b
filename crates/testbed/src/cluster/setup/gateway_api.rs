//! The kinds of Gateway API, read from its published Go module, and never part of this repository.

use std::{fs, path::PathBuf, str::FromStr};

use anyhow::{Context, bail};
use serde_json::Value;

/// The version that the product is made for.
pub const VERSION: &str = "v1.6.1";

/// Which kinds and fields a cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// What is stable.
    Standard,
    /// That, and what is being tried out.
    Experimental,
}

impl Channel {
    /// Its name, which is also that of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Experimental => "experimental",
        }
    }
}

impl FromStr for Channel {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "standard" => Ok(Self::Standard),
            "experimental" => Ok(Self::Experimental),
            other => bail!("{other} is no channel: write standard or experimental"),
        }
    }
}

/// The manifests of a channel, read-only files of Go's cache: each is YAML with one or more documents, not only CRDs.
pub fn manifests(channel: Channel) -> anyhow::Result<Vec<PathBuf>> {
    let module = format!("sigs.k8s.io/gateway-api@{VERSION}");
    let answer = super::go(&["mod", "download", "-json", &module])?;
    let answer: Value = serde_json::from_str(&answer).context("go did not answer with JSON")?;
    let folder = answer
        .get("Dir")
        .and_then(Value::as_str)
        .with_context(|| format!("go has no folder for {module}"))?;
    let folder = PathBuf::from(folder).join("config/crd").join(channel.name());
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // The list of the others is no manifest itself.
    files.retain(|file| {
        let is_yaml = file.extension().is_some_and(|extension| extension == "yaml");
        is_yaml && file.file_stem().is_some_and(|stem| stem != "kustomization")
    });
    files.sort();
    Ok(files)
}
