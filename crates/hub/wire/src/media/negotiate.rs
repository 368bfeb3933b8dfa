//! The form of an answer, chosen from what the client accepts.

use super::accept::{Clause, clauses};
use super::{ACCEPT_CLAUSES_MAX, MEDIA_TYPES, STREAM_MEDIA_TYPES};
use crate::status::Status;

/// The text an answer is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerFormat {
    /// `application/json`.
    Json,
    /// `application/yaml`: the client gets JSON text, which is YAML, under the name it asked for.
    Yaml,
}

/// A version of the group `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetaVersion {
    /// `v1`
    V1,
    /// `v1beta1`
    V1Beta1,
}

impl MetaVersion {
    /// The version's name.
    pub fn as_str(self) -> &'static str {
        match self {
            MetaVersion::V1 => "v1",
            MetaVersion::V1Beta1 => "v1beta1",
        }
    }
}

/// The shape of an answer about objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// The object or list itself.
    Plain,
    /// A `Table`.
    Table(MetaVersion),
    /// One object's metadata; an error for lists.
    PartialObjectMetadata(MetaVersion),
    /// A list's metadata; an error for single objects.
    PartialObjectMetadataList(MetaVersion),
}

/// The form of an answer about objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Answer {
    /// The text it is written in.
    pub format: AnswerFormat,
    /// Its shape.
    pub shape: Shape,
    /// Whether the `Accept` header asks for indentation.
    pub pretty: bool,
}

impl Answer {
    /// JSON as it is, on one line.
    pub const PLAIN: Answer = Answer { format: AnswerFormat::Json, shape: Shape::Plain, pretty: false };

    /// The `Content-Type` of the answer.
    pub fn content_type(&self) -> &'static str {
        match self.format {
            AnswerFormat::Json => "application/json",
            AnswerFormat::Yaml => "application/yaml",
        }
    }
}

/// The form of a discovery answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiscoveryAnswer {
    /// `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`.
    AggregatedV2,
    /// The same of `v2beta1`.
    AggregatedV2Beta1,
    /// One document per group and version.
    Legacy,
}

impl DiscoveryAnswer {
    /// The `Content-Type` of the answer.
    pub fn content_type(self) -> &'static str {
        match self {
            DiscoveryAnswer::AggregatedV2 => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            DiscoveryAnswer::AggregatedV2Beta1 => {
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
            }
            DiscoveryAnswer::Legacy => "application/json",
        }
    }
}

/// Chooses the form of an answer about objects. Nothing said, or anything accepted, is plain JSON.
pub fn negotiate(accept: Option<&str>) -> Result<Answer, Status> {
    choose(accept, false).ok_or_else(|| Status::not_acceptable(&MEDIA_TYPES))
}

/// The same for a watch, which is JSON only.
pub fn negotiate_watch(accept: Option<&str>) -> Result<Answer, Status> {
    negotiate(accept)?;
    choose(accept, true).ok_or_else(|| Status::not_acceptable(&STREAM_MEDIA_TYPES))
}

/// Where a request goes, as far as refusals differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A custom resource.
    Custom,
    /// A built-in kind: one object, or a write.
    BuiltIn,
    /// A built-in kind: a list or a watch.
    BuiltInCollection,
}

/// [`negotiate`], with the refusal of the endpoint.
pub fn negotiate_at(accept: Option<&str>, endpoint: Endpoint) -> Result<Answer, Status> {
    check_route(accept, endpoint)?;
    negotiate(accept)
}

/// [`negotiate_watch`], with the refusal of the endpoint.
pub fn negotiate_watch_at(accept: Option<&str>, endpoint: Endpoint) -> Result<Answer, Status> {
    check_route(accept, endpoint)?;
    negotiate_watch(accept)
}

/// The paths of built-in kinds list what they produce, and compare it with each entry without its parameters.
fn check_route(accept: Option<&str>, endpoint: Endpoint) -> Result<(), Status> {
    let streams: &[&str] = match endpoint {
        Endpoint::Custom => return Ok(()),
        Endpoint::BuiltIn => &[],
        Endpoint::BuiltInCollection => &STREAM_MEDIA_TYPES,
    };
    let header = accept.unwrap_or_default();
    let fits = |entry: &str| {
        let range = entry.split(';').next().unwrap_or_default().trim();
        range == "*/*" || MEDIA_TYPES.contains(&range)
    };
    if header.is_empty() || header.split(',').take(ACCEPT_CLAUSES_MAX).any(fits) {
        return Ok(());
    }
    let available: Vec<&str> = MEDIA_TYPES.iter().chain(streams).copied().collect();
    Err(Status::no_such_representation(&available))
}

fn choose(accept: Option<&str>, streams: bool) -> Option<Answer> {
    let header = accept.unwrap_or_default();
    if header.is_empty() {
        return Some(Answer::PLAIN);
    }
    let formats: &[(AnswerFormat, &str)] = if streams {
        &[(AnswerFormat::Json, "json")]
    } else {
        &[(AnswerFormat::Json, "json"), (AnswerFormat::Yaml, "yaml")]
    };
    for clause in clauses(header) {
        for &(format, subtype) in formats {
            if clause.allows(subtype)
                && let Some(answer) = answer(&clause, format)
            {
                return Some(answer);
            }
        }
    }
    None
}

