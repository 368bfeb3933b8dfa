//! Requirements on labels and claims: the parsed form of a Kubernetes label selector.
//!
//! Owns parsing with Kubernetes' rules and the match against one value. Indexed matching over a whole fleet is the
//! model's business.

use std::collections::BTreeMap;
use std::fmt;

use berth_text::names::{DNS_SUBDOMAIN_BYTES_MAX, LABEL_BYTES_MAX, is_dns_subdomain, is_label_name};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Where a requirement looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum Facet {
    /// `metadata.labels`
    Label,
    /// `status.clusterClaims`
    Claim,
}

impl fmt::Display for Facet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Label => "label",
            Self::Claim => "claim",
        })
    }
}

/// What is asked of one key's value. Value lists are sorted and without repetition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// Present, with one of these values.
    In(Box<[Box<str>]>),
    /// Absent, or with none of these values.
    NotIn(Box<[Box<str>]>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// Whether `key` is a label or a claim.
    pub facet: Facet,
    /// The label key or claim name.
    pub key: Box<str>,
    /// What is asked of its value.
    pub ask: Ask,
}

impl Requirement {
    /// Whether `value`, the actual one (or its absence), fulfils the requirement.
    pub fn holds(&self, value: Option<&str>) -> bool {
        match (&self.ask, value) {
            (Ask::In(values), Some(value)) => contains(values, value),
            (Ask::NotIn(values), Some(value)) => !contains(values, value),
            (Ask::Exists, Some(_)) | (Ask::NotIn(_) | Ask::DoesNotExist, None) => true,
            (Ask::In(_) | Ask::Exists, None) | (Ask::DoesNotExist, Some(_)) => false,
        }
    }
}

fn contains(sorted: &[Box<str>], value: &str) -> bool {
    sorted.binary_search_by(|candidate| (**candidate).cmp(value)).is_ok()
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { facet, key, ask } = self;
        match ask {
            Ask::In(values) => match &**values {
                [value] => write!(f, "{facet} {key} = {value:?}"),
                values => write!(f, "{facet} {key} in ({})", values.join(", ")),
            },
            Ask::NotIn(values) => write!(f, "{facet} {key} not in ({})", values.join(", ")),
            Ask::Exists => write!(f, "{facet} {key} is set"),
            Ask::DoesNotExist => write!(f, "{facet} {key} is not set"),
        }
    }
}

/// A selector that cannot be understood, with the place inside the selector (`matchExpressions[1].operator`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSelector {
    /// Path below the selector.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

/// Parses a Kubernetes label selector. An empty one has no requirements and matches everything.
pub fn from_label_selector(selector: &LabelSelector) -> Result<Vec<Requirement>, Vec<BadSelector>> {
    parse(
        Facet::Label,
        "matchLabels",
        selector.match_labels.iter().flatten(),
        selector.match_expressions.as_deref().unwrap_or_default(),
    )
}

/// Parses a claim selector: the same language over claims. Claim values are not label values, so their length and
/// alphabet are free.
pub fn from_claims(
    match_claims: Option<&BTreeMap<String, String>>,
    match_expressions: &[LabelSelectorRequirement],
) -> Result<Vec<Requirement>, Vec<BadSelector>> {
    parse(Facet::Claim, "matchClaims", match_claims.into_iter().flatten(), match_expressions)
}

