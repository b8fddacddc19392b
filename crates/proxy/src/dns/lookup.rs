//! One question to the name servers, and what they say.
//!
//! The system's configuration is read again when its files change, so that a host that moves to another network needs no
//! restart.

use std::{
    fmt, fs,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use hickory_resolver::{
    TokioResolver,
    config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts},
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::rr::Name,
    system_conf::read_system_conf,
};
use parking_lot::Mutex;

/// The files that the system's configuration consists of.
const FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];

/// Asks name servers.
#[derive(Debug)]
pub(super) struct Lookup(Mutex<Current>);

#[derive(Debug)]
struct Current {
    /// Absent when none could be made.
    client: Option<Arc<TokioResolver>>,
    /// When the system's files were last changed; absent when the configuration is not the system's.
    files: Option<Stamps>,
}

type Stamps = [Option<SystemTime>; FILES.len()];

/// What name servers say about a name.
#[derive(Debug)]
pub(super) enum Answer {
    Found {
        addresses: Vec<IpAddr>,
        /// How long the records are valid.
        lifetime: Duration,
    },
    /// The name does not exist, or has no addresses.
    Nothing,
    /// Nobody could say.
    Failed(NetError),
}

impl Lookup {
    /// Asks whom the system asks.
    pub(super) fn system() -> Self {
        let files = Some(stamps());
        let client = system_client();
        Self(Mutex::new(Current { client, files }))
    }

    /// Asks the given name servers.
    #[cfg(test)]
    pub(super) fn with(config: ResolverConfig, options: ResolverOpts) -> Self {
        let client = client(config, options);
        Self(Mutex::new(Current { client, files: None }))
    }

    /// Asks for the addresses of a name. It is taken as complete: no search domain of the host is tried, as these would
    /// let another name answer.
    pub(super) async fn addresses(&self, name: &str) -> Answer {
        let mut name = match Name::from_ascii(name) {
            Ok(name) => name,
            Err(error) => return Answer::Failed(error.into()),
        };
        name.set_fqdn(true);
        let Some(client) = self.client() else {
            return Answer::Failed(NetError::Message("no name server can be asked"));
        };
        match client.lookup_ip(name).await {
            Ok(found) => Answer::Found {
                lifetime: found.valid_until().saturating_duration_since(Instant::now()),
                addresses: found.iter().collect(),
            },
            Err(error) if error.is_no_records_found() => Answer::Nothing,
            Err(error) => Answer::Failed(error),
        }
    }

    fn client(&self) -> Option<Arc<TokioResolver>> {
        let mut current = self.0.lock();
        if current.files.is_some_and(|files| files != stamps()) {
            current.files = Some(stamps());
            current.client = system_client();
        }
        current.client.clone()
    }
}

fn stamps() -> Stamps {
    FILES.map(|file| fs::metadata(file).and_then(|file| file.modified()).ok())
}

fn system_client() -> Option<Arc<TokioResolver>> {
    let (config, options) = read_system_conf().unwrap_or_else(|error| {
        // What the C library does on a host without a configuration. The hosts file is read in any case.
        tracing::info!(%error, "no resolver configuration; asking the name server on this host");
        let here = NameServerConfig::udp_and_tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));
        (ResolverConfig::from_name_servers(vec![here]), ResolverOpts::default())
    });
    client(config, options)
}

fn client(config: ResolverConfig, mut options: ResolverOpts) -> Option<Arc<TokioResolver>> {
    // Each question is asked when the answer before it has expired: a cache could only make it older.
    options.cache_size = 0;
    // Many hosts have IPv6 addresses in the DNS and no way to reach them, so IPv4 is asked for first.
    options.ip_strategy = LookupIpStrategy::Ipv4thenIpv6;
    options.use_hosts_file = ResolveHosts::Always;
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
        .inspect_err(|error| tracing::error!(%error, "names of backends cannot be resolved"))
        .ok()
        .map(Arc::new)
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found { addresses, .. } => write!(out, "{} addresses", addresses.len()),
            Self::Nothing => out.write_str("the name has no addresses"),
            Self::Failed(error) => error.fmt(out),
        }
    }
}
