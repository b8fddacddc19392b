//! Where the spine's objects come from: a folder or a cluster.

use futures::FutureExt;
use gatewright_source::files;

use crate::cluster::{Link, News};

/// A source of declared objects. The spine has exactly one.
pub(crate) enum Feed {
    Folder(files::Watch),
    Cluster(Box<Link>),
}

/// What a source says.
pub(super) enum Input {
    Folder(files::Batch),
    Cluster(News),
}

impl Feed {
    /// The next input; none when there can be no more. May be dropped and called again without losing any.
    pub(super) async fn next(&mut self) -> Option<Input> {
        match self {
            Self::Folder(watch) => watch.next().await.map(Input::Folder),
            Self::Cluster(link) => link.next().await.map(Input::Cluster),
        }
    }

    /// Input that is there already.
    pub(super) fn waiting(&mut self) -> Option<Input> {
        self.next().now_or_never().flatten()
    }

    pub(super) fn link(&mut self) -> Option<&mut Link> {
        match self {
            Self::Folder(_) => None,
            Self::Cluster(link) => Some(link),
        }
    }
}
