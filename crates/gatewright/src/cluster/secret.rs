//! A secret that all replicas of an installation have, for the tokens of session persistence: a client may come to another
//! replica with each request.
//!
//! It is made from the UID of the Lease that elects the writer. That is random, the same for all, and seen by those alone
//! who may read Leases in the replicas' namespace; so nothing has to be written, and no right is needed that a replica does
//! not have already. [`Link`](super::Link) waits for it; nothing else knows where it comes from.

use std::{future::pending, time::Duration};

use aws_lc_rs::hmac;
use gatewright_ir::SessionKey;
use tokio::{sync::watch, time::Instant};

/// A replica that knows the cluster, and its Lease not even after this time, serves without.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the secret is for. Another use would have another text.
const PURPOSE: &[u8] = b"gatewright session persistence";

/// The secret, until it is known.
pub(super) struct SharedSecret {
    uid: watch::Receiver<Option<String>>,
    /// When everything else was known.
    waits_since: Option<Instant>,
    is_settled: bool,
}

impl SharedSecret {
    /// A secret from the UID of a Lease.
    pub(super) fn new(uid: watch::Receiver<Option<String>>) -> Self {
        Self {
            uid,
            waits_since: None,
            is_settled: false,
        }
    }

    /// Nothing else is waited for any more.
    pub(super) fn hurry(&mut self) {
        self.waits_since.get_or_insert_with(Instant::now);
    }

    /// Whether it is known, or is not waited for any longer.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// The secret, or that there is none; once. May be dropped and called again.
    pub(super) async fn settle(&mut self) -> Option<SessionKey> {
        if self.is_settled {
            return pending().await;
        }
        let limit = self.waits_since.map(|since| since + PATIENCE);
        let patience = async {
            match limit {
                Some(limit) => tokio::time::sleep_until(limit).await,
                None => pending().await,
            }
        };
        let key = tokio::select! {
            biased;
            Ok(uid) = self.uid.wait_for(Option::is_some) => uid.as_deref().map(from_uid),
            () = patience => None,
        };
        if key.is_none() {
            tracing::warn!(
                "the Lease of the replicas cannot be read, so this replica does not know the sessions of others"
            );
        }
        self.is_settled = true;
        key
    }
}

fn from_uid(uid: &str) -> SessionKey {
    let key = hmac::Key::new(hmac::HMAC_SHA256, uid.as_bytes());
    let mut secret = [0; 32];
    for (place, byte) in secret.iter_mut().zip(hmac::sign(&key, PURPOSE).as_ref()) {
        *place = *byte;
    }
    SessionKey::new(secret)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::sync::watch;

    use super::{PATIENCE, SharedSecret};

    #[tokio::test]
    async fn replicas_of_one_lease_have_one_secret_and_those_of_another_another() {
        let secret = async |uid: &str| {
            let (_sender, receiver) = watch::channel(Some(uid.to_owned()));
            SharedSecret::new(receiver).settle().await.unwrap().expose().to_owned()
        };
        assert_eq!(secret("one").await, secret("one").await);
        assert_ne!(secret("one").await, secret("two").await);
        assert_ne!(secret("one").await, [0; 32]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_waited_for_until_nothing_else_is() {
        let (sender, receiver) = watch::channel(None);
        let mut secret = SharedSecret::new(receiver);
        let waited = tokio::time::timeout(Duration::from_hours(1), secret.settle()).await;
        assert!(waited.is_err() && !secret.is_settled());
        sender.send_replace(Some("late".to_owned()));
        assert!(secret.settle().now_or_never().flatten().is_some());
        assert!(
            secret.is_settled() && secret.settle().now_or_never().is_none(),
            "said once"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_cannot_be_read_holds_nothing_up_for_long() {
        let (_sender, receiver) = watch::channel(None);
        let mut secret = SharedSecret::new(receiver);
        secret.hurry();
        let begun = tokio::time::Instant::now();
        assert!(secret.settle().await.is_none() && secret.is_settled());
        assert!(begun.elapsed() >= PATIENCE);
    }
}
