//! Options of get, list, watch and deletecollection.

use super::refuse;
use crate::field_error::{forbidden, invalid, not_supported};
use crate::gotext::quote;
use crate::query::Query;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::{Cause, Status};

/// How the revision of a list relates to the one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VersionMatch {
    /// Exactly that one.
    Exact,
    /// That one or a later one.
    NotOlderThan,
}

/// Options of a list, a watch or the deletion of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Which labels objects must have.
    pub label_selector: LabelSelector,
    /// Which fields objects must have. Whether the kind knows them is for [`FieldSelector::check`].
    pub field_selector: FieldSelector,
    /// Whether to go on watching.
    pub watch: bool,
    /// Whether the client understands bookmarks.
    pub allow_watch_bookmarks: bool,
    /// The revision asked for, as it was sent.
    pub resource_version: String,
    /// How the revision must relate to it.
    pub resource_version_match: Option<VersionMatch>,
    /// When a watch ends.
    pub timeout_seconds: Option<i64>,
    /// Objects per page; zero is all of them.
    pub limit: i64,
    /// Where the page starts; empty is the first one.
    pub continue_token: String,
    /// Whether a watch begins with the current state. Set for watches from no revision or from `0`, as a real server
    /// sets it.
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads, completes and checks the options of a query.
    pub fn parse(query: &Query) -> Result<Self, Status> {
        let timeout_seconds = query.integer("timeoutSeconds")?;
        let limit = query.integer("limit")?.unwrap_or(0);
        let mut options = ListOptions {
            label_selector: LabelSelector::parse_query(query.get("labelSelector").unwrap_or_default())?,
            field_selector: FieldSelector::parse_query(query.get("fieldSelector").unwrap_or_default())?,
            watch: query.boolean("watch").unwrap_or(false),
            allow_watch_bookmarks: query.boolean("allowWatchBookmarks").unwrap_or(false),
            resource_version: query.text("resourceVersion"),
            resource_version_match: None,
            timeout_seconds,
            limit,
            continue_token: query.text("continue"),
            send_initial_events: query.boolean("sendInitialEvents"),
        };
        let mut said = query.get("resourceVersionMatch").unwrap_or_default();
        let from_the_start = matches!(options.resource_version.as_str(), "" | "0");
        if options.watch && from_the_start && options.send_initial_events.is_none() && said.is_empty() {
            options.send_initial_events = Some(true);
            said = "NotOlderThan";
        }
        let wrong = if options.watch { options.check_watch(said) } else { options.check_list(said) };
        refuse("ListOptions", &wrong)?;
        options.resource_version_match = match said {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        };
        Ok(options)
    }

    fn check_list(&self, said: &str) -> Vec<Cause> {
        const FIELD: &str = "resourceVersionMatch";
        let mut wrong = Vec::new();
        if !said.is_empty() {
            if self.resource_version.is_empty() {
                wrong.push(forbidden(
                    FIELD,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.continue_token.is_empty() {
                wrong.push(forbidden(FIELD, "resourceVersionMatch is forbidden when continue is provided"));
            }
            if said != "Exact" && said != "NotOlderThan" {
                wrong.push(not_supported(FIELD, &quoted(said), &["Exact", "NotOlderThan", ""]));
            }
            if said == "Exact" && self.resource_version == "0" {
                let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                wrong.push(forbidden(FIELD, detail));
            }
        }
        if self.send_initial_events.is_some() {
            wrong.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        wrong
    }

    fn check_watch(&self, said: &str) -> Vec<Cause> {
        const FIELD: &str = "resourceVersionMatch";
        let mut wrong = Vec::new();
        if self.send_initial_events.is_some() && said != "NotOlderThan" {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            wrong.push(forbidden(FIELD, detail));
        }
        if !said.is_empty() {
            if self.send_initial_events.is_none() {
                let detail =
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                wrong.push(forbidden(FIELD, detail));
            }
            if said != "NotOlderThan" {
                wrong.push(not_supported(FIELD, &quoted(said), &["NotOlderThan"]));
            }
            if !self.continue_token.is_empty() {
                wrong.push(forbidden(FIELD, "resourceVersionMatch is forbidden when continue is provided"));
            }
        }
        wrong
    }

    /// Whether a watch begins with the current state and marks where it ends.
    pub fn is_streaming_list(&self) -> bool {
        self.watch && self.send_initial_events == Some(true) && self.allow_watch_bookmarks
    }
}

/// A typed string is shown as JSON there, which quotes the same for every value that can come in.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Options of a get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetOptions {
    /// The revision that the answer must not be older than, as it was sent.
    pub resource_version: String,
}

impl GetOptions {
    /// Reads the options of a query.
    pub fn parse(query: &Query) -> Self {
        GetOptions { resource_version: query.text("resourceVersion") }
    }
}

/// Reads a revision; none and `0` are the same. The error is the complaint about the field: a list answers with
/// [`Status::bad_request`] of `invalid resource version: resourceVersion: …`, a watch with [`Status::invalid`] of it.
pub fn parse_resource_version(text: &str) -> Result<u64, Cause> {
    if text.is_empty() {
        return Ok(0);
    }
    // Go's ParseUint takes no sign.
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(version) if is_number => Ok(version),
        _ => {
            let why = if is_number { "value out of range" } else { "invalid syntax" };
            let detail = format!("strconv.ParseUint: parsing {}: {why}", quote(text));
            Err(invalid("resourceVersion", text, &detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<ListOptions, Status> {
        ListOptions::parse(&Query::parse(Some(query)))
    }

    fn refusal(query: &str) -> String {
        parse(query).unwrap_err().message
    }

    #[test]
    fn a_list_reads_every_option() {
        let options = parse("&limit=500&resourceVersion=0&labelSelector=a%3Db&fieldSelector=metadata.name%3Dx&continue=abc&foo=bar").unwrap();
        assert_eq!(options.limit, 500);
        assert_eq!(options.resource_version, "0");
        assert_eq!(options.label_selector.to_string(), "a=b");
        assert_eq!(options.field_selector.exact("metadata.name"), Some("x"));
        assert_eq!(options.continue_token, "abc");
        assert!(!options.watch);
        assert_eq!(parse("").unwrap(), ListOptions::default());
    }

    #[test]
    fn a_watch_from_the_start_sends_the_current_state() {
        for query in ["watch=true", "watch=1&resourceVersion=0", "watch"] {
            let options = parse(query).unwrap();
            assert_eq!(options.send_initial_events, Some(true), "{query}");
            assert_eq!(options.resource_version_match, Some(VersionMatch::NotOlderThan));
            assert!(!options.is_streaming_list());
        }
        assert_eq!(parse("watch=true&resourceVersion=5").unwrap().send_initial_events, None);
        let streaming =
            "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        assert!(parse(streaming).unwrap().is_streaming_list());
    }

    #[test]
    fn contradictions_are_refused() {
        for (query, want) in [
            (
                "resourceVersionMatch=Exact",
                "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (
                "resourceVersionMatch=Exact&resourceVersion=5&continue=x",
                "Forbidden: resourceVersionMatch is forbidden when continue is provided",
            ),
            (
                "resourceVersionMatch=Near&resourceVersion=5",
                "Unsupported value: \"Near\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
            ),
            (
                "resourceVersionMatch=Exact&resourceVersion=0",
                "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ),
            (
                "watch=true&resourceVersion=5&resourceVersionMatch=NotOlderThan",
                "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ),
            (
                "watch=true&sendInitialEvents=true",
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ),
        ] {
            assert_eq!(
                refusal(query),
                format!("ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: {want}"),
                "{query}"
            );
        }
        assert_eq!(
            refusal("sendInitialEvents=false"),
            "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
        );
        assert!(refusal("watch=1&sendInitialEvents=1&resourceVersionMatch=Exact").contains("is invalid: ["));
    }

    #[test]
    fn what_cannot_be_read_is_a_bad_request() {
        assert_eq!(refusal("limit=x"), "strconv.ParseInt: parsing \"x\": invalid syntax");
        assert_eq!(refusal("labelSelector=a,,b"), "found ',', expected: identifier after ','");
        assert_eq!(refusal("fieldSelector=a"), "invalid selector: 'a'; can't understand 'a'");
        assert_eq!(parse("limit=x").unwrap_err().code(), 400);
    }

    #[test]
    fn revisions_are_numbers_without_a_sign() {
        assert_eq!(parse_resource_version(""), Ok(0));
        assert_eq!(parse_resource_version("42"), Ok(42));
        assert_eq!(
            parse_resource_version("+1").unwrap_err().message,
            "Invalid value: \"+1\": strconv.ParseUint: parsing \"+1\": invalid syntax"
        );
        assert!(
            parse_resource_version("99999999999999999999")
                .unwrap_err()
                .message
                .ends_with("value out of range")
        );
    }
}
