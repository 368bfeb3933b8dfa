//! A taint put on a cluster or taken off it, in the grammar of `kubectl taint`: `CLUSTER=key[=value]:Effect`, and
//! with a trailing `-` to take it off.

use std::fmt;
use std::str::FromStr;

use berth_text::names;

/// The longest key in characters, as the schema of ManagedCluster has it.
const KEY_CHARS_MAX: usize = 316;

/// The longest value in characters, as the schema of ManagedCluster has it.
const VALUE_CHARS_MAX: usize = 1024;

/// What a taint does to placements that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The cluster leaves, and is not selected.
    NoSelect,
    /// The cluster is selected last.
    PreferNoSelect,
    /// The cluster stays where it is selected, and is not selected anew.
    NoSelectIfNew,
}

impl Effect {
    /// Every effect.
    pub const ALL: [Self; 3] = [Self::NoSelect, Self::PreferNoSelect, Self::NoSelectIfNew];

    /// The word used in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSelect => "NoSelect",
            Self::PreferNoSelect => "PreferNoSelect",
            Self::NoSelectIfNew => "NoSelectIfNew",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One change to the taints of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaintChange {
    /// Puts a taint on, in place of one with the same key and effect.
    Add {
        /// The cluster's name.
        cluster: String,
        /// The taint's key.
        key: String,
        /// The taint's value; often empty.
        value: String,
        /// The taint's effect.
        effect: Effect,
    },
    /// Takes taints off.
    Remove {
        /// The cluster's name.
        cluster: String,
        /// The key of the taints to take off.
        key: String,
        /// Only those with this effect; all of the key when there is none.
        effect: Option<Effect>,
    },
}

/// Why a text is no taint change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaintChangeError {
    /// A part is missing.
    #[error(
        "not a taint: allowed are CLUSTER=key:Effect, CLUSTER=key=value:Effect, CLUSTER=key- and CLUSTER=key:Effect-"
    )]
    Form,
    /// The effect is none of the three.
    #[error("unsupported effect {0:?}: allowed are NoSelect, PreferNoSelect, NoSelectIfNew")]
    Effect(String),
    /// Several taints in one text.
    #[error("one taint at a time: repeat --taint for several")]
    Several,
    /// The key is no qualified name.
    #[error(
        "unsupported key {0:?}: allowed are letters, digits, '-', '_' and '.' between a letter or digit at either end, with an optional DNS prefix and a slash before, as in example.com/gpu, at most {KEY_CHARS_MAX} characters"
    )]
    Key(String),
    /// The value is too long, or cannot be printed.
    #[error(
        "unsupported value: allowed are at most {VALUE_CHARS_MAX} characters, none of them a control character"
    )]
    Value,
    /// A value was given where taints are taken off.
    #[error("a taint is taken off by its key: allowed are CLUSTER=key- and CLUSTER=key:Effect-")]
    ValueOnRemoval,
}

impl TaintChange {
    /// The cluster this is about.
    pub fn cluster(&self) -> &str {
        match self {
            Self::Add { cluster, .. } | Self::Remove { cluster, .. } => cluster,
        }
    }
}

impl FromStr for TaintChange {
    type Err = TaintChangeError;

    fn from_str(text: &str) -> Result<Self, TaintChangeError> {
        let (cluster, taint) = text.split_once('=').ok_or(TaintChangeError::Form)?;
        let (taint, removal) = match taint.strip_suffix('-') {
            Some(taint) => (taint, true),
            None => (taint, false),
        };
        // A value may hold a colon, an effect may not: the last colon is the one that counts.
        let (subject, effect) = match taint.rsplit_once(':') {
            Some((subject, effect)) => (subject, Some(parse_effect(effect)?)),
            None => (taint, None),
        };
        let (key, value) = match subject.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (subject, None),
        };
        if cluster.is_empty() || key.is_empty() {
            return Err(TaintChangeError::Form);
        }
        // A value may hold a comma, so there only one that follows an effect tells of a second taint.
        let several = |value: &str| Effect::ALL.iter().any(|effect| value.contains(&format!(":{effect},")));
        if cluster.contains(',') || key.contains(',') || value.is_some_and(several) {
            return Err(TaintChangeError::Several);
        }
        if !is_qualified_name(key) {
            return Err(TaintChangeError::Key(key.to_owned()));
        }
        if value.is_some_and(|value| {
            value.chars().count() > VALUE_CHARS_MAX || value.chars().any(char::is_control)
        }) {
            return Err(TaintChangeError::Value);
        }
        let (cluster, key) = (cluster.to_owned(), key.to_owned());
        match (removal, effect, value) {
            (true, _, Some(_)) => Err(TaintChangeError::ValueOnRemoval),
            (true, effect, None) => Ok(Self::Remove { cluster, key, effect }),
            (false, Some(effect), value) => {
                Ok(Self::Add { cluster, key, value: value.unwrap_or_default().to_owned(), effect })
            }
            (false, None, _) => Err(TaintChangeError::Form),
        }
    }
}

