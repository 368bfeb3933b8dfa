//! Where the API server reaches a webhook that is not behind a Service.

use std::fmt;
use std::str::FromStr;

use http::Uri;

/// `https://HOST:PORT`, with nothing after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    text: String,
    host: String,
}

impl Base {
    /// With the port that is listened on, where port 0 asks for it.
    pub(crate) fn at(self, port: u16) -> Self {
        match self.text.strip_suffix(":0") {
            Some(text) => Self { text: format!("{text}:{port}"), ..self },
            None => self,
        }
    }

    /// The host a certificate must be good for.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for Base {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for Base {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let advice = || "give https://HOST:PORT, as https://127.0.0.1:9443, with nothing after it".to_owned();
        let uri: Uri = text.trim_end_matches('/').parse().map_err(|_| advice())?;
        let is_bare = uri.path() == "/" && uri.query().is_none();
        let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        if uri.scheme_str() != Some("https") || host.is_empty() || !is_bare || !is_plain {
            return Err(advice());
        }
        let host = host.to_owned();
        Ok(Self { text: text.trim_end_matches('/').to_owned(), host })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_https_with_a_host_and_nothing_after_it() {
        let base = |text: &str| text.parse::<Base>().map(|base| (base.to_string(), base.host().to_owned()));
        let told = |text: &str, host: &str| Ok((text.to_owned(), host.to_owned()));
        assert_eq!(base("https://127.0.0.1:9443"), told("https://127.0.0.1:9443", "127.0.0.1"));
        assert_eq!(base("https://hooks.example/"), told("https://hooks.example", "hooks.example"));
        assert_eq!(base("https://[::1]:1"), told("https://[::1]:1", "::1"));
        for wrong in [
            "",
            "http://a:1",
            "a:1",
            "https://",
            "https://a/path",
            "https://a?x",
            "https://me@a",
            "https://a b",
        ] {
            assert!(base(wrong).is_err(), "{wrong}");
        }
    }
}