fn parse<'s>(
    facet: Facet,
    map_name: &str,
    pairs: impl Iterator<Item = (&'s String, &'s String)>,
    expressions: &[LabelSelectorRequirement],
) -> Result<Vec<Requirement>, Vec<BadSelector>> {
    let mut requirements = Vec::new();
    let mut bad = Vec::new();
    let mut check = |path: String, complaint: Option<String>| {
        if let Some(message) = complaint {
            bad.push(BadSelector { path, message });
        }
    };
    for (key, value) in pairs {
        check(format!("{map_name}[{key}]"), bad_key(facet, key).or_else(|| bad_value(facet, value)));
        requirements.push(Requirement {
            facet,
            key: key.as_str().into(),
            ask: Ask::In([value.as_str().into()].into()),
        });
    }
    for (index, expression) in expressions.iter().enumerate() {
        let at = |field: &str| format!("matchExpressions[{index}].{field}");
        let values = expression.values.as_deref().unwrap_or_default();
        check(at("key"), bad_key(facet, &expression.key));
        for (place, value) in values.iter().enumerate() {
            check(at(&format!("values[{place}]")), bad_value(facet, value));
        }
        let sorted = || {
            let mut sorted: Vec<Box<str>> = values.iter().map(|value| value.as_str().into()).collect();
            sorted.sort_unstable();
            sorted.dedup();
            sorted.into_boxed_slice()
        };
        let ask = match expression.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => {
                check(at("values"), Some("for 'in', 'notin' operators, values set can't be empty".into()));
                continue;
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                check(at("values"), Some("values set must be empty for exists and does not exist".into()));
                continue;
            }
            "In" => Ask::In(sorted()),
            "NotIn" => Ask::NotIn(sorted()),
            "Exists" => Ask::Exists,
            "DoesNotExist" => Ask::DoesNotExist,
            other => {
                check(
                    at("operator"),
                    Some(format!(
                        "{other:?} is not a valid label selector operator; allowed are \"In\", \"NotIn\", \"Exists\" and \"DoesNotExist\""
                    )),
                );
                continue;
            }
        };
        requirements.push(Requirement { facet, key: expression.key.as_str().into(), ask });
    }
    if bad.is_empty() {
        // One order for one meaning, so that equal selectors are found to be equal.
        requirements.sort_unstable();
        requirements.dedup();
        Ok(requirements)
    } else {
        Err(bad)
    }
}

fn bad_key(facet: Facet, key: &str) -> Option<String> {
    if facet == Facet::Claim {
        return key.is_empty().then(|| "a claim name is required".into());
    }
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        return Some(format!("{key:?} is not a label key: the part before \"/\" must be a DNS subdomain"));
    }
    if !is_name(name) {
        return Some(format!(
            "{key:?} is not a label key: its name must be 1 to {LABEL_BYTES_MAX} characters out of letters, digits, \"-\", \"_\", \".\", beginning and ending with a letter or digit"
        ));
    }
    None
}

fn bad_value(facet: Facet, value: &str) -> Option<String> {
    (facet == Facet::Label && !value.is_empty() && !is_name(value)).then(|| {
        format!(
            "{value:?} is not a label value: it must be empty, or at most {LABEL_BYTES_MAX} characters out of letters, digits, \"-\", \"_\", \".\", beginning and ending with a letter or digit"
        )
    })
}

fn is_name(text: &str) -> bool {
    text.len() <= LABEL_BYTES_MAX && is_label_name(text)
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= DNS_SUBDOMAIN_BYTES_MAX && is_dns_subdomain(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(key: &str, operator: &str, values: &[&str]) -> LabelSelectorRequirement {
        LabelSelectorRequirement {
            key: key.into(),
            operator: operator.into(),
            values: Some(values.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn every_operator_answers_for_present_and_absent_values() {
        let cases = [
            ("In", &["a", "b"][..], [true, false, false]),
            ("NotIn", &["a", "b"], [false, true, true]),
            ("Exists", &[], [true, true, false]),
            ("DoesNotExist", &[], [false, false, true]),
        ];
        for (operator, values, wanted) in cases {
            let parsed = from_claims(None, &[expression("k", operator, values)]).unwrap();
            let got = [Some("a"), Some("z"), None].map(|value| parsed[0].holds(value));
            assert_eq!(got, wanted, "{operator}");
        }
    }

    #[test]
    fn all_mistakes_are_reported_with_their_place() {
        let selector = LabelSelector {
            match_labels: Some([("bad key".to_owned(), "ok".to_owned())].into()),
            match_expressions: Some(vec![
                expression("env", "Is", &["x"]),
                expression("env", "In", &[]),
                expression("env", "In", &["not a value!"]),
            ]),
        };
        let paths: Vec<_> =
            from_label_selector(&selector).unwrap_err().into_iter().map(|bad| bad.path).collect();
        assert_eq!(
            paths,
            [
                "matchLabels[bad key]",
                "matchExpressions[0].operator",
                "matchExpressions[1].values",
                "matchExpressions[2].values[0]"
            ]
        );
    }

    #[test]
    fn a_claim_value_may_be_longer_than_a_label_value() {
        let long = "x".repeat(1024);
        assert!(from_claims(None, &[expression("k", "In", &[&long])]).is_ok());
    }
}
