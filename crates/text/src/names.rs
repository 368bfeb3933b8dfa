//! The grammars of names: DNS labels and subdomains, label keys and values, path segments.
//!
//! Owns what a name may look like and the sentence that says so, in Kubernetes' words. Each check gives every sentence
//! that applies, none for a good name. Never knows what is being named.

/// The longest DNS label in bytes.
pub const DNS_LABEL_BYTES_MAX: usize = 63;
/// The longest DNS subdomain in bytes.
pub const DNS_SUBDOMAIN_BYTES_MAX: usize = 253;
/// The longest label value, and the longest name part of a label key, in bytes.
pub const LABEL_BYTES_MAX: usize = 63;

const DNS_LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_SUBDOMAIN_PATTERN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS_1035_PATTERN: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE_PATTERN: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// Which grammar the names of a kind follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain, as most kinds and all custom resources have.
    DnsSubdomain,
    /// A DNS label, as namespaces have.
    DnsLabel,
    /// A DNS label that begins with a letter, as services have.
    Dns1035Label,
    /// Anything that can be one segment of a path, as RBAC's kinds have.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name; with `prefix`, with a name that something is going to be appended to.
    pub fn check(self, name: &str, prefix: bool) -> Vec<String> {
        let masked;
        let name = if prefix && self != Self::PathSegment {
            masked = mask_trailing_dash(name);
            masked.as_str()
        } else {
            name
        };
        match self {
            Self::DnsSubdomain => dns_subdomain(name),
            Self::DnsLabel => dns_label(name),
            Self::Dns1035Label => dns_1035_label(name),
            Self::PathSegment => path_segment(name, prefix),
        }
    }
}

/// A dash at the end of a prefix is followed by something: it and the byte before it count as one letter.
fn mask_trailing_dash(name: &str) -> String {
    match name.strip_suffix('-') {
        // Where the byte before is but a part of a character, what is left is no name in any case.
        Some(rest) if !rest.is_empty() => format!("{}a", rest.get(..rest.len() - 1).unwrap_or(rest)),
        _ => name.to_owned(),
    }
}

/// What is wrong with a DNS label (RFC 1123).
pub fn dns_label(name: &str) -> Vec<String> {
    let mut found = too_long(name, DNS_LABEL_BYTES_MAX, "characters");
    if !is_dns_label(name) {
        found.push(if is_dns_subdomain(name) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                DNS_LABEL_PATTERN,
                &["my-name", "123-abc"],
            )
        });
    }
    found
}

/// What is wrong with a DNS subdomain (RFC 1123).
pub fn dns_subdomain(name: &str) -> Vec<String> {
    let mut found = too_long(name, DNS_SUBDOMAIN_BYTES_MAX, "characters");
    if !is_dns_subdomain(name) {
        found.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            DNS_SUBDOMAIN_PATTERN,
            &["example.com"],
        ));
    }
    found
}

/// What is wrong with a DNS label that begins with a letter (RFC 1035).
pub fn dns_1035_label(name: &str) -> Vec<String> {
    let mut found = too_long(name, DNS_LABEL_BYTES_MAX, "characters");
    if !(is_dns_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase())) {
        found.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            DNS_1035_PATTERN,
            &["my-name", "abc-123"],
        ));
    }
    found
}

/// What is wrong with one segment of a path.
pub fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    let found = ['/', '%'].into_iter().filter(|sign| name.contains(*sign));
    found.map(|sign| format!("may not contain '{sign}'")).collect()
}

/// What is wrong with the key of a label, which is what Kubernetes calls a qualified name.
pub fn label_key(key: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                found.push("prefix part must be non-empty".to_owned());
            } else {
                let rules = dns_subdomain(prefix);
                found.extend(
                    rules
                        .iter()
                        .map(|rule| format!("prefix part {}", rule.replace("253 characters", "253 bytes"))),
                );
            }
            name
        }
        _ => {
            let rule = regex_error(KEY_RULE, KEY_PATTERN, &["MyName", "my.name", "123-abc"]);
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    } else {
        found.extend(
            too_long(name, LABEL_BYTES_MAX, "bytes").iter().map(|sentence| format!("name part {sentence}")),
        );
    }
    if !is_label_name(name) {
        let rule = regex_error(KEY_RULE, KEY_PATTERN, &["MyName", "my.name", "123-abc"]);
        found.push(format!("name part {rule}"));
    }
    found
}

