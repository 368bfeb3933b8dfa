//! URLs, split the way Kubernetes' URL functions split them.
//!
//! Owns a small reader for absolute URIs and absolute paths. It never resolves, normalizes or fetches.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use berth_text::gotext::quote;

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("url", "string_to_url", "(string) -> kubernetes.URL", url),
    ("isURL", "is_url_string", "(string) -> bool", is_url),
    ("getScheme", "url_get_scheme", "kubernetes.URL.() -> string", scheme),
    ("getHost", "url_get_host", "kubernetes.URL.() -> string", host),
    ("getHostname", "url_get_hostname", "kubernetes.URL.() -> string", hostname),
    ("getPort", "url_get_port", "kubernetes.URL.() -> string", port),
    ("getEscapedPath", "url_get_escaped_path", "kubernetes.URL.() -> string", escaped_path),
    ("getQuery", "url_get_query", "kubernetes.URL.() -> map(string, list(string))", query),
];

/// A URL in its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// What follows the scheme of a URL that is not hierarchical, such as `mailto:a@b`.
    opaque: String,
    user_info: Option<String>,
    /// With its port; brackets around an IPv6 address are kept.
    host: String,
    has_authority: bool,
    /// With its escapes.
    path: String,
    query: Option<String>,
    fragment: Option<String>,
}

/// What is wrong with a URL.
type Fault = String;

impl Url {
    /// Reads an absolute URI, or an absolute path.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::read(text, true)?;
        // The first reading takes `#` for a part of the path, which is what decides validity.
        let (body, fragment) = match text.split_once('#') {
            Some((body, fragment)) => (body, Some(fragment)),
            None => (text, None),
        };
        let mut url = Self::read(body, false)?;
        if let Some(fragment) = fragment {
            unescape(fragment, false)?;
            url.fragment = Some(fragment.to_owned());
        }
        Ok(url)
    }

    /// Whether a text is an absolute URI or an absolute path.
    pub fn is_valid(text: &str) -> bool {
        Self::read(text, true).is_ok()
    }

    pub(crate) fn check(text: &str) -> Result<(), Fault> {
        Self::read(text, true).map(|_| ())
    }

    fn read(text: &str, request: bool) -> Result<Self, Fault> {
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && request {
            return Err("empty url".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            text.clone_into(&mut url.path);
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (mut rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        url.query = query.map(str::to_owned);
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if request {
                return Err("invalid URI for request".to_owned());
            }
            let first = rest.split('/').next().unwrap_or_default();
            if first.contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let authority_allowed = !url.scheme.is_empty() || (!request && !rest.starts_with("///"));
        if authority_allowed && let Some(after) = rest.strip_prefix("//") {
            let end = after.find('/').unwrap_or(after.len());
            url.read_authority(&after[..end])?;
            rest = &after[end..];
        }
        let decoded = unescape(rest, false)?;
        url.path = if rest.bytes().all(is_path_byte) { rest.to_owned() } else { escape_path(&decoded) };
        Ok(url)
    }

    fn read_authority(&mut self, authority: &str) -> Result<(), Fault> {
        self.has_authority = true;
        let host = match authority.rsplit_once('@') {
            Some((user_info, host)) => {
                let allowed =
                    |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
                if !user_info.bytes().all(allowed) {
                    return Err("net/url: invalid userinfo".to_owned());
                }
                unescape(user_info, false)?;
                self.user_info = Some(user_info.to_owned());
                host
            }
            None => authority,
        };
        self.host = read_host(host)?;
        Ok(())
    }

    /// The host without port and brackets.
    fn hostname(&self) -> &str {
        let (host, _) = self.split_port();
        host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host)
    }

    fn split_port(&self) -> (&str, &str) {
        match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
            _ => (&self.host, ""),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            if self.has_authority
                && (!self.host.is_empty() || self.user_info.is_some() || !self.scheme.is_empty())
            {
                f.write_str("//")?;
                if let Some(user_info) = &self.user_info {
                    write!(f, "{user_info}@")?;
                }
                f.write_str(&self.host)?;
            }
            f.write_str(&self.path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        if let Some(fragment) = self.fragment.as_deref().filter(|fragment| !fragment.is_empty()) {
            write!(f, "#{fragment}")?;
        }
        Ok(())
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), Fault> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn read_host(host: &str) -> Result<String, Fault> {
    if host.starts_with('[') {
        let Some(close) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
        check_port(&host[close + 1..])?;
        let address = &host[1..close];
        let (address, zone) = match address.split_once("%25") {
            Some((address, zone)) => (address, Some(zone)),
            None => (address, None),
        };
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err("invalid host: not an IPv6 address in brackets".to_owned());
        }
        let zone = zone.map(|zone| unescape(zone, false)).transpose()?;
        let zone = zone.map_or_else(String::new, |zone| format!("%{}", String::from_utf8_lossy(&zone)));
        return Ok(format!("[{address}{zone}]{}", &host[close + 1..]));
    }
    if let Some(colon) = host.find(':') {
        check_port(&host[colon..])?;
    }
    let decoded = unescape(host, true)?;
    let allowed = |byte: &u8| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-_.~!$&'()*+,;=:[]<>\"".contains(byte)
    };
    match decoded.iter().find(|byte| !allowed(byte)) {
        Some(byte) => {
            Err(format!("invalid character {} in host name", quote(&char::from(*byte).to_string())))
        }
        None => String::from_utf8(decoded).map_err(|_| "invalid UTF-8 in host name".to_owned()),
    }
}

fn check_port(port: &str) -> Result<(), Fault> {
    match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(()),
        None if port.is_empty() => Ok(()),
        _ => Err(format!("invalid port {} after host", quote(port))),
    }
}

