//! Lists one kind of objects in pages, watches it, and always finds its way on.
//!
//! kube's own watcher takes whatever comes on a watch for events: it does not look at the status of the answer. So a version
//! that is refused with 410 is resumed for ever, a definition that is gone reads like garbage, an empty answer is asked for
//! again without a pause, and nobody hears that a watch is well again. Here each of these has a way out. Waiting after an
//! error is the caller's.

mod lines;

use std::{collections::VecDeque, time::Duration};

use ::kube::{
    Client, Error, Resource as _,
    api::{ApiResource, ListParams, WatchEvent, WatchParams},
    client::Body,
    core::{Request, Status},
};
use gatewright_api::meta::ListMeta;
use http::Response;
use http_body_util::{BodyExt, Limited};
use lines::Lines;
use serde::Deserialize;
use tokio::time::Instant;

use super::{failure, raw::Raw};

const PAGE: u32 = 500;
/// A page is there after this long, or something is wrong.
const LIST_PATIENCE: Duration = Duration::from_mins(1);
/// The beginning of an answer to a watch.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// The API server ends a watch after so many seconds.
const TIMEOUT: u32 = 120;
/// A watch silent for so long is dead: the server would have ended it or sent a bookmark.
const SILENCE: Duration = Duration::from_secs(130);
/// A watch that cannot be resumed so many times in a row is begun anew, with a list.
const MOST_RESUMPTIONS: u32 = 5;
/// However quickly watches end, they are not asked for more often than this.
const PACE: Duration = Duration::from_secs(1);
/// So much of an answer that is no stream is read.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// What is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// One namespace; all if not given.
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    /// Whether only metadata is asked for.
    pub(crate) is_metadata_only: bool,
}

/// Something happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// A list begins: what is not in it is gone.
    ListBegins,
    Listed(Raw),
    ListEnds,
    /// A watch has begun, or goes on after an interruption.
    Watching,
    Applied(Raw),
    Deleted(Raw),
}

/// The events of one kind of objects.
pub(crate) struct Events {
    client: Client,
    request: Request,
    selection: Selection,
    state: State,
    /// How often in a row a watch could not be resumed.
    refusals: u32,
    /// When the last watch was asked for.
    asked: Option<Instant>,
}

enum State {
    /// Nothing is known.
    Anew,
    Listing {
        page: VecDeque<Raw>,
        next: Next,
    },
    /// Everything up to this version is known.
    Known {
        version: String,
    },
    Watching {
        version: String,
        lines: Box<Lines>,
    },
}

/// What follows a page.
enum Next {
    Page(Option<String>),
    End { version: String },
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default)]
    items: Option<Vec<Raw>>,
}

impl Events {
    pub(crate) fn new(client: Client, resource: &ApiResource, selection: Selection) -> Self {
        Self {
            client,
            request: Request::new(Raw::url_path(resource, selection.namespace.as_deref())),
            selection,
            state: State::Anew,
            refusals: 0,
            asked: None,
        }
    }

