//! `/retry/…`: requests that fail a number of times, for tests of retries.
//!
//! Called before the echo. Counts attempts per identifier in the memory of the backend, so such a backend must have
//! one replica.

use http::StatusCode;

use super::{
    Answer,
    paths::{bad_parameter, text},
};
use crate::{
    backend::Session,
    body::{Severed, full},
    query::{BadParameter, Query},
};

struct Attempt {
    identifier: String,
    failures: u64,
    status: Option<StatusCode>,
    delay: std::time::Duration,
}

/// The failed answer to this attempt; `None` once it shall succeed.
pub(super) async fn failure(session: &Session, query: Query<'_>) -> Result<Option<Answer>, Severed> {
    let attempt = match read(query) {
        Ok(Some(attempt)) => attempt,
        Ok(None) => {
            return Ok(Some(text(
                StatusCode::BAD_REQUEST,
                "uuid and succeedAfter are required\n",
            )));
        }
        Err(problem) => return Ok(Some(bad_parameter(problem))),
    };
    if session.backend.attempts_before(&attempt.identifier) >= attempt.failures {
        return Ok(None);
    }
    if !attempt.delay.is_zero() {
        tokio::time::sleep(attempt.delay).await;
    }
    let Some(status) = attempt.status else {
        session.ending.reset();
        return Err(Severed);
    };
    let mut answer = Answer::new(full(""));
    *answer.status_mut() = status;
    Ok(Some(answer))
}

fn read(query: Query<'_>) -> Result<Option<Attempt>, BadParameter> {
    let (Some(identifier), Some(failures)) = (query.text("uuid"), query.number("succeedAfter")?) else {
        return Ok(None);
    };
    let status = match query.number::<u16>("responseCode")? {
        None => None,
        Some(code) if code < 200 => return Err(BadParameter(format!("responseCode={code} is not a final status"))),
        Some(code) => {
            Some(StatusCode::from_u16(code).map_err(|_| BadParameter(format!("responseCode={code} is not a status")))?)
        }
    };
    let delay = query.duration("delayRetry")?.unwrap_or_default();
    Ok(Some(Attempt {
        identifier,
        failures,
        status,
        delay,
    }))
}
