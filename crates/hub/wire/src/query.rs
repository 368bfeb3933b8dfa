//! Query strings: names and values, as Go reads them.
//!
//! Owns splitting and decoding, and the rules by which a value stands for a boolean or a number. Empty pairs are
//! passed over, broken ones are dropped, unknown names are of no concern. Never knows what the options mean.

use crate::gotext::quote;
use crate::percent;
use crate::status::Status;

/// Pairs of a query string that are read; no request has a use for more.
pub const PAIRS_MAX: usize = 1_000;

/// The decoded pairs of a query string, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads what stands after the question mark. Never fails: what cannot be decoded is left out.
    pub fn parse(text: Option<&str>) -> Self {
        let pairs = text
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'))
            .filter_map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((percent::decode(name, true)?, percent::decode(value, true)?))
            })
            .take(PAIRS_MAX)
            .collect();
        Query { pairs }
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Every value of a name, in order.
    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.pairs.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a name, or an empty one.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }

    /// A boolean: anything but `false` and `0` is true, also nothing after the name.
    pub(crate) fn boolean(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    /// A 64-bit integer, or the refusal of what is not one.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Status> {
        self.get(name).map(|value| integer(value).map_err(Status::bad_request)).transpose()
    }
}

/// Reads an integer as Go's `strconv.ParseInt` does, with its complaints.
pub(crate) fn integer(text: &str) -> Result<i64, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| {
        let why = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {}: {why}", quote(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_pairs_are_passed_over_and_broken_ones_dropped() {
        let query = Query::parse(Some("&limit=500&&a=%zz&b=1;c=2&x&labelSelector=a%3Db+c&limit=7"));
        assert_eq!(query.get("limit"), Some("500"));
        assert_eq!(query.all("limit").collect::<Vec<_>>(), ["500", "7"]);
        assert_eq!(query.get("a"), None);
        assert_eq!(query.get("b"), None);
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.get("labelSelector"), Some("a=b c"));
        assert!(Query::parse(None).is_empty());
        assert!(Query::parse(Some("")).is_empty());
    }

    #[test]
    fn anything_but_false_and_zero_is_true() {
        let query = Query::parse(Some("a&b=false&c=0&d=FALSE&e=no&f=1"));
        for (name, want) in [("a", true), ("b", false), ("c", false), ("d", false), ("e", true), ("f", true)]
        {
            assert_eq!(query.boolean(name), Some(want), "{name}");
        }
        assert_eq!(query.boolean("g"), None);
    }

    #[test]
    fn integers_are_refused_in_the_words_of_go() {
        assert_eq!(integer("-5"), Ok(-5));
        assert_eq!(integer("x").unwrap_err(), "strconv.ParseInt: parsing \"x\": invalid syntax");
        assert_eq!(integer("").unwrap_err(), "strconv.ParseInt: parsing \"\": invalid syntax");
        assert_eq!(
            integer("9223372036854775808").unwrap_err(),
            "strconv.ParseInt: parsing \"9223372036854775808\": value out of range"
        );
    }

    #[test]
    fn the_number_of_pairs_is_bounded() {
        assert_eq!(Query::parse(Some(&"a=1&".repeat(PAIRS_MAX * 2))).pairs.len(), PAIRS_MAX);
    }

    proptest! {
        #[test]
        fn any_text_is_a_query(text in ".{0,60}") {
            let _ = Query::parse(Some(&text));
        }
    }
}