/// What is wrong with the value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut found = too_long(value, LABEL_BYTES_MAX, "bytes");
    if !value.is_empty() && !is_label_name(value) {
        found.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            VALUE_PATTERN,
            &["MyValue", "my_value", "12345"],
        ));
    }
    found
}

/// Whether a text is a DNS label, whatever its length.
pub fn is_dns_label(text: &str) -> bool {
    surrounded(
        text.as_bytes(),
        |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(),
        |byte| byte == b'-',
    )
}

/// Whether a text is a DNS subdomain, whatever its length.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Whether a text is the name part of a label key, or a label value that is not empty, whatever its length.
pub fn is_label_name(text: &str) -> bool {
    surrounded(
        text.as_bytes(),
        |byte| byte.is_ascii_alphanumeric(),
        |byte| matches!(byte, b'-' | b'_' | b'.'),
    )
}

/// Whether a text has at least one character, only those that may be at its ends or inside, and the former at its ends.
fn surrounded(text: &[u8], end: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match (text.first(), text.last()) {
        (Some(&first), Some(&last)) => {
            end(first) && end(last) && text.iter().all(|&byte| end(byte) || inner(byte))
        }
        _ => false,
    }
}

/// Kubernetes counts bytes and calls them characters where a name is older.
fn too_long(text: &str, limit: usize, unit: &str) -> Vec<String> {
    if text.len() > limit { vec![format!("must be no more than {limit} {unit}")] } else { Vec::new() }
}

/// A rule, examples that keep it and the expression it is checked with.
pub fn regex_error(rule: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{pattern}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [String; 0] = [];

    #[test]
    fn good_names_have_nothing_wrong_with_them() {
        for name in ["a", "0", "a-b", "a.b-c.d"] {
            assert_eq!(dns_subdomain(name), NONE, "{name}");
        }
        for key in ["a", "A_b.c-d", "example.com/Name", &"x".repeat(63)] {
            assert_eq!(label_key(key), NONE, "{key}");
        }
        for value in ["", "a", "1.2_3-4"] {
            assert_eq!(label_value(value), NONE, "{value}");
        }
    }

    #[test]
    fn bad_names_are_explained_in_kubernetes_words() {
        assert_eq!(
            dns_subdomain("Foo_Bar"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(label_key("")[0], "name part must be non-empty");
        assert_eq!(label_key("").len(), 2);
        assert_eq!(label_key("/b"), ["prefix part must be non-empty"]);
        assert_eq!(label_key(&"x".repeat(64)), ["name part must be no more than 63 bytes"]);
        assert_eq!(
            label_key(&format!("{}/b", "x".repeat(254))),
            ["prefix part must be no more than 253 bytes"]
        );
        for (key, count) in [("a/", 2), ("a/b/c", 1), ("A/b", 1), ("-a", 1), ("é", 1)] {
            assert_eq!(label_key(key).len(), count, "{key}: {:?}", label_key(key));
        }
        assert_eq!(label_value(&"-".repeat(64)).len(), 2);
        assert!(
            label_value("-").len() == 1
                && label_value("-")[0].contains("(e.g. 'MyValue',  or 'my_value',  or '12345', regex")
        );
        assert_eq!(path_segment("..", false), ["may not be '..'"]);
        assert_eq!(path_segment("a/%b", false).len(), 2);
    }

    #[test]
    fn a_prefix_may_end_with_a_dash() {
        assert_eq!(NameRule::DnsSubdomain.check("pod-", true), NONE);
        assert_eq!(NameRule::DnsSubdomain.check("pod--", true), NONE);
        assert_eq!(NameRule::DnsSubdomain.check("pod-", false).len(), 1);
        assert_eq!(NameRule::DnsLabel.check("-", true).len(), 1);
        assert_eq!(NameRule::DnsLabel.check("é-", true).len(), 1);
    }
}
