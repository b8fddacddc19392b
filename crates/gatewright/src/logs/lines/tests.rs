//! Both formats, on events that try to break them.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt;

use super::Lines;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is logged, without colour.
fn logged(is_json: &Arc<AtomicBool>, log: impl FnOnce()) -> String {
    let sink = Sink::default();
    let writer = sink.clone();
    let layer = tracing_subscriber::fmt::layer()
        .event_format(Lines::new(Arc::clone(is_json)))
        .with_writer(move || writer.clone());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
    let bytes = sink.0.lock().unwrap().clone();
    anstream::adapter::strip_str(&String::from_utf8(bytes).unwrap()).to_string()
}

/// The line without its time.
fn after_time(line: &str) -> &str {
    line.split_once("Z ").unwrap().1
}

#[test]
fn text_shows_level_message_and_fields() {
    let line = logged(&Arc::default(), || {
        tracing::warn!(address = "127.0.0.1:80", count = 3, name = "two words", "cannot listen");
    });
    assert_eq!(
        after_time(&line),
        " WARN cannot listen address=127.0.0.1:80 count=3 name=\"two words\"\n"
    );
}

#[test]
fn what_would_command_a_terminal_or_begin_a_line_is_not_written() {
    let evil = "\u{1b}[2J\r\nERROR forged";
    let line = logged(&Arc::default(), || tracing::info!(path = evil, "request"));
    assert_eq!(
        after_time(&line),
        " INFO request path=\"\\u001b[2J\\r\\nERROR forged\"\n"
    );
    let line = logged(&Arc::default(), || tracing::info!("bell \u{7} end"));
    assert_eq!(after_time(&line), " INFO bell \u{fffd} end\n");
}

#[test]
fn a_message_of_several_lines_stands_for_its_fields() {
    let line = logged(&Arc::default(), || tracing::error!(code = "GW1", "first\n  second"));
    assert_eq!(after_time(&line), "ERROR first\n  second\n");
}

#[test]
fn json_is_one_object_per_line_and_the_format_changes_at_once() {
    let is_json = Arc::new(AtomicBool::new(true));
    let text = logged(&is_json, || {
        tracing::info!(quote = "\"", number = 7, "first\nsecond");
        is_json.store(false, Ordering::Relaxed);
        tracing::info!("third");
    });
    let (first, second) = text.split_once('\n').unwrap();
    let value: Value = serde_json::from_str(first).unwrap();
    assert_eq!(value["message"], "first\nsecond");
    assert_eq!(
        (&value["quote"], &value["number"], &value["level"]),
        (&"\"".into(), &7.into(), &"info".into())
    );
    assert_eq!(after_time(second), " INFO third\n");
}
