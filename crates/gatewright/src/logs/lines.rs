//! One event of the log as one line, in either format.
//!
//! Both formats are made here, so that switching between them at run time concerns nothing else. Spans are not shown: the
//! program logs events with their own fields.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use jiff::Timestamp;
use owo_colors::OwoColorize;
use serde_json::Value;
use tracing::{Event, Level, Subscriber, field::Field};
use tracing_subscriber::{
    field::Visit,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

use crate::ui::printable;

/// Formats events.
pub(super) struct Lines {
    is_json: Arc<AtomicBool>,
}

impl Lines {
    pub(super) fn new(is_json: Arc<AtomicBool>) -> Self {
        Self { is_json }
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let now = Timestamp::now();
        if self.is_json.load(Ordering::Relaxed) {
            json(out, event, fields, now)
        } else {
            text(out, event, &fields, now)
        }
    }
}

fn text(mut out: Writer<'_>, event: &Event<'_>, fields: &Fields, now: Timestamp) -> fmt::Result {
    write!(out, "{} ", format_args!("{now:.3}").dimmed())?;
    match *event.metadata().level() {
        Level::ERROR => write!(out, "{}", "ERROR".red().bold())?,
        Level::WARN => write!(out, "{}", " WARN".yellow().bold())?,
        Level::INFO => write!(out, "{}", " INFO".green())?,
        Level::DEBUG => write!(out, "{}", "DEBUG".blue())?,
        Level::TRACE => write!(out, "{}", "TRACE".purple())?,
    }
    // Lines of a message are ours; whatever else could command a terminal is not.
    for (position, line) in fields.message.split('\n').enumerate() {
        let start = if position == 0 { ' ' } else { '\n' };
        write!(out, "{start}{}", printable(line))?;
    }
    // A message of several lines, such as a problem in a file, says in its lines what its fields say to machines.
    if !fields.message.contains('\n') {
        for (name, value) in &fields.others {
            match value {
                Value::String(text) if is_plain(text) => write!(out, " {}={text}", name.italic())?,
                value => write!(out, " {}={value}", name.italic())?,
            }
        }
    }
    writeln!(out)
}

/// Whether a value can stand without quotes; anything a client could have put in cannot break the line.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|char| !char.is_whitespace() && !char.is_control() && char != '"')
}

fn json(mut out: Writer<'_>, event: &Event<'_>, fields: Fields, now: Timestamp) -> fmt::Result {
    let Fields {
        message,
        target,
        others,
    } = fields;
    let metadata = event.metadata();
    let level = metadata.level().as_str().to_lowercase();
    let target = target.as_deref().unwrap_or_else(|| metadata.target());
    // Written field by field, so that a line begins with what every line has.
    write!(
        out,
        r#"{{"time":"{now:.3}","level":"{level}","target":{},"message":{}"#,
        Value::from(target),
        Value::from(message)
    )?;
    for (name, value) in others {
        write!(out, ",{}:{value}", Value::from(name))?;
    }
    writeln!(out, "}}")
}

/// The fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    /// The target of a record that came through the `log` crate, which some dependencies use.
    target: Option<String>,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(message)) => self.message = message,
            ("log.target", Value::String(target)) => self.target = Some(target),
            (name, _) if name.starts_with("log.") => {}
            (name, value) => self.others.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Value::from(value));
    }
}

#[cfg(test)]
mod tests;
