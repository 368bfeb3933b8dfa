//! Enumerations that stay open: the known words as variants, everything else kept as it was written.
//!
//! Owns the `open_enum!` macro. An object stored by a newer or older program may hold a word this one does not
//! know; reading and writing it back must not lose it, so no open enum ever fails to deserialise a string.
//! Refusing unknown words is the schema's business, never the type's.

/// What all open enums have in common.
pub(crate) trait Word {
    /// Every accepted spelling.
    const WORDS: &'static [&'static str];

    /// The word, if it is none of those.
    fn unknown(&self) -> Option<&str>;
}

/// Declares an open enum.
///
/// `aliases { Name = "Word" => Canonical, }` adds spellings that older documents use: they are kept on output, and
/// `canonical()` maps each to the variant that carries its meaning. `schema: closed` lists the words in the
/// generated schema; `schema: free` leaves the schema a plain string, as the reference does for some fields.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident, schema: $mode:ident {
            $( $(#[$vmeta:meta])* $variant:ident = $text:literal, )+
        }
        $( aliases { $( $(#[$ameta:meta])* $alias:ident = $atext:literal => $target:ident, )+ } )?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )+
            $( $( $(#[$ameta])* $alias, )+ )?
            /// A word this program does not know, kept as written.
            Other(String),
        }

        impl $name {
            /// The words with a meaning of their own, in declaration order.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];
            /// Every accepted spelling: the known words, then the aliases.
            pub const ACCEPTED: &'static [&'static str] = &[$($text,)+ $($($atext,)+)?];

            /// The word as it is written in an object.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    $( $( Self::$alias => $atext, )+ )?
                    Self::Other(text) => text,
                }
            }

            /// The same meaning without aliases: an alias becomes the variant it stands for.
            #[must_use]
            pub fn canonical(&self) -> Self {
                match self {
                    $( $( Self::$alias => Self::$target, )+ )?
                    other => other.clone(),
                }
            }
        }

        impl $crate::open_enum::Word for $name {
            const WORDS: &'static [&'static str] = Self::ACCEPTED;

            fn unknown(&self) -> Option<&str> {
                match self {
                    Self::Other(text) => Some(text),
                    _ => None,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $( $text => Self::$variant, )+
                    $( $( $atext => Self::$alias, )+ )?
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                Ok(Self::from(&*text))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::open_enum::open_enum!(@schema $mode, Self::ACCEPTED)
            }
        }
    };
    (@schema closed, $words:expr) => { schemars::json_schema!({ "type": "string", "enum": $words }) };
    (@schema free, $words:expr) => { schemars::json_schema!({ "type": "string" }) };
}

pub(crate) use open_enum;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{
        PrioritizerMode, ScoreCoordinateType, SelectorType, SortBy, TaintEffect, TolerationOperator,
        TopologyKeyType, UnsatisfiableAction,
    };

    macro_rules! survives {
        ($text:expr, $($kind:ty),+) => {$(
            let json = serde_json::Value::String($text.to_owned());
            let read: $kind = serde_json::from_value(json.clone()).unwrap();
            prop_assert_eq!(serde_json::to_value(&read).unwrap(), json);
        )+};
    }

    proptest! {
        #[test]
        fn any_word_survives_reading_and_writing_through_every_open_enum(text in "\\PC{0,40}") {
            survives!(
                text, TaintEffect, TolerationOperator, PrioritizerMode, ScoreCoordinateType, SelectorType,
                TopologyKeyType, UnsatisfiableAction, SortBy
            );
        }
    }

    #[test]
    fn an_alias_is_kept_on_output_and_means_its_canonical_variant() {
        let read: ScoreCoordinateType = serde_json::from_str("\"BuildIn\"").unwrap();
        assert_eq!(read.canonical(), ScoreCoordinateType::BuiltIn);
        assert_eq!(serde_json::to_string(&read).unwrap(), "\"BuildIn\"");

        let read: SelectorType = serde_json::from_str("\"LegacyClusterSetLabel\"").unwrap();
        assert_eq!(read.canonical(), SelectorType::ExclusiveClusterSetLabel);
        assert_eq!(serde_json::to_string(&read).unwrap(), "\"LegacyClusterSetLabel\"");
    }

    #[test]
    fn a_known_word_is_its_variant_and_case_matters() {
        assert_eq!(TaintEffect::from("NoSelect"), TaintEffect::NoSelect);
        assert_eq!(TaintEffect::from("noselect"), TaintEffect::Other("noselect".into()));
    }

    #[test]
    fn a_number_is_not_a_word() {
        assert!(serde_json::from_str::<SortBy>("7").is_err());
    }
}
