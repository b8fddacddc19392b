//! The folder that the demo serves.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process,
};

use crate::failure::Failure;

/// Where the example is in a clone of the repository.
const IN_REPOSITORY: &str = "examples/quickstart";

/// The files of the example.
const FILES: [(&str, &str); 4] = [
    (
        "1-gateway.yaml",
        include_str!("../../../../examples/quickstart/1-gateway.yaml"),
    ),
    (
        "2-services.yaml",
        include_str!("../../../../examples/quickstart/2-services.yaml"),
    ),
    (
        "3-routes.yaml",
        include_str!("../../../../examples/quickstart/3-routes.yaml"),
    ),
    (
        "4-certificate.yaml",
        include_str!("../../../../examples/quickstart/4-certificate.yaml"),
    ),
];

/// A folder to serve; one that was made for the demo goes away with it.
pub(super) struct Example {
    directory: PathBuf,
    is_ours: bool,
}

impl Example {
    /// The folder that is asked for, else the one of the repository, else a new one.
    pub(super) fn find(asked: Option<PathBuf>) -> Result<Self, Failure> {
        let known = asked.or_else(|| Some(PathBuf::from(IN_REPOSITORY)).filter(|directory| directory.is_dir()));
        match known {
            Some(directory) => Ok(Self {
                directory,
                is_ours: false,
            }),
            None => Self::write().map_err(|error| Failure::new(format!("cannot write the example: {error}"))),
        }
    }

    fn write() -> io::Result<Self> {
        let directory = std::env::temp_dir().join(format!("gatewright-demo-{}", process::id()));
        // Fails if there is one: a folder that someone else has prepared is not ours to serve.
        fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let example = Self {
            directory,
            is_ours: true,
        };
        for (name, text) in FILES {
            fs::write(example.directory.join(name), text)?;
        }
        Ok(example)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        if self.is_ours {
            // Only what was written here; a file that someone added is kept, with the folder.
            for (name, _) in FILES {
                let _ = fs::remove_file(self.directory.join(name));
            }
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Example, FILES};

    #[test]
    fn the_example_inside_the_binary_is_written_and_taken_away_again() {
        let example = Example::write().unwrap();
        let directory = example.directory().to_owned();
        for (name, text) in FILES {
            assert_eq!(std::fs::read_to_string(directory.join(name)).unwrap(), text);
        }
        let again = Example::write();
        assert!(again.is_err(), "a folder that exists already was taken over");
        drop(example);
        assert!(!directory.exists());
    }

    #[test]
    fn the_example_inside_the_binary_is_whole() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/quickstart");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        there.sort();
        assert_eq!(there, FILES.map(|(name, _)| name));
    }
}
