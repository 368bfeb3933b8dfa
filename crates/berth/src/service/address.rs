//! Addresses to listen on, as a user writes them and as clients reach them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let advice = "give an IP address with a port, as 127.0.0.1:6443, [::1]:6443 or 0.0.0.0:6443; names such as \
                      localhost are not taken";
        text.parse().map(Self).map_err(|_| advice.to_owned())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// How clients on this machine reach an address: the wildcard addresses are for listening only.
pub(crate) fn url_host(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_address_is_reached_through_loopback() {
        let host = |address: &str| url_host(address.parse().unwrap()).to_string();
        assert_eq!(host("0.0.0.0:6443"), "127.0.0.1:6443");
        assert_eq!(host("[::]:6443"), "[::1]:6443");
        assert_eq!(host("127.0.0.1:1"), "127.0.0.1:1");
        assert_eq!(host("192.0.2.7:6443"), "192.0.2.7:6443");
    }
}
