//! Asks somebody else whether a request may pass, and what to put on it if so.
//!
//! The codecs call [`Question::settle`] for requests of rules with an external authorisation filter; it reads as much of the
//! body as the filter wants, asks, and decides upon the request again. Whatever goes wrong refuses the request.

use std::{
    future::poll_fn,
    pin::pin,
    rc::Rc,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{
    BodyError, Client, Content, Decision, Downstream, Ending, Fill, Held, HeldListener, HeldRoute, Job, LocalAnswer,
    Reason, ResponseView, Sender, Watched,
    aside::Aside,
    ask::{self, Asking, Ruling},
    attempt::run,
    prepare::{Asked, Case, Stage, authoriser},
    replay::Kept,
    request::KeptHead,
};
use crate::{
    h1::BodyLength,
    matching::{CompiledAuth, CompiledEntry, HeaderChanges},
    worker::Deadline,
};

/// How long an authoriser may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of an authoriser's answer.
const MOST_ANSWER: usize = 64 * 1024;

/// A request about which an authoriser has to be asked.
pub(crate) struct Question {
    pub(super) routing: Rc<Held>,
    pub(super) listener: Rc<HeldListener>,
    pub(super) route: Rc<HeldRoute>,
    pub(super) entry: Arc<CompiledEntry>,
    pub(super) head: KeptHead,
    pub(super) asked: Asked,
    pub(super) stage: Stage,
    /// What CORS says on the response, also on a refusal.
    pub(super) cors: Option<Box<HeaderChanges>>,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Question")
            .field("route", &self.route)
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

/// Who asks on whose behalf.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// The client's connection.
    pub(crate) client: &'a Client,
    /// A deadline that nothing else uses meanwhile.
    pub(crate) deadline: &'a Deadline,
    /// The client's address as text.
    pub(crate) peer: &'a str,
    /// When the request began.
    pub(crate) started: Instant,
}

impl Question {
    /// Asks, and decides upon the request again.
    pub(crate) async fn settle<D: Downstream>(
        mut self: Box<Self>,
        stream: &mut D,
        asker: Asker<'_>,
        out: &mut Vec<u8>,
    ) -> Decision {
        match self.ruling(stream, asker).await {
            Ok(Ruling::Granted { request, response }) => {
                let stage = &mut self.stage;
                stage.granted = Some(Box::new(HeaderChanges::join(stage.granted.take(), *request)));
                if let Some(response) = response {
                    stage.response = Some(Box::new(HeaderChanges::join(stage.response.take(), *response)));
                }
                match self.asked {
                    Asked::Rule => stage.rule_agrees = true,
                    Asked::Backend => stage.backend_agrees = true,
                }
                self.decide(asker, out)
            }
            Ok(Ruling::Denied(denied)) => self.refuse(Content::Denied(denied)),
            Err(reason) => self.refuse(Content::Reason(reason)),
        }
    }

    fn decide(self: Box<Self>, asker: Asker<'_>, out: &mut Vec<u8>) -> Decision {
        let Self {
            routing,
            listener,
            route,
            entry,
            head,
            stage,
            asked: _,
            cors: _,
        } = *self;
        let fields = head.fields();
        let case = Case {
            routing: &routing,
            client: asker.client,
            peer: asker.peer,
            listener: &listener,
            route: &route,
            entry: &entry,
            request: &head.parts(&fields),
        };
        case.decide(stage, out)
    }

    fn refuse(self: Box<Self>, content: Content) -> Decision {
        Decision::Answer(LocalAnswer {
            listener: Some(self.listener),
            route: Some(self.route),
            place: self.stage.chosen.map(|(place, _)| place),
            content,
            cors: self.cors,
            is_grpc: self.head.facts.is_grpc,
        })
    }

    async fn ruling<D: Downstream>(&mut self, stream: &mut D, asker: Asker<'_>) -> Result<Ruling, Reason> {
        let route = Rc::clone(&self.route);
        let auth = authoriser(&route, self.asked, &self.stage).ok_or(Reason::AuthUnavailable)?;
        let body = self.body(stream, asker, auth).await?;
        let worker = &asker.client.worker;
        // Where nobody can be asked, nobody has agreed.
        let cluster = route
            .cluster(&auth.target, &self.routing.table, worker)
            .map_err(|_| Reason::AuthUnavailable)?;
        let fields = self.head.fields();
        let settings = &self.listener.listener.settings;
        let question = Asking {
            auth,
            request: &self.head.parts(&fields),
            sender: Sender {
                peer: asker.peer,
                is_trusted: asker.client.is_trusted(settings),
                allows_underscores: settings.allow_underscores,
            },
            peer: asker.client.peer,
            body: &body,
        };
        let (forward, text, sent) =
            ask::prepare(&question, &self.listener, &route, cluster).ok_or(Reason::AuthUnavailable)?;
        let mut aside = Aside::question(sent, MOST_ANSWER);
        let limit = self.route.rule.rule.timeouts.request.map(|limit| asker.started + limit);
        let until = limit.map_or(Instant::now() + PATIENCE, |limit| limit.min(Instant::now() + PATIENCE));
        let job = Job::aside(worker, asker.deadline, &forward, &text).until(until);
        let ending = while_there(stream, run(&mut aside, job, None))
            .await
            .map(|report| report.ending);
        if limit.is_some_and(|limit| limit <= Instant::now()) {
            return Err(Reason::RequestTimeout);
        }
        match (ending, aside.heard) {
            (Some(Ending::Complete), Some(heard)) => ask::read(auth, *heard),
            _ => Err(Reason::AuthUnavailable),
        }
    }

    /// The part of the body that the authoriser wants to see: all of it, or none.
    async fn body<D: Downstream>(
        &mut self,
        stream: &mut D,
        asker: Asker<'_>,
        auth: &CompiledAuth,
    ) -> Result<Bytes, Reason> {
        let facts = self.head.facts;
        let Some(most) = auth.max_body.filter(|_| !facts.body.is_empty()) else {
            return Ok(Bytes::new());
        };
        if matches!(facts.body, BodyLength::Known(length) if length > most as u64) {
            return Err(Reason::BodyTooLarge);
        }
        let kept = match &mut self.stage.body {
            Some(kept) => kept,
            none => {
                if facts.expects_continue {
                    stream.interim(&CONTINUE);
                    self.head.facts.expects_continue = false;
                }
                let patience = self.listener.listener.settings.body_timeout;
                let kept = Kept::new(&asker.client.worker);
                none.insert(read(stream, asker.deadline, patience, most, kept).await?)
            }
        };
        if kept.bytes().len() > most {
            return Err(Reason::BodyTooLarge);
        }
        Ok(Bytes::copy_from_slice(kept.bytes()))
    }
}

/// What tells a client to send its body.
const CONTINUE: ResponseView<'static> = ResponseView {
    status: 100,
    fields: &[],
    body: BodyLength::Known(0),
    stated_length: None,
};