/// The answer a clause asks for, when its parameters can be met.
fn answer(clause: &Clause<'_>, format: AnswerFormat) -> Option<Answer> {
    if clause.param("stream").is_some_and(|stream| stream != "watch") {
        return None;
    }
    if clause.param("sv").is_some_and(|version| version != "v1") {
        return None;
    }
    let shape = match clause.conversion() {
        None => Shape::Plain,
        Some(("meta.k8s.io", version, kind)) => {
            let version = match version {
                "v1" => MetaVersion::V1,
                "v1beta1" => MetaVersion::V1Beta1,
                _ => return None,
            };
            match kind {
                "Table" => Shape::Table(version),
                "PartialObjectMetadata" => Shape::PartialObjectMetadata(version),
                "PartialObjectMetadataList" => Shape::PartialObjectMetadataList(version),
                _ => return None,
            }
        }
        Some(_) => return None,
    };
    Some(Answer { format, shape, pretty: clause.param("pretty") == Some("1") })
}

/// Chooses the form of the answers at `/api` and `/apis`. What is not understood there gets the legacy documents.
pub fn negotiate_discovery(accept: Option<&str>) -> DiscoveryAnswer {
    clauses(accept.unwrap_or_default())
        .iter()
        .filter(|clause| clause.allows("json"))
        .find_map(|clause| match clause.conversion() {
            Some(("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")) => {
                Some(DiscoveryAnswer::AggregatedV2)
            }
            Some(("apidiscovery.k8s.io", "v2beta1", "APIGroupDiscoveryList")) => {
                Some(DiscoveryAnswer::AggregatedV2Beta1)
            }
            _ => None,
        })
        .unwrap_or(DiscoveryAnswer::Legacy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(accept: &str) -> Option<Shape> {
        negotiate(Some(accept)).ok().map(|answer| answer.shape)
    }

    #[test]
    fn nothing_said_or_anything_accepted_is_plain_json() {
        assert_eq!(negotiate(None), Ok(Answer::PLAIN));
        for accept in ["", "*/*", "application/*", "*", "application/json, */*"] {
            assert_eq!(negotiate(Some(accept)), Ok(Answer::PLAIN), "{accept}");
        }
    }

    #[test]
    fn tables_are_given_in_the_version_asked_for() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(shape(kubectl), Some(Shape::Table(MetaVersion::V1)));
        assert_eq!(
            shape("application/json;as=Table;v=v1beta1;g=meta.k8s.io"),
            Some(Shape::Table(MetaVersion::V1Beta1))
        );
        assert_eq!(
            shape("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            Some(Shape::PartialObjectMetadataList(MetaVersion::V1))
        );
    }

    #[test]
    fn what_is_not_understood_is_skipped() {
        assert_eq!(shape("application/vnd.kubernetes.protobuf,application/json"), Some(Shape::Plain));
        assert_eq!(
            shape("application/json;as=Chair;g=meta.k8s.io;v=v1, application/json"),
            Some(Shape::Plain)
        );
        assert_eq!(shape("nonsense, a/b/c, ;;;, application/json"), Some(Shape::Plain));
        assert_eq!(shape("application/json;q=0.1, application/yaml;q=0.5"), Some(Shape::Plain));
    }

    #[test]
    fn better_quality_goes_first() {
        let answer = negotiate(Some("application/json;q=0.1, application/yaml;q=0.5")).unwrap();
        assert_eq!(answer.format, AnswerFormat::Yaml);
        assert_eq!(answer.content_type(), "application/yaml");
        let answer = negotiate(Some("*/*, application/yaml")).unwrap();
        assert_eq!(answer.format, AnswerFormat::Yaml);
    }

    #[test]
    fn what_cannot_be_met_is_refused_with_the_list() {
        let status = negotiate(Some("text/html")).unwrap_err();
        assert_eq!(
            status.message,
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
        );
        assert_eq!(status.code(), 406);
        assert!(negotiate(Some("application/vnd.kubernetes.protobuf")).is_err());
        assert_eq!(negotiate_watch(Some("text/html")).unwrap_err().message, status.message);
        assert_eq!(
            negotiate_watch(Some("application/yaml")).unwrap_err().message,
            "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        );
        assert!(negotiate_watch(Some("application/json;stream=watch")).is_ok());
    }

    #[test]
    fn built_in_kinds_list_what_they_can_represent() {
        let refusal = |accept, endpoint| negotiate_at(Some(accept), endpoint).unwrap_err().message;
        let one = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        assert_eq!(refusal("text/html", Endpoint::BuiltIn), one);
        assert_eq!(
            refusal("text/html", Endpoint::BuiltInCollection),
            format!("{one}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch")
        );
        assert!(refusal("text/html", Endpoint::Custom).starts_with("only the following"));
        assert!(refusal("application/json;as=Chair", Endpoint::BuiltIn).starts_with("only the following"));
        assert!(negotiate_at(Some("text/html, */*"), Endpoint::BuiltIn).is_ok());
        assert!(negotiate_at(None, Endpoint::BuiltIn).is_ok());
    }

    #[test]
    fn discovery_knows_both_aggregated_versions_and_falls_back() {
        let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(negotiate_discovery(Some(kubectl)), DiscoveryAnswer::AggregatedV2);
        let older =
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(negotiate_discovery(Some(older)), DiscoveryAnswer::AggregatedV2Beta1);
        assert_eq!(negotiate_discovery(Some("application/json")), DiscoveryAnswer::Legacy);
        assert_eq!(negotiate_discovery(None), DiscoveryAnswer::Legacy);
    }

    proptest! {
        #[test]
        fn any_header_gets_an_answer_or_a_refusal(header in "[a-z*/;=, q0-9.]{0,80}") {
            let _ = negotiate(Some(&header));
            let _ = negotiate_watch_at(Some(&header), Endpoint::BuiltIn);
            let _ = negotiate_discovery(Some(&header));
            let _ = super::super::body_format(Some(&header), true);
        }
    }
}