    /// The next event, or an error after which the caller waits a little and asks again.
    ///
    /// May be dropped and called again without losing an event.
    pub(crate) async fn next(&mut self) -> Result<Event, Error> {
        loop {
            let event = match &mut self.state {
                State::Anew => {
                    self.state = State::Listing {
                        page: VecDeque::new(),
                        next: Next::Page(None),
                    };
                    Some(Event::ListBegins)
                }
                State::Listing { page, next } => match (page.pop_front(), next) {
                    (Some(raw), _) => Some(Event::Listed(raw)),
                    (None, Next::End { version }) => {
                        let version = std::mem::take(version);
                        self.state = State::Known { version };
                        Some(Event::ListEnds)
                    }
                    (None, Next::Page(token)) => {
                        let token = token.clone();
                        self.list(token).await?;
                        None
                    }
                },
                State::Known { version } => {
                    let version = version.clone();
                    self.start(version).await?
                }
                State::Watching { .. } => self.read().await?,
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    /// Reads a page.
    async fn list(&mut self, token: Option<String>) -> Result<(), Error> {
        let parameters = ListParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            limit: Some(PAGE),
            continue_token: token,
            ..ListParams::default()
        };
        let request = if self.selection.is_metadata_only {
            self.request.list_metadata(&parameters)
        } else {
            self.request.list(&parameters)
        };
        let request = request.map_err(Error::BuildRequest)?;
        let answer = failure::within(LIST_PATIENCE, self.client.request::<List>(request)).await;
        let List { metadata, items } = match answer {
            Ok(list) => list,
            Err(error) => {
                // Among other things, the page may have been asked for too late.
                self.state = State::Anew;
                return Err(error);
            }
        };
        let token = metadata.continue_.filter(|token| !token.is_empty());
        let next = match token {
            Some(token) => Next::Page(Some(token)),
            None => Next::End {
                version: metadata.resource_version.unwrap_or_default(),
            },
        };
        self.state = State::Listing {
            page: items.unwrap_or_default().into(),
            next,
        };
        Ok(())
    }

    /// Begins to watch after a version.
    async fn start(&mut self, version: String) -> Result<Option<Event>, Error> {
        if let Some(asked) = self.asked {
            tokio::time::sleep_until(asked + PACE).await;
        }
        let parameters = WatchParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            timeout: Some(TIMEOUT),
            ..WatchParams::default()
        };
        let request = if self.selection.is_metadata_only {
            self.request.watch_metadata(&parameters, &version)
        } else {
            self.request.watch(&parameters, &version)
        };
        let request = request.map_err(Error::BuildRequest)?.map(Body::from);
        self.asked = Some(Instant::now());
        let answer = failure::within(START_PATIENCE, self.client.send(request)).await?;
        if !answer.status().is_success() {
            let status = refusal(answer).await;
            return self.refused(status);
        }
        self.state = State::Watching {
            version,
            lines: Box::new(Lines::new(answer.into_body())),
        };
        Ok(Some(Event::Watching))
    }

    /// The server does not go on from the version we know.
    fn refused(&mut self, status: Box<Status>) -> Result<Option<Event>, Error> {
        self.refusals += 1;
        let is_lost = status.code == 410;
        // Any other answer may pass; the same one again and again does not. A version from the future, for example: the
        // cluster was restored from a backup.
        let may_pass = matches!(status.code, 401 | 403 | 404 | 429);
        if is_lost || (!may_pass && self.refusals > MOST_RESUMPTIONS) {
            self.refusals = 0;
            self.state = State::Anew;
        }
        if is_lost { Ok(None) } else { Err(Error::Api(status)) }
    }

    /// Reads one event of a watch.
    async fn read(&mut self) -> Result<Option<Event>, Error> {
        let State::Watching { version, lines } = &mut self.state else {
            return Ok(None);
        };
        let Ok(Some(line)) = tokio::time::timeout(SILENCE, lines.next()).await else {
            // Ended, cut or dead: resumed from the last version, which tells why if it cannot be.
            let version = std::mem::take(version);
            self.state = State::Known { version };
            return Ok(None);
        };
        let event = match serde_json::from_slice::<WatchEvent<Raw>>(&line) {
            Ok(event) => event,
            Err(error) => {
                // What was lost is not known: everything is read again.
                self.state = State::Anew;
                return Err(Error::SerdeError(error));
            }
        };
        let (known, event) = match event {
            WatchEvent::Added(raw) | WatchEvent::Modified(raw) => {
                (raw.resource_version().to_owned(), Some(Event::Applied(raw)))
            }
            WatchEvent::Deleted(raw) => (raw.resource_version().to_owned(), Some(Event::Deleted(raw))),
            WatchEvent::Bookmark(bookmark) => (bookmark.metadata.resource_version, None),
            WatchEvent::Error(status) => {
                let version = std::mem::take(version);
                self.state = State::Known { version };
                return self.refused(status);
            }
        };
        if !known.is_empty() {
            *version = known;
        }
        self.refusals = 0;
        Ok(event)
    }
}

/// What an answer that is no stream says.
async fn refusal(answer: Response<Body>) -> Box<Status> {
    let code = answer.status().as_u16();
    let reason = answer.status().canonical_reason().unwrap_or_default().replace(' ', "");
    let body = Limited::new(answer.into_body(), LONGEST_REFUSAL).collect();
    let body: Vec<u8> = match tokio::time::timeout(START_PATIENCE, body).await {
        Ok(Ok(body)) => body.to_bytes().into(),
        _ => Vec::new(),
    };
    let status = serde_json::from_slice::<Status>(&body).unwrap_or_else(|_| {
        // From something between us and the API server, or from a path that it does not have.
        let text = String::from_utf8_lossy(&body);
        Status::failure(text.lines().next().unwrap_or_default(), &reason)
    });
    status.with_code(code).boxed()
}
