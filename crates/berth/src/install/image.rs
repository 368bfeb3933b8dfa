//! References to container images.

use std::fmt;
use std::str::FromStr;

/// The longest reference that is taken: as long as a registry's longest name with the longest tag and a digest.
const LENGTH_MAX: usize = 512;
const TAG_MAX: usize = 128;
const NAME_MAX: usize = 255;

/// A reference to an image that a kubelet can pull: `[HOST[:PORT]/]PATH[:TAG][@DIGEST]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image(String);

impl Image {
    /// The reference.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Image {
    /// The image that the Dockerfile of this version makes, where nobody says where it was pushed to.
    fn default() -> Self {
        Self(format!("berth:{}", env!("CARGO_PKG_VERSION")))
    }
}

impl fmt::Display for Image {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Image {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = fault(text);
        fault.map_or_else(
            || Ok(Self(text.to_owned())),
            |fault| Err(format!("{fault}; give an image as [HOST[:PORT]/]PATH[:TAG][@sha256:DIGEST]")),
        )
    }
}

fn fault(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("it is empty");
    }
    if text.len() > LENGTH_MAX {
        return Some("it is longer than any reference");
    }
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    let is_digest = |digest: &str| {
        let hex = digest.strip_prefix("sha256:");
        hex.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return Some("its digest is not sha256: with 64 digits in lower case");
    }
    // A colon after the last slash is a tag's; one before is a port's.
    let last = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match rest[last..].split_once(':') {
        Some((name, tag)) => (&rest[..last + name.len()], Some(tag)),
        None => (rest, None),
    };
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let is_tag = |tag: &str| {
        let mut bytes = tag.bytes();
        tag.len() <= TAG_MAX
            && bytes.next().is_some_and(is_word)
            && bytes.all(|b| is_word(b) || b == b'.' || b == b'-')
    };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Some("its tag is not made of letters, digits, '_', '.' and '-'");
    }
    if name.len() > NAME_MAX {
        return Some("its name is longer than 255 characters");
    }
    let mut parts: Vec<&str> = name.split('/').collect();
    // As container engines read it: a first part with a dot, a port or this name is a host.
    let is_host = parts.len() > 1
        && (parts[0].contains(['.', ':', '[']) || parts[0] == "localhost" || has_upper(parts[0]));
    if is_host && !is_host_name(parts.remove(0)) {
        return Some("its host is not a name or address with an optional port");
    }
    if !parts.iter().all(|part| is_path(part)) {
        return Some(
            "its path is not made of lower-case letters and digits with single separators between them",
        );
    }
    None
}

fn has_upper(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_uppercase())
}

fn is_host_name(host: &str) -> bool {
    let port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, rest)) = rest.split_once(']') else { return false };
        return address.parse::<std::net::Ipv6Addr>().is_ok()
            && (rest.is_empty() || rest.strip_prefix(':').is_some_and(port));
    }
    let (name, number) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    name.split('.').all(is_label) && number.is_none_or(port)
}

/// Words of lower-case letters and digits with `.`, `_`, `__` or any number of `-` between them.
fn is_path(part: &str) -> bool {
    let is_word = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9');
    let bytes = part.as_bytes();
    let ends = bytes.first().zip(bytes.last()).is_some_and(|(first, last)| is_word(*first) && is_word(*last));
    let separators = part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    ends && { separators }.all(|one| matches!(one, "" | "." | "_" | "__") || one.bytes().all(|b| b == b'-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn references_are_read_as_container_engines_read_them() {
        let digest = format!("berth@sha256:{}", "0a".repeat(32));
        for good in [
            "berth",
            "berth:0.1.0",
            "team/berth:v1_2-rc.3",
            "localhost/berth",
            "registry.example.com:5000/team/a--b__c.d:latest",
            "[::1]:5000/berth",
            "Host/berth",
            &digest,
        ] {
            assert_eq!(good.parse::<Image>().map(|image| image.to_string()), Ok(good.to_owned()));
        }
        assert!(Image::default().as_str().parse::<Image>().is_ok());
        for (bad, fault) in [
            ("", "it is empty"),
            ("Berth", "its path"),
            ("berth:", "its tag"),
            ("berth:-x", "its tag"),
            ("a b", "its path"),
            ("a//b", "its path"),
            ("a..b/c", "its host"),
            ("example.com:0/berth", "its host"),
            ("-berth", "its path"),
            ("a___b", "its path"),
            ("berth@sha256:12", "its digest"),
            ("berth\n", "its path"),
        ] {
            let told = bad.parse::<Image>().unwrap_err();
            assert!(told.starts_with(fault), "{bad:?}: {told}");
        }
        assert!("a".repeat(600).parse::<Image>().is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_none_that_is_taken_breaks_a_line(text in any::<String>()) {
            if let Ok(image) = text.parse::<Image>() {
                prop_assert!(image.as_str().bytes().all(|b| b.is_ascii_graphic()));
            }
        }
    }
}