fn parse_effect(text: &str) -> Result<Effect, TaintChangeError> {
    Effect::ALL.into_iter().find(|effect| effect.as_str() == text).ok_or_else(|| {
        if text.contains(',') { TaintChangeError::Several } else { TaintChangeError::Effect(text.to_owned()) }
    })
}

/// Whether a text is a key that the schema of ManagedCluster takes.
fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    text.len() <= KEY_CHARS_MAX && names::is_label_name(name) && prefix.is_none_or(names::is_dns_subdomain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn add(cluster: &str, key: &str, value: &str, effect: Effect) -> TaintChange {
        TaintChange::Add { cluster: cluster.into(), key: key.into(), value: value.into(), effect }
    }

    fn remove(cluster: &str, key: &str, effect: Option<Effect>) -> TaintChange {
        TaintChange::Remove { cluster: cluster.into(), key: key.into(), effect }
    }

    #[test]
    fn every_form_is_read() {
        for (text, want) in [
            ("c1=gpu:NoSelect", add("c1", "gpu", "", Effect::NoSelect)),
            (
                "c1=example.com/gpu=true:NoSelectIfNew",
                add("c1", "example.com/gpu", "true", Effect::NoSelectIfNew),
            ),
            ("c1=url=http://x:PreferNoSelect", add("c1", "url", "http://x", Effect::PreferNoSelect)),
            ("c1=gpu-", remove("c1", "gpu", None)),
            ("c1=gpu:NoSelect-", remove("c1", "gpu", Some(Effect::NoSelect))),
        ] {
            assert_eq!(text.parse(), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        for text in ["", "c1", "=gpu:NoSelect", "c1=:NoSelect", "c1=gpu", "c1=-"] {
            assert_eq!(text.parse::<TaintChange>(), Err(TaintChangeError::Form), "{text}");
        }
        assert_eq!(
            "c1=gpu:NoExecute".parse::<TaintChange>().unwrap_err().to_string(),
            "unsupported effect \"NoExecute\": allowed are NoSelect, PreferNoSelect, NoSelectIfNew"
        );
        assert_eq!("c1=gpu=1-".parse::<TaintChange>(), Err(TaintChangeError::ValueOnRemoval));
    }

    #[test]
    fn a_key_is_a_qualified_name_and_a_value_is_bounded() {
        let long = format!("c1={}:NoSelect", "k".repeat(KEY_CHARS_MAX + 1));
        for text in [
            "c1=-gpu:NoSelect",
            "c1=g pu:NoSelect",
            "c1=a/b/c:NoSelect",
            "c1=Up/gpu:NoSelect",
            "c1=/x:NoSelect",
            "c1=x/:NoSelect",
            "c1=a..b/x:NoSelect",
            "c1=gpu--",
            &long,
        ] {
            assert!(matches!(text.parse::<TaintChange>(), Err(TaintChangeError::Key(_))), "{text}");
        }
        let value = |value: &str| format!("c1=gpu={value}:NoSelect").parse::<TaintChange>();
        assert_eq!(value("a\u{7}b"), Err(TaintChangeError::Value));
        assert_eq!(value(&"é".repeat(VALUE_CHARS_MAX + 1)), Err(TaintChangeError::Value));
        assert!(value(&"é".repeat(VALUE_CHARS_MAX)).is_ok());
        assert!(value("a,b").is_ok(), "the schema allows it");
    }

    #[test]
    fn several_taints_in_one_are_told_apart_from_a_wrong_one() {
        for text in [
            "c1,c2=gpu:NoSelect",
            "c1=gpu:NoSelect,c2=gpu:NoSelect",
            "c1=gpu=1:NoSelect,c2=gpu=1:NoSelect",
            "c1=gpu:NoSelect,NoSelectIfNew",
            "c1=a,b:NoSelect",
            "c1=gpu-,c2=gpu-",
        ] {
            assert_eq!(text.parse::<TaintChange>(), Err(TaintChangeError::Several), "{text}");
        }
        assert!(TaintChangeError::Several.to_string().contains("repeat --taint"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = text.parse::<TaintChange>();
        }
    }
}
