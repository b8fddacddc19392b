//! Addresses on the command line: `127.0.0.1:9870`, `[::1]:9870`, `:9870` for all addresses, `off` for none.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
};

/// Where to listen, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bind(pub(crate) Option<SocketAddr>);

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Kubernetes' own flags of these names use `0` for none and a bare port for all addresses.
        if text == "off" || text == "0" {
            return Ok(Self(None));
        }
        let address = match text.strip_prefix(':') {
            Some(port) => port
                .parse()
                .ok()
                .map(|port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
            None => text.parse().ok(),
        };
        let address = address.ok_or("write ADDRESS:PORT, :PORT for all addresses, or off")?;
        Ok(Self(Some(address)))
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(out),
            None => out.write_str("off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bind;

    #[test]
    fn a_bare_port_means_all_addresses_and_off_means_none() {
        assert_eq!(":9871".parse::<Bind>().unwrap().to_string(), "0.0.0.0:9871");
        assert_eq!("[::1]:1".parse::<Bind>().unwrap().to_string(), "[::1]:1");
        assert_eq!(
            ["0", "off"].map(|text| text.parse::<Bind>().unwrap()),
            [Bind(None), Bind(None)]
        );
        assert!("localhost".parse::<Bind>().is_err());
    }
}
