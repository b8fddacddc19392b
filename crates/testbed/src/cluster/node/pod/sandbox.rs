//! How a process becomes a container: a network namespace, mounts and a root of its own, a user, an environment.
//!
//! The system's own small tools do it, one becoming the next and at last the program, so that the process that is started
//! is the process that is waited for. First `enter.sh` makes the root; then a script that is written here, per container,
//! mounts the volumes where the pod wants them, which must be done inside the new root: the paths may be links.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

const ENTER: &str = include_str!("enter.sh");

/// What is mounted where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// Below the pod's folder.
    pub(super) source: String,
    /// In the container.
    pub(super) path: String,
    pub(super) is_read_only: bool,
}

/// A container to be.
#[derive(Clone, Debug)]
pub(super) struct Sandbox {
    /// The network namespace.
    pub(super) network: PathBuf,
    /// The pod's folder.
    pub(super) pod_folder: PathBuf,
    /// The container's folder, relative to the pod's.
    pub(super) container: String,
    pub(super) host_name: String,
    /// The image's program, on this machine and in the container.
    pub(super) program: (PathBuf, String),
    pub(super) mounts: Vec<Mount>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) working_folder: String,
    /// User and group, if not root.
    pub(super) user: Option<(u32, u32)>,
    pub(super) is_read_only: bool,
    /// What is started.
    pub(super) words: Vec<String>,
}

impl Sandbox {
    /// Writes the script and returns the command that becomes the container.
    pub(super) fn command(&self) -> io::Result<Command> {
        let folder = self.pod_folder.join(&self.container);
        let root = folder.join("root");
        fs::create_dir_all(&root)?;
        fs::write(folder.join("start.sh"), self.script())?;
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={}", self.network.display()))
            .args(["--", "unshare", "--mount", "--uts", "--"]);
        command
            .args(["/bin/sh", "-c", ENTER, "enter"])
            .arg(root)
            .arg(&self.pod_folder);
        command
            .arg(format!("{}/start.sh", self.container))
            .arg(&self.host_name)
            .arg(&self.program.0);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A group of its own, so that what it starts can be ended with it.
        command.process_group(0).kill_on_drop(true).current_dir("/");
        Ok(command)
    }

    fn script(&self) -> String {
        let mut script = PRELUDE.to_owned();
        let mut line = |text: String| {
            script.push_str(&text);
            script.push('\n');
        };
        line(format!("link_program {}", quote(&self.program.1)));
        let mut mounts: Vec<&Mount> = self.mounts.iter().collect();
        // What lies below another comes after it.
        mounts.sort_by_key(|mount| mount.path.len());
        for mount in mounts {
            let way = if mount.is_read_only { "ro" } else { "rw" };
            line(format!(
                "put {} {} {way}",
                quote(&format!("/.pod/{}", mount.source)),
                quote(&mount.path)
            ));
        }
        line(format!("mkdir -p {}", quote(&self.working_folder)));
        line("umount --lazy /.pod && rmdir /.pod".to_owned());
        if self.is_read_only {
            line("seal".to_owned());
        }
        line(format!("cd {}", quote(&self.working_folder)));
        script.push_str("exec ");
        if let Some((user, group)) = self.user {
            let _ = write!(script, "setpriv --reuid={user} --regid={group} --clear-groups -- ");
        }
        script.push_str("env --ignore-environment --");
        for (name, value) in &self.environment {
            let _ = write!(script, " {}", quote(&format!("{name}={value}")));
        }
        for word in &self.words {
            let _ = write!(script, " {}", quote(word));
        }
        script.push('\n');
        script
    }
}

const PRELUDE: &str = r#"set -e
link_program() {
    if [ "$1" = /.program ]; then return; fi
    mkdir -p "$(dirname "$1")"
    ln -sf /.program "$1"
}
put() {
    if [ ! -e "$1" ]; then mkdir -p "$1"; fi
    if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "$(dirname "$2")"; [ -e "$2" ] || : >"$2"; fi
    mount --bind "$1" "$2"
    if [ "$3" = ro ]; then mount -o remount,bind,ro "$2"; fi
}
seal() {
    mount -o remount,bind,ro /
    for folder in tmp run home root; do
        if mountpoint --quiet "/$folder"; then mount -o remount,bind,ro "/$folder" 2>/dev/null || true; fi
    done
}
"#;

/// A command that runs inside a container, beside its program.
pub(super) fn inside(process: u32, environment: &BTreeMap<String, String>, words: &[String]) -> Command {
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--target={process}"))
        .args(["--net", "--mount", "--uts", "--root", "--wd", "--"]);
    command.args(["env", "--ignore-environment", "--"]);
    command
        .args(environment.iter().map(|(name, value)| format!("{name}={value}")))
        .args(words);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A word that a shell takes as it is.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The folder of a container, relative to its pod's.
pub(super) fn container_folder(name: &str) -> String {
    format!("containers/{name}")
}

/// The folder of a volume, relative to its pod's.
pub(super) fn volume_folder(name: &str) -> String {
    Path::new("volumes").join(name).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::quote;

    #[test]
    fn a_shell_takes_quoted_words_as_they_are() {
        for word in ["plain", "two words", "it's", "$(HOME) `id` \\ \"", "", "line\nbreak"] {
            let script = format!("printf %s {}", quote(word));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
    }
}
