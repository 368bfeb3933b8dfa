//! Media types: which form an answer takes, and which form a body has.
//!
//! Owns the reading of `Accept`, `Content-Type` and `Accept-Encoding`, and the lists of what is accepted. Answers are
//! JSON in one of a few shapes, never protobuf. Never encodes anything.

mod accept;
mod negotiate;

use accept::next_part;
pub use negotiate::{
    Answer, AnswerFormat, DiscoveryAnswer, Endpoint, MetaVersion, Shape, negotiate, negotiate_at,
    negotiate_discovery, negotiate_watch, negotiate_watch_at,
};

use crate::body::TextFormat;
use crate::status::{Details, Reason, Status};

/// Clauses of an `Accept` header that are read; longer lists are cut, since the first that fits wins.
pub const ACCEPT_CLAUSES_MAX: usize = 64;

/// Answers smaller than this are not worth compressing; the threshold of a real server.
pub const GZIP_BYTES_MIN: usize = 128 * 1024;

/// What a real server lists when it refuses a body or an `Accept` header.
pub const MEDIA_TYPES: [&str; 3] = ["application/json", "application/yaml", PROTOBUF];

/// The same for watches.
pub const STREAM_MEDIA_TYPES: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The form of a body that holds an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyFormat {
    /// `application/json`, or nothing said.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`, for built-in kinds.
    Protobuf,
}

impl BodyFormat {
    /// The text format, when it is one.
    pub fn text(self) -> Option<TextFormat> {
        match self {
            BodyFormat::Json => Some(TextFormat::Json),
            BodyFormat::Yaml => Some(TextFormat::Yaml),
            BodyFormat::Protobuf => None,
        }
    }
}

/// Which bodies an endpoint takes. Custom resources have no protobuf form, though the refusals list it.
pub fn body_format(content_type: Option<&str>, takes_protobuf: bool) -> Result<BodyFormat, Status> {
    match essence(content_type.unwrap_or_default()).as_str() {
        "" if content_type.unwrap_or_default().trim().is_empty() => Ok(BodyFormat::Json),
        "application/json" => Ok(BodyFormat::Json),
        "application/yaml" => Ok(BodyFormat::Yaml),
        PROTOBUF if takes_protobuf => Ok(BodyFormat::Protobuf),
        _ => Err(Status::unsupported_media_type(&MEDIA_TYPES)),
    }
}

/// The kind of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own merge, by the merge keys of built-in kinds.
    StrategicMerge,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::StrategicMerge => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }

    /// Reads the `Content-Type` of a patch. Custom resources know no strategic merge.
    pub fn parse(content_type: Option<&str>, knows_strategic_merge: bool) -> Result<Self, Status> {
        const CUSTOM: [PatchType; 3] = [PatchType::Json, PatchType::Merge, PatchType::Apply];
        const BUILT_IN: [PatchType; 4] =
            [PatchType::Json, PatchType::Merge, PatchType::StrategicMerge, PatchType::Apply];
        let allowed: &[PatchType] = if knows_strategic_merge { &BUILT_IN } else { &CUSTOM };
        // Compared as it stands up to the first parameter, as the real server does: no case folding, no trimming.
        let said = content_type.unwrap_or_default();
        let said = match said.find(';') {
            Some(at) if at > 0 => &said[..at],
            _ => said,
        };
        allowed.iter().copied().find(|patch| patch.media_type() == said).ok_or_else(|| {
            if knows_strategic_merge {
                // Built-in kinds: the path's own list of forms decides first.
                return Status::failure(415, Reason::UnsupportedMediaType, "415: Unsupported Media Type")
                    .with_details(Details::default());
            }
            let names: Vec<&str> = allowed.iter().map(|patch| patch.media_type()).collect();
            Status::unsupported_media_type(&names)
        })
    }
}

/// The type and subtype of a media type, without parameters, in lower case; empty when it is not one.
fn essence(text: &str) -> String {
    let head = text.split(';').next().unwrap_or_default().trim();
    let is_token = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b))
    };
    match head.split_once('/') {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) => head.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// Whether people read the answer: `?pretty=` decides where it is given, the client's name otherwise.
pub fn is_pretty(pretty_parameter: Option<&str>, user_agent: Option<&str>) -> bool {
    match pretty_parameter {
        Some(said) if !said.is_empty() => matches!(said, "1" | "t" | "T" | "TRUE" | "true" | "True"),
        _ => user_agent
            .is_some_and(|agent| ["curl", "Wget", "Mozilla/5.0"].iter().any(|name| agent.starts_with(name))),
    }
}

/// Whether to compress an answer: only large ones, only when asked, never a watch.
pub fn use_gzip(accept_encoding: Option<&str>, body_bytes: usize, streams: bool) -> bool {
    let asked = accept_encoding.is_some_and(|header| {
        header.split(',').take(ACCEPT_CLAUSES_MAX).any(|item| {
            let (name, params) = next_part(item, ';');
            let refused = params.trim().strip_prefix("q=").is_some_and(|q| q.trim().parse() == Ok(0.0));
            name.trim().eq_ignore_ascii_case("gzip") && !refused
        })
    });
    asked && !streams && body_bytes > GZIP_BYTES_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_yaml_or_protobuf() {
        assert_eq!(body_format(None, false), Ok(BodyFormat::Json));
        assert_eq!(body_format(Some("Application/JSON; charset=utf-8"), false), Ok(BodyFormat::Json));
        assert_eq!(body_format(Some("application/yaml"), false), Ok(BodyFormat::Yaml));
        assert_eq!(body_format(Some("application/vnd.kubernetes.protobuf"), true), Ok(BodyFormat::Protobuf));
        assert_eq!(
            body_format(Some("application/vnd.kubernetes.protobuf"), false).unwrap_err().message,
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
        );
        assert!(body_format(Some("text/plain"), true).is_err());
        assert!(body_format(Some("rubbish"), true).is_err());
    }

    #[test]
    fn a_custom_resource_refuses_strategic_merge_and_lists_the_others() {
        let strategic = Some("application/strategic-merge-patch+json");
        assert_eq!(PatchType::parse(strategic, true), Ok(PatchType::StrategicMerge));
        assert_eq!(
            PatchType::parse(strategic, false).unwrap_err().message,
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        );
        assert_eq!(PatchType::parse(Some("application/apply-patch+yaml;x=y"), false), Ok(PatchType::Apply));
        assert_eq!(PatchType::parse(None, true).unwrap_err().message, "415: Unsupported Media Type");
    }

    #[test]
    fn indentation_is_for_people() {
        assert!(is_pretty(None, Some("curl/8.1")));
        assert!(!is_pretty(Some("false"), Some("curl/8.1")));
        assert!(is_pretty(Some("true"), Some("kubectl/v1.32")));
        assert!(!is_pretty(Some("yes"), Some("curl/8.1")));
        assert!(is_pretty(Some(""), Some("Mozilla/5.0 (X11)")));
        assert!(!is_pretty(None, None));
    }

    #[test]
    fn only_large_answers_are_compressed_and_never_watches() {
        let large = GZIP_BYTES_MIN + 1;
        assert!(use_gzip(Some("deflate, gzip;q=0.5"), large, false));
        assert!(!use_gzip(Some("gzip"), GZIP_BYTES_MIN, false));
        assert!(!use_gzip(Some("gzip"), large, true));
        assert!(!use_gzip(Some("gzip;q=0"), large, false));
        assert!(!use_gzip(None, large, false));
    }
}
