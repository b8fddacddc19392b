//! The log: lines on stderr, whose level and format can be changed while the program runs.
//!
//! Set up once per process by the commands that serve; the admin API holds the [`LogControl`].

mod lines;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use arc_swap::ArcSwap;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tracing_subscriber::{EnvFilter, Registry, layer::SubscriberExt, reload, util::SubscriberInitExt};

use lines::Lines;

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people: time, level, message, `key=value`
    Text,
    /// For machines: one JSON object per line
    Json,
}

/// What the log shows.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct LogSettings {
    /// What to log: off, error, warn, info, debug or trace, also per part (`warn,gatewright_proxy=debug`)
    #[arg(long = "log-level", value_name = "LEVEL", default_value = "info", env = "GATEWRIGHT_LOG_LEVEL", value_parser = parse_level)]
    pub(crate) level: String,
    /// How log lines look
    #[arg(
        long = "log-format",
        value_name = "FORMAT",
        default_value = "text",
        env = "GATEWRIGHT_LOG_FORMAT"
    )]
    pub(crate) format: LogFormat,
}

/// Changes the running log.
#[derive(Clone)]
pub(crate) struct LogControl {
    filter: reload::Handle<EnvFilter, Registry>,
    is_json: Arc<AtomicBool>,
    settings: Arc<ArcSwap<LogSettings>>,
}

/// Starts the log of this process.
pub(crate) fn start(settings: LogSettings) -> LogControl {
    // The level was checked when the arguments were parsed.
    let filter = parse_filter(&settings.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let (filter, handle) = reload::Layer::new(filter);
    let is_json = Arc::new(AtomicBool::new(settings.format == LogFormat::Json));
    let lines = tracing_subscriber::fmt::layer()
        .event_format(Lines::new(Arc::clone(&is_json)))
        // The stream strips what the terminal does not want.
        .with_ansi(true)
        .with_writer(anstream::stderr);
    // Fails only when the process has a log already; that one then stays.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    LogControl {
        filter: handle,
        is_json,
        settings: Arc::new(ArcSwap::from_pointee(settings)),
    }
}

impl LogControl {
    /// What the log shows now.
    pub(crate) fn settings(&self) -> Arc<LogSettings> {
        self.settings.load_full()
    }

    /// Changes what the log shows. What is absent stays as it is.
    pub(crate) fn change(&self, level: Option<String>, format: Option<LogFormat>) -> Result<Arc<LogSettings>, String> {
        let mut settings = LogSettings::clone(&self.settings.load());
        if let Some(level) = level {
            let filter = parse_filter(&level)?;
            self.filter
                .reload(filter)
                .map_err(|error| format!("the log cannot be changed: {error}"))?;
            settings.level = level;
        }
        if let Some(format) = format {
            self.is_json.store(format == LogFormat::Json, Ordering::Relaxed);
            settings.format = format;
        }
        self.settings.store(Arc::new(settings));
        Ok(self.settings())
    }
}

/// What these say of failing requests, those who made the requests say better; and whoever scans a port must not fill the log
/// with his handshakes.
const NOISE: &str = "kube_client=off,kube_runtime=off,hyper_util=off,tower=off,rustls=error";

fn parse_level(text: &str) -> Result<String, String> {
    parse_filter(text).map(|_| text.to_owned())
}

/// A level alone is about our own parts; of those of others only warnings are of interest.
fn parse_filter(text: &str) -> Result<EnvFilter, String> {
    let filter = match text.to_ascii_lowercase().as_str() {
        level @ ("info" | "debug" | "trace") => format!("warn,{NOISE},gatewright={level}"),
        "" => return Err("the log level must not be empty".to_owned()),
        other => other.to_owned(),
    };
    EnvFilter::try_new(filter).map_err(|error| {
        format!("{text:?} is no log level ({error}); write for example info, or warn,gatewright_proxy=debug")
    })
}
