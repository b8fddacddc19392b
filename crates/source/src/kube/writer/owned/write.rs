//! Creates, corrects or deletes one object.
//!
//! Server-side apply creates what is missing and changes what is there, which must not happen to an object of somebody
//! else. So every apply names a version: that of the object we know, or one that no object ever has, which the API server
//! takes only if there is none.

use std::{sync::Arc, time::Duration};

use ::kube::{
    Api, Error,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::{Value, json};

use super::{
    OwnedName,
    object::{self, Full, Whose},
    replace::replacement,
    table::Step,
};
use crate::kube::{
    failure,
    raw::Raw,
    writer::{
        jobs::{self, FIELD_MANAGER, MOST_CONFLICTS, PATIENCE, Trouble},
        run::Shared,
    },
};

/// No object has this version: etcd counts from one, and writes nothing at one.
const NO_VERSION: &str = "1";
/// A name that is taken may be free again soon, and nobody tells us.
const LONGEST_CONFLICT: Duration = Duration::from_secs(30);

/// Makes one object be as planned.
pub(in crate::kube::writer) async fn write(shared: &Shared, name: &OwnedName) -> Result<(), Trouble> {
    let is_watched = shared.settings.owned.contains(&name.kind);
    let step = {
        let mut state = shared.lock();
        state.owned_step(name, &shared.cluster, &shared.settings.controller, is_watched)
    };
    let api: Api<Raw> = Api::namespaced_with(shared.cluster.client(), &name.namespace, &name.kind.resource());
    let result = match step {
        Step::Nothing => Ok(()),
        Step::Wait(wait) => Err(Trouble {
            wait: Some(wait),
            ..Trouble::new("Contested", "somebody else keeps changing it back")
        }),
        Step::Delete { uid, version } => delete(shared, &api, name, &uid, &version).await,
        Step::Apply {
            full,
            object,
            owner_uid,
            version,
        } => {
            let apply = Apply {
                shared,
                api: &api,
                name,
                full,
                owner: (&object.owner, &owner_uid),
            };
            apply.run(version.map(String::from)).await
        }
    };
    publish_conflicts(shared);
    result
}

struct Apply<'a> {
    shared: &'a Shared,
    api: &'a Api<Raw>,
    name: &'a OwnedName,
    full: Full,
    owner: (&'a gatewright_api::ObjectName, &'a str),
}

