//! A watch that always finds its way on.
//!
//! kube's watcher lists, pages, resumes and keeps bookmarks. It does not leave a version that the server refuses with a
//! status instead of an event, as some do and as all do after a restore from a backup: here such a watch begins anew,
//! with a list. Waiting after errors is the caller's.

use std::time::Duration;

use ::kube::{
    Api, Error,
    runtime::watcher::{self, Config, Event},
};
use futures::{StreamExt, stream::BoxStream};

use super::{failure, raw::Raw};

/// A watch that cannot be resumed so many times in a row is begun anew.
const MOST_RESUMPTIONS: u32 = 5;
/// Between a refused version and the list that follows.
const BREATH: Duration = Duration::from_millis(500);
/// The API server ends a watch after so many seconds, and a connection silent for a little longer is taken for dead.
pub(crate) const TIMEOUT: u32 = 120;
const PAGE: u32 = 500;

/// The events of one kind of objects.
pub(crate) struct Events {
    api: Api<Raw>,
    config: Config,
    stream: BoxStream<'static, watcher::Result<Event<Raw>>>,
    resumptions: u32,
}

impl Events {
    pub(crate) fn new(api: Api<Raw>, config: Config) -> Self {
        let config = config.page_size(PAGE).timeout(TIMEOUT);
        Self {
            stream: watcher::watcher(api.clone(), config.clone()).boxed(),
            api,
            config,
            resumptions: 0,
        }
    }

    /// The next event, or an error after which the caller waits a little and asks again.
    ///
    /// May be dropped and called again without losing an event.
    pub(crate) async fn next(&mut self) -> Result<Event<Raw>, Error> {
        loop {
            let error = match self.stream.next().await {
                Some(Ok(event)) => {
                    self.resumptions = 0;
                    return Ok(event);
                }
                Some(Err(error)) => error,
                None => {
                    self.begin_anew();
                    continue;
                }
            };
            match error {
                watcher::Error::InitialListFailed(error) | watcher::Error::WatchFailed(error) => return Err(error),
                // Within the stream, which the server ends now. The watcher itself lists again on 410.
                watcher::Error::WatchError(status) if status.code == 410 => {}
                watcher::Error::WatchError(status) => return Err(Error::Api(status)),
                // The watcher begins anew.
                watcher::Error::NoResourceVersion => tokio::time::sleep(BREATH).await,
                watcher::Error::WatchStartFailed(error) => {
                    self.resumptions += 1;
                    let code = failure::code(&error);
                    let is_lost = code == Some(410);
                    // Any other answer may pass; the same one again and again does not.
                    let is_stuck = code.is_some_and(|code| code != 403 && code != 404 && code != 429)
                        && self.resumptions > MOST_RESUMPTIONS;
                    if is_lost || is_stuck {
                        self.begin_anew();
                        tokio::time::sleep(BREATH).await;
                    }
                    if !is_lost {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn begin_anew(&mut self) {
        self.stream = watcher::watcher(self.api.clone(), self.config.clone()).boxed();
        self.resumptions = 0;
    }
}
