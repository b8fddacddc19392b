//! Where a kind is read when only some namespaces are watched: everywhere if we may, else in those namespaces.
//!
//! The watch, the writer's watch of what we own and its regular comparison ask this, so that all three look at the same
//! objects. Asked, not tried: with the rights of a namespaced installation nothing is ever refused. Whoever is
//! authenticated may ask what it may do, so no right is needed for this.

use std::time::Duration;

use ::kube::{
    Api, Client, Error,
    api::{ApiResource, PostParams},
};
use serde_json::{Value, json};

use super::{backoff::Backoff, failure, raw::Raw};

/// An answer takes no longer.
const PATIENCE: Duration = Duration::from_secs(15);

/// The places in which to read a kind: one without a namespace stands for all of them. Asks until there is an answer.
pub(crate) async fn reach(client: &Client, resource: &ApiResource, namespaces: &[String]) -> Vec<Option<String>> {
    if namespaces.is_empty() {
        return vec![None];
    }
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));
    loop {
        match may_list_everywhere(client, resource).await {
            Ok(true) => return vec![None],
            Ok(false) => return namespaces.iter().cloned().map(Some).collect(),
            Err(error) => {
                let kind = &resource.kind;
                tracing::debug!(
                    kind,
                    message = failure::message(&error),
                    "whether it may be listed everywhere is not known"
                );
                let wait = failure::retry_after(&error).unwrap_or_default();
                tokio::time::sleep(backoff.next().max(wait)).await;
            }
        }
    }
}

async fn may_list_everywhere(client: &Client, resource: &ApiResource) -> Result<bool, Error> {
    let review = ApiResource {
        group: "authorization.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "authorization.k8s.io/v1".to_owned(),
        kind: "SelfSubjectAccessReview".to_owned(),
        plural: "selfsubjectaccessreviews".to_owned(),
    };
    let question = json!({
        "apiVersion": review.api_version,
        "kind": review.kind,
        "spec": { "resourceAttributes": { "group": resource.group, "resource": resource.plural, "verb": "list" } },
    });
    let question = Raw::of(question).map_err(Error::SerdeError)?;
    let reviews: Api<Raw> = Api::all_with(client.clone(), &review);
    let parameters = PostParams::default();
    match failure::within(PATIENCE, reviews.create(&parameters, &question)).await {
        Ok(answer) => Ok(answer.status().get("allowed").and_then(Value::as_bool) == Some(true)),
        // Where even asking is forbidden, trying tells.
        Err(error) if matches!(failure::code(&error), Some(403 | 404)) => Ok(true),
        Err(error) => Err(error),
    }
}
