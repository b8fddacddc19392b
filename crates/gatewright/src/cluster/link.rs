//! The spine's link to the cluster: what comes in, and what goes out.
//!
//! In come declared objects, what the other replicas observed and which names are taken; out go statuses, owned objects
//! and what this replica observed. Nothing here waits for the network but [`Link::next`] and [`Link::close`].

use std::{net::IpAddr, sync::Arc, time::Duration};

use gatewright_api::Kind;
use gatewright_ir::{SessionKey, Text};
use gatewright_source::kube::{
    Batch, OwnedConflict, OwnedKind, OwnedName, OwnedObject, Replicas, Standing, Watch, Writer,
};
use gatewright_world::{
    Replica, World,
    desired::{self, Owned},
};
use tokio::sync::watch;

use super::{ClusterSettings, SharedSecret};
use crate::{board::Statuses, diagnose, spine};

/// A Lease that cannot be deleted in this time runs out by itself.
const LONGEST_FAREWELL: Duration = Duration::from_secs(3);

/// What the cluster says.
pub(crate) enum News {
    /// Objects changed.
    Objects(Batch),
    /// What other replicas published, or that they are gone.
    Replicas(Vec<(String, Option<Replica>)>),
    /// All the names of objects of ours that others have.
    Conflicts(Arc<Vec<OwnedConflict>>),
    /// The secret that the replicas share, or that this one does not get to know it.
    Secret(Option<SessionKey>),
}

/// What plans want of the cluster, gathered over one turn: the newest wish of each thing.
#[derive(Default)]
pub(crate) struct Wishes {
    pub(crate) owned: Vec<(desired::OwnedName, Option<Arc<Owned>>)>,
    pub(crate) classes_in_use: Vec<(Text, bool)>,
    /// Whether a replica, this one or another, has said something.
    pub(crate) has_replica_news: bool,
}

/// The link.
pub(crate) struct Link {
    watch: Watch,
    writer: Writer,
    replicas: Replicas,
    secret: SharedSecret,
    is_synced: bool,
    conflicts: watch::Receiver<Arc<Vec<OwnedConflict>>>,
    known_conflicts: Vec<desired::OwnedName>,
    published: Option<Replica>,
    identity: String,
    addresses: Vec<IpAddr>,
    node: Option<String>,
}

impl Link {
    pub(super) fn new(
        watch: Watch,
        writer: Writer,
        replicas: Replicas,
        secret: SharedSecret,
        identity: String,
        settings: &ClusterSettings,
    ) -> Self {
        Self {
            conflicts: writer.conflicts(),
            watch,
            writer,
            replicas,
            secret,
            is_synced: false,
            known_conflicts: Vec::new(),
            published: None,
            identity,
            addresses: settings.addresses.clone(),
            node: settings.node.clone(),
        }
    }

    /// An empty world with this replica in it.
    pub(crate) fn world(&self) -> World {
        let mut world = World::in_cluster();
        world.set_local(&self.identity, &self.addresses, self.node.as_deref());
        world
    }

    /// The next news; none when there can be no more.
    pub(crate) async fn next(&mut self) -> Option<News> {
        tokio::select! {
            batch = self.watch.next() => batch.map(News::Objects),
            changes = self.replicas.next() => changes.map(News::Replicas),
            changed = self.conflicts.changed() => match changed {
                Ok(()) => Some(News::Conflicts(self.conflicts.borrow_and_update().clone())),
                Err(_) => None,
            },
            secret = self.secret.settle() => Some(News::Secret(secret)),
        }
    }

    /// Takes news into the world. Gives whether everything is known that a plan needs.
    pub(crate) fn take(&mut self, news: News, world: &mut World) -> bool {
        match news {
            News::Objects(batch) => {
                // Before the plan that follows: the writer compares with what is there.
                self.writer.observe(batch.observed);
                for change in batch.changes {
                    spine::apply(world, change);
                }
                if let Some(definitions) = batch.definitions {
                    world.set_definitions(definitions);
                }
                if batch.is_synced {
                    self.is_synced = true;
                    self.secret.hurry();
                }
            }
            News::Replicas(changes) => {
                for (name, replica) in changes {
                    world.set_replica(&name, replica);
                }
            }
            News::Conflicts(conflicts) => self.take_conflicts(&conflicts, world),
            // Known to the planner, not to the world.
            News::Secret(_) => {}
        }
        self.is_synced && self.secret.is_settled()
    }

    fn take_conflicts(&mut self, conflicts: &[OwnedConflict], world: &mut World) {
        let now: Vec<_> = conflicts
            .iter()
            .filter_map(|conflict| Some((desired_name(&conflict.name)?, conflict.message.as_str())))
            .collect();
        for name in &self.known_conflicts {
            if !now.iter().any(|(taken, _)| taken == name) {
                world.set_conflict(name, None);
            }
        }
        for (name, message) in &now {
            world.set_conflict(name, Some(message));
        }
        self.known_conflicts = now.into_iter().map(|(name, _)| name).collect();
    }

    /// Says what the plan wants. Called after every turn, also when nothing changed.
    pub(crate) fn tell(&mut self, statuses: &Statuses, wishes: Wishes, world: &World) {
        // Before the wishes of a plan made blindly, and after those of one that is not: the writer is at work all the time.
        let is_blind = self.is_blind();
        if is_blind {
            self.writer.set_keeping(true);
        }
        for (id, status) in statuses {
            self.writer.want(diagnose::named(id), status.clone().map(Arc::new));
        }
        for (name, owned) in wishes.owned {
            let object = owned.as_deref().map(OwnedObject::from);
            self.writer.own(OwnedName::from(&name), object);
        }
        for (class, is_used) in wishes.classes_in_use {
            self.writer.keep_class(&class, is_used);
        }
        if !is_blind {
            self.writer.set_keeping(false);
        }
        self.writer.planned();
        let own = world.local();
        if wishes.has_replica_news && self.published.as_ref() != Some(own) {
            self.published = Some(own.clone());
            self.replicas.publish(own.clone());
        }
    }

    /// Whether Gateways or their classes cannot be seen. Then nothing is planned for them, and nothing of theirs may go.
    fn is_blind(&self) -> bool {
        let is_of_gateways = |kind: Kind| matches!(kind, Kind::Gateway | Kind::GatewayClass);
        let is_unseen = |standing: Standing| matches!(standing, Standing::Absent | Standing::Forbidden);
        let states = self.watch.states().get();
        states
            .iter()
            .any(|state| is_of_gateways(state.kind) && is_unseen(state.standing))
    }

    /// Takes leave of the other replicas.
    pub(crate) async fn close(self) {
        if tokio::time::timeout(LONGEST_FAREWELL, self.replicas.leave())
            .await
            .is_err()
        {
            tracing::warn!("this replica could not say that it leaves; the others will notice");
        }
    }
}

/// The name as the plan knows it; none for kinds that it does not make.
fn desired_name(name: &OwnedName) -> Option<desired::OwnedName> {
    let kind = match name.kind {
        OwnedKind::SERVICE => desired::OwnedKind::Service,
        OwnedKind::ENDPOINT_SLICE => desired::OwnedKind::EndpointSlice,
        _ => return None,
    };
    Some(desired::OwnedName {
        kind,
        namespace: name.namespace.as_str().into(),
        name: name.name.as_str().into(),
    })
}