impl Apply<'_> {
    async fn run(self, mut version: Option<String>) -> Result<(), Trouble> {
        let controller = self.shared.settings.controller.as_str();
        // What was seen with our label may still be somebody else's.
        let seen = self.shared.lock().owned_raw(self.name);
        if let Some(raw) = seen
            && let Whose::Foreign(why) = object::whose(&raw, Some(self.owner), controller)
        {
            return Err(self.taken(&why));
        }
        for _ in 0..MOST_CONFLICTS {
            match self.apply(version.as_deref()).await {
                Ok(made) if version.is_none() || object::is_as_wanted(&made.value, &self.full) => {
                    self.record(made, version.as_deref());
                    return Ok(());
                }
                // Somebody's items stand in a list beside ours.
                Ok(made) => match self.replace(&made).await {
                    Ok(made) => {
                        self.record(made, None);
                        return Ok(());
                    }
                    Err(error) if jobs::is_conflict(&error) => self.shared.lock().counters.conflicts += 1,
                    Err(error) => return Err(Trouble::of(&error)),
                },
                Err(error) if jobs::is_conflict(&error) => self.shared.lock().counters.conflicts += 1,
                // Or make it invalid.
                Err(error) if failure::code(&error) == Some(422) && version.is_some() => {
                    self.make_room(&error).await?;
                }
                Err(error) => return Err(Trouble::of(&error)),
            }
            match failure::within(PATIENCE, self.api.get(&self.name.name)).await {
                Ok(found) => match object::whose(&found, Some(self.owner), controller) {
                    Whose::Ours if object::is_as_wanted(&found.value, &self.full) => {
                        self.shared.lock().owned_made(self.name, found, self.full.hash);
                        return Ok(());
                    }
                    Whose::Ours | Whose::Adoptable => version = Some(found.resource_version().to_owned()),
                    Whose::Foreign(why) => return Err(self.taken(&why)),
                },
                Err(error) if jobs::is_gone(&error) => version = None,
                Err(error) => return Err(Trouble::of(&error)),
            }
        }
        Err(Trouble::new("Conflict", "somebody else keeps writing the same object"))
    }

    async fn apply(&self, version: Option<&str>) -> Result<Raw, Error> {
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let mut value = self.full.value.clone();
        if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
            metadata.insert("resourceVersion".to_owned(), json!(version.unwrap_or(NO_VERSION)));
        }
        let change = Patch::Apply(&value);
        failure::within(PATIENCE, self.api.patch(&self.name.name, &parameters, &change)).await
    }

    /// Replaces what apply cannot change.
    async fn replace(&self, found: &Raw) -> Result<Raw, Error> {
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let mut change = replacement(&found.value, &self.full.value);
        if let Some(fields) = change.as_object_mut() {
            let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                // Only an apply may say what was applied.
                if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                    annotations.remove(object::APPLIED);
                }
                metadata.insert("uid".to_owned(), json!(found.uid()));
                metadata.insert("resourceVersion".to_owned(), json!(found.resource_version()));
            }
        }
        let change = Patch::Merge(&change);
        failure::within(PATIENCE, self.api.patch(&self.name.name, &parameters, &change)).await
    }

    /// Takes away what makes an object invalid together with what we want; if that is not it, the error stands.
    async fn make_room(&self, error: &Error) -> Result<(), Trouble> {
        let found = match failure::within(PATIENCE, self.api.get(&self.name.name)).await {
            Ok(found) => found,
            Err(error) if jobs::is_gone(&error) => return Ok(()),
            Err(error) => return Err(Trouble::of(&error)),
        };
        let controller = self.shared.settings.controller.as_str();
        if let Whose::Foreign(why) = object::whose(&found, Some(self.owner), controller) {
            return Err(self.taken(&why));
        }
        match self.replace(&found).await {
            Ok(_) => {
                self.shared.lock().count_write(self.name.kind.kind, "apply");
                Ok(())
            }
            Err(conflict) if jobs::is_conflict(&conflict) => Ok(()),
            Err(_) => Err(Trouble::of(error)),
        }
    }

    fn record(&self, made: Raw, version: Option<&str>) {
        let mut state = self.shared.lock();
        // An apply that changes nothing makes no new version.
        if version != Some(made.resource_version()) {
            state.count_write(self.name.kind.kind, "apply");
        }
        state.owned_made(self.name, made, self.full.hash);
    }

    fn taken(&self, why: &str) -> Trouble {
        let message = format!("{} exists and is not ours: {why}; delete or rename it", self.name);
        self.shared.lock().owned_conflict(self.name, message.clone());
        Trouble {
            longest: LONGEST_CONFLICT,
            ..Trouble::new("NameTaken", message)
        }
    }
}

async fn delete(shared: &Shared, api: &Api<Raw>, name: &OwnedName, uid: &str, version: &str) -> Result<(), Trouble> {
    let mut parameters = DeleteParams::background();
    // The version too: what was edited meanwhile is looked at again first.
    parameters.preconditions = Some(Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: Some(version.to_owned()),
    });
    match failure::within(PATIENCE, api.delete(&name.name, &parameters)).await {
        Ok(_) => {
            let mut state = shared.lock();
            state.count_write(name.kind.kind, "delete");
            state.owned_gone(name);
            Ok(())
        }
        Err(error) if jobs::is_gone(&error) => {
            shared.lock().owned_gone(name);
            Ok(())
        }
        // Another object by now, or a newer version of it: the watch tells.
        Err(error) if jobs::is_conflict(&error) => {
            shared.lock().counters.conflicts += 1;
            Err(Trouble::new("Conflict", "it was changed while it was to be deleted"))
        }
        Err(error) => Err(Trouble::of(&error)),
    }
}

fn publish_conflicts(shared: &Shared) {
    let conflicts = shared.lock().conflicts();
    shared.conflicts.send_if_modified(|known| {
        let is_news = **known != conflicts;
        if is_news {
            *known = Arc::new(conflicts);
        }
        is_news
    });
}
