//! The volumes of a pod, as folders that its containers see under the paths they ask for.
//!
//! The files of a volume are replaced all at once, as kubelets do: they lie in a folder with a new name, `..data` is a
//! link to it, and every file is a link through `..data`. A program sees either all old files or all new ones.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Component, Path, PathBuf},
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::{
    Problem,
    contents::{self, Contents, REASON, Tokens},
    fields::Addresses,
};
use crate::cluster::node::Node;

/// The volumes of one pod.
#[derive(Debug)]
pub(super) struct Volumes {
    folder: PathBuf,
    /// The group that volumes belong to.
    group: Option<u32>,
    addresses: Addresses,
    tokens: Tokens,
    written: BTreeMap<String, Contents>,
}

impl Volumes {
    /// Of a pod whose volumes lie in a folder.
    pub(super) fn new(folder: PathBuf, pod: &Pod, addresses: Addresses) -> Self {
        let security = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
        let group = security.and_then(|security| security.fs_group);
        Self {
            folder,
            group: group.and_then(|group| u32::try_from(group).ok()),
            addresses,
            tokens: Tokens::new(),
            written: BTreeMap::new(),
        }
    }

    /// Writes what has changed since the last time.
    pub(super) async fn refresh(&mut self, node: &Node, pod: &Pod) -> Result<(), Problem> {
        let volumes = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.volumes.as_deref())
            .unwrap_or_default();
        for volume in volumes {
            let folder = self.folder.join(&volume.name);
            let failed = |error: io::Error| Problem::new(REASON, format!("volume {:?}: {error}", volume.name));
            let contents = contents::contents(node, pod, volume, self.addresses, &mut self.tokens).await?;
            let Some(contents) = contents else {
                make_empty(&folder, self.group).map_err(failed)?;
                continue;
            };
            if self.written.get(&volume.name) != Some(&contents) {
                replace(&folder, &contents, self.group).map_err(failed)?;
                self.written.insert(volume.name.clone(), contents);
            }
        }
        Ok(())
    }
}

/// A folder that anybody in the pod may write to.
fn make_empty(folder: &Path, group: Option<u32>) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777))?;
    chown(folder, None, group)
}

/// Replaces all files of a volume.
fn replace(folder: &Path, contents: &Contents, group: Option<u32>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let data = folder.join("..data");
    let old = fs::read_link(&data).ok();
    let name = format!("..{}", Timestamp::now().as_nanosecond());
    for (path, file) in contents {
        let target = folder.join(&name).join(inside(path)?);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&target, &file.bytes)?;
        // A group that volumes belong to can read them.
        let mode = if group.is_some() { file.mode | 0o040 } else { file.mode };
        fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
        chown(&target, None, group)?;
    }
    fs::create_dir_all(folder.join(&name))?;
    let temporary = folder.join("..data.new");
    symlink(&name, &temporary)?;
    fs::rename(&temporary, &data)?;
    // What is seen at the top is links through `..data`, by the first part of each path.
    let mut wanted: Vec<&str> = contents.keys().filter_map(|path| path.split('/').next()).collect();
    wanted.dedup();
    for entry in fs::read_dir(folder)?.flatten() {
        let is_stale = entry
            .file_name()
            .to_str()
            .is_some_and(|name| !name.starts_with("..") && !wanted.contains(&name));
        if is_stale {
            fs::remove_file(entry.path())?;
        }
    }
    for first in wanted {
        let link = folder.join(first);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new("..data").join(first), link)?;
        }
    }
    if let Some(old) = old {
        fs::remove_dir_all(folder.join(old))?;
    }
    Ok(())
}

/// A path that stays inside the volume.
fn inside(path: &str) -> io::Result<&Path> {
    let path = Path::new(path);
    let stays = path
        .components()
        .all(|component| matches!(component, Component::Normal(_)));
    stays
        .then_some(path)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a path leads out of the volume"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{super::contents::File, Contents, replace};

    fn contents(files: &[(&str, &str)]) -> Contents {
        let file = |text: &str| File {
            bytes: text.as_bytes().to_vec(),
            mode: 0o644,
        };
        files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), file(text)))
            .collect()
    }

    #[test]
    fn files_are_replaced_together_and_those_that_are_gone_go() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
        replace(
            folder.path(),
            &contents(&[("a", "1"), ("b", "1"), ("deep/c", "1")]),
            None,
        )
        .unwrap();
        assert_eq!(
            (read("a"), read("deep/c")),
            (Some("1".to_owned()), Some("1".to_owned()))
        );
        let data = fs::read_link(folder.path().join("..data")).unwrap();
        replace(folder.path(), &contents(&[("a", "2"), ("d", "2")]), None).unwrap();
        assert_eq!((read("a"), read("d")), (Some("2".to_owned()), Some("2".to_owned())));
        assert_eq!((read("b"), read("deep/c")), (None, None));
        assert!(!folder.path().join(data).exists(), "the old files are removed");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            4,
            "two files, the data and the link to it"
        );
    }

    #[test]
    fn a_path_cannot_lead_out_of_the_volume() {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path().join("volume");
        assert!(replace(&volume, &contents(&[("../escape", "1")]), None).is_err());
        assert!(!folder.path().join("escape").exists());
    }
}
