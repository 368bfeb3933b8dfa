//! IP addresses and networks.
//!
//! As strict as Kubernetes: no leading zeros, no zones, no IPv4 addresses dressed up as IPv6.

use std::fmt;
use std::net::IpAddr;

use berth_text::gotext::quote;

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("ip", "string_to_ip", "(string) -> net.IP", ip),
    ("ip", "cidr_ip", "net.CIDR.() -> net.IP", cidr_ip),
    ("isIP", "is_ip", "(string) -> bool", is_ip),
    ("ip.isCanonical", "ip_is_canonical", "(string) -> bool", is_canonical),
    ("family", "ip_family", "net.IP.() -> int", family),
    ("isUnspecified", "ip_is_unspecified", "net.IP.() -> bool", is_unspecified),
    ("isLoopback", "ip_is_loopback", "net.IP.() -> bool", is_loopback),
    ("isLinkLocalMulticast", "ip_is_link_local_multicast", "net.IP.() -> bool", is_link_local_multicast),
    ("isLinkLocalUnicast", "ip_is_link_local_unicast", "net.IP.() -> bool", is_link_local_unicast),
    ("isGlobalUnicast", "ip_is_global_unicast", "net.IP.() -> bool", is_global_unicast),
    ("cidr", "string_to_cidr", "(string) -> net.CIDR", cidr),
    ("isCIDR", "is_cidr", "(string) -> bool", is_cidr),
    ("containsIP", "cidr_contains_ip_string", "net.CIDR.(string) -> bool", contains_ip),
    ("containsIP", "cidr_contains_ip_ip", "net.CIDR.(net.IP) -> bool", contains_ip),
    ("containsCIDR", "cidr_contains_cidr_string", "net.CIDR.(string) -> bool", contains_cidr),
    ("containsCIDR", "cidr_contains_cidr", "net.CIDR.(net.CIDR) -> bool", contains_cidr),
    ("prefixLength", "cidr_prefix_length", "net.CIDR.() -> int", prefix_length),
    ("masked", "cidr_masked", "net.CIDR.() -> net.CIDR", masked),
];

/// A network: an address and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    /// No more than the address has bits.
    prefix: u8,
}

impl Cidr {
    /// Reads `address/prefix`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parse_error = |what: &str| {
            format!(
                "network address parse error during conversion from string: netip.ParsePrefix({}): {what}",
                quote(text)
            )
        };
        let (address, bits) = text.rsplit_once('/').ok_or_else(|| parse_error("no '/'"))?;
        let address: IpAddr = address.parse().map_err(|_| parse_error("unable to parse IP"))?;
        let canonical = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        if !canonical || (bits.len() > 1 && bits.starts_with('0')) {
            return Err(parse_error(&format!("bad bits after slash: {}", quote(bits))));
        }
        let prefix = bits.parse::<u8>().ok().filter(|prefix| *prefix <= width(&address));
        let prefix = prefix.ok_or_else(|| parse_error("prefix length out of range"))?;
        if is_mapped(&address) {
            return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
        }
        Ok(Self { address, prefix })
    }

    /// The number of leading bits that count.
    pub fn prefix_length(&self) -> u8 {
        self.prefix
    }

    /// Whether an address lies in the network.
    pub fn contains(&self, address: &IpAddr) -> bool {
        width(address) == width(&self.address)
            && leading_bits(address, self.prefix) == leading_bits(&self.address, self.prefix)
    }

    fn contains_network(&self, other: &Cidr) -> bool {
        self.prefix <= other.prefix && self.contains(&other.address)
    }

    fn masked(&self) -> Self {
        let bits = leading_bits(&self.address, self.prefix);
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4((bits as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(bits.into()),
        };
        Self { address, prefix: self.prefix }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn width(address: &IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address as a number, with all but its leading bits cleared.
fn leading_bits(address: &IpAddr, count: u8) -> u128 {
    let number = match address {
        IpAddr::V4(v4) => u128::from(u32::from(*v4)),
        IpAddr::V6(v6) => u128::from(*v6),
    };
    let dropped = u32::from(width(address) - count);
    // Shifting by all 128 bits is not defined; then nothing is left.
    number.checked_shr(dropped).map_or(0, |kept| kept << dropped)
}

fn is_mapped(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    if let Some((address, zone)) = text.split_once('%')
        && !zone.is_empty()
        && address.parse::<std::net::Ipv6Addr>().is_ok()
    {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    let address: IpAddr = text.parse().map_err(|_| {
        let quoted = quote(text);
        format!("IP Address {quoted} parse error during conversion from string: ParseAddr({quoted}): unable to parse IP")
    })?;
    if is_mapped(&address) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    Ok(address)
}

fn ip(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    parse_address(text).map(Value::Ip).map_err(EvalError::invalid)
}

fn cidr_ip(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    network(args).map(|cidr| Value::Ip(cidr.address))
}

fn is_ip(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    Ok(Value::Bool(parse_address(text).is_ok()))
}

fn is_canonical(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    let address = parse_address(text).map_err(EvalError::invalid)?;
    Ok(Value::Bool(address.to_string() == text.as_ref()))
}

fn address(args: &[Value], of: fn(&IpAddr) -> Value) -> Outcome {
    match args {
        [Value::Ip(address)] => Ok(of(address)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn family(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    address(args, |address| Value::Int(if address.is_ipv4() { 4 } else { 6 }))
}

fn is_unspecified(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    address(args, |address| Value::Bool(address.is_unspecified()))
}

fn is_loopback(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    address(args, |address| Value::Bool(address.is_loopback()))
}

fn is_link_local_multicast(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    address(args, |address| {
        Value::Bool(match address {
            IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
            IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
        })
    })
}

fn link_local_unicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn is_link_local_unicast(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    address(args, |address| Value::Bool(link_local_unicast(address)))
}

fn is_global_unicast(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    address(args, |address| {
        let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        let special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
        Value::Bool(!broadcast && !special && !link_local_unicast(address))
    })
}

fn cidr(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    parse_network(text).map(Value::Cidr)
}

fn parse_network(text: &str) -> Result<Cidr, EvalError> {
    Cidr::parse(text).map_err(|error| {
        EvalError::invalid(format!("network address parse error during conversion from string: {error}"))
    })
}

fn is_cidr(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    Ok(Value::Bool(Cidr::parse(text).is_ok()))
}

fn network(args: &[Value]) -> Result<&Cidr, EvalError> {
    match args {
        [Value::Cidr(cidr), ..] => Ok(cidr),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn contains_ip(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let network = network(args)?;
    let address = match args {
        [_, Value::Ip(address)] => *address,
        [_, Value::String(text)] => parse_address(text).map_err(EvalError::invalid)?,
        _ => return Err(EvalError::NoSuchOverload),
    };
    Ok(Value::Bool(network.contains(&address)))
}

fn contains_cidr(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let network = network(args)?;
    let other = match args {
        [_, Value::Cidr(other)] => *other,
        [_, Value::String(text)] => parse_network(text)?,
        _ => return Err(EvalError::NoSuchOverload),
    };
    Ok(Value::Bool(network.contains_network(&other)))
}

fn prefix_length(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    network(args).map(|cidr| Value::Int(i64::from(cidr.prefix)))
}

fn masked(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    network(args).map(|cidr| Value::Cidr(cidr.masked()))
}