/// What a future gives, unless the client goes away before.
async fn while_there<D: Downstream, T>(stream: &mut D, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut is_half_closed = false;
    poll_fn(|context| {
        if let Poll::Ready(given) = future.as_mut().poll(context) {
            return Poll::Ready(Some(given));
        }
        if !is_half_closed {
            match stream.poll_watch(context) {
                Poll::Ready(Watched::Gone) => return Poll::Ready(None),
                Poll::Ready(Watched::HalfClosed) => is_half_closed = true,
                Poll::Pending => {}
            }
        }
        Poll::Pending
    })
    .await
}

/// Reads a whole body of at most so many bytes.
async fn read<D: Downstream>(
    stream: &mut D,
    deadline: &Deadline,
    patience: Duration,
    most: usize,
    mut kept: Kept,
) -> Result<Kept, Reason> {
    deadline.set(Instant::now(), patience);
    poll_fn(|context| {
        // What tells the client to go on; a client that cannot be told shows below.
        _ = stream.poll_flush(context);
        loop {
            match stream.poll_fill(context) {
                Poll::Ready(Ok(Fill::Data)) => {
                    let there = stream.filled();
                    if kept.bytes().len() + there.len() > most {
                        return Poll::Ready(Err(Reason::BodyTooLarge));
                    }
                    if !kept.add(there) {
                        return Poll::Ready(Err(Reason::Overloaded));
                    }
                    let count = there.len();
                    stream.consume(count);
                    deadline.set(Instant::now(), patience);
                }
                Poll::Ready(Ok(Fill::End)) => {
                    kept.trailers = stream.take_trailers();
                    kept.is_whole = true;
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Err(BodyError::Malformed)) => return Poll::Ready(Err(Reason::MalformedChunk)),
                // Nobody will read this answer.
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Reason::BodyTimeout)),
                Poll::Pending => return deadline.poll(context).map(|()| Err(Reason::BodyTimeout)),
            }
        }
    })
    .await
    .map(|()| kept)
}
