//! The backends of a gateway that are names, kept resolved for as long as the gateway has them.

use std::sync::Arc;

use ahash::AHashMap;
use gatewright_ir::{Cluster, ClusterId, Endpoints};
use imbl::{OrdMap, ordmap::DiffItem};

use crate::dns::{Names, Resolver};

/// The names among the clusters of one gateway, by cluster.
pub(super) type ClusterNames = Arc<AHashMap<ClusterId, Names>>;

/// Follows a change of clusters. Names that stay are not asked for again.
pub(super) fn follow(
    names: &ClusterNames,
    old: &OrdMap<ClusterId, Arc<Cluster>>,
    new: &OrdMap<ClusterId, Arc<Cluster>>,
    resolver: &Resolver,
) -> ClusterNames {
    let mut names = Arc::clone(names);
    for change in old.diff(new) {
        let (id, cluster) = match change {
            DiffItem::Add(id, cluster) | DiffItem::Update { new: (id, cluster), .. } => (id, Some(cluster)),
            DiffItem::Remove(id, _) => (id, None),
        };
        match cluster.map(|cluster| &cluster.endpoints) {
            Some(Endpoints::Named {
                name,
                port,
                allow_local,
            }) => {
                let watched = resolver.watch(name, *port, *allow_local);
                Arc::make_mut(&mut names).insert(id.clone(), watched);
            }
            Some(Endpoints::Known(_)) | None => {
                if names.contains_key(id) {
                    Arc::make_mut(&mut names).remove(id);
                }
            }
        }
    }
    names
}