/// Decodes `%XX`. In a host only bytes beyond ASCII may be escaped.
fn unescape(text: &str, host: bool) -> Result<Vec<u8>, Fault> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let hex = bytes.get(at + 1..at + 3).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        let byte = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte {
            Some(byte) if !host || byte >= 0x80 => out.push(byte),
            _ => {
                let shown: String = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 3)]).into_owned();
                return Err(format!("invalid URL escape {}", quote(&shown)));
            }
        }
        at += 3;
    }
    Ok(out)
}

/// Bytes that may stand in a path as they are; escapes among them.
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~/!$&'()*+,;=:@[]%".contains(&byte)
}

fn escape_path(decoded: &[u8]) -> String {
    let mut out = String::with_capacity(decoded.len());
    for byte in decoded {
        if byte.is_ascii_alphanumeric() || b"-_.~/$&+,:;=@".contains(byte) {
            out.push(char::from(*byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a text cannot fail");
        }
    }
    out
}

fn url(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work(4 * text.len() as u64)?;
    Url::parse(text).map(|url| Value::Url(Arc::new(url))).map_err(|fault| {
        EvalError::invalid(format!(
            "URL parse error during conversion from string: parse {}: {fault}",
            quote(text)
        ))
    })
}

fn is_url(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work(4 * text.len() as u64)?;
    Ok(Value::Bool(Url::is_valid(text)))
}

fn text_of(args: &[Value], part: for<'u> fn(&'u Url) -> &'u str) -> Outcome {
    match args {
        [Value::Url(url)] => Ok(Value::string(part(url))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn scheme(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    text_of(args, |url| &url.scheme)
}

fn host(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    text_of(args, |url| &url.host)
}

fn hostname(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    text_of(args, Url::hostname)
}

fn port(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    text_of(args, |url| url.split_port().1)
}

fn escaped_path(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    text_of(args, |url| &url.path)
}

fn query(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::Url(url)] = args else { return Err(EvalError::NoSuchOverload) };
    let query = url.query.as_deref().unwrap_or_default();
    context.budget.work(64 * query.len() as u64)?;
    let mut parameters: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        // A parameter that cannot be decoded is left out, as the reference implementation does.
        if let (Some(name), Some(value)) = (decode_parameter(name), decode_parameter(value)) {
            parameters.entry(name).or_default().push(Value::string(value));
        }
    }
    Ok(Value::map(parameters.into_iter().map(|(name, values)| (name, Value::list(values)))))
}

fn decode_parameter(text: &str) -> Option<String> {
    let decoded = unescape(&text.replace('+', " "), false).ok()?;
    Some(String::from_utf8_lossy(&decoded).into_owned())
}
