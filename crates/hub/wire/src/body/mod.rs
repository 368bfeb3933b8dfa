//! Request bodies: from bytes to a value of a known kind, or to the refusal a real server gives.
//!
//! Owns JSON and YAML. Protobuf is decoded by the crate that knows the built-in kinds, and joins here as a value.
//! Never checks what the fields hold: schemas do that.

pub mod json;
pub mod yaml;

use std::fmt::Write as _;

use serde_json::Value;

use crate::gotext::{json_kind, quote};
use crate::names::{GroupVersionKind, api_version, split_api_version};
use crate::status::Status;

pub use json::{DEPTH_MAX, Document};

/// Bytes of a body that are read at most; the limit of a real server.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Bytes of a body that are repeated in a refusal.
const SUMMARY_BYTES: usize = 30;

/// Bytes of a body that the complaint about a missing kind repeats. A real server repeats all of it; megabytes in an
/// error help nobody.
const REPEATED_BYTES_MAX: usize = 16 * 1024;

/// The text formats of bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextFormat {
    /// JSON.
    Json,
    /// YAML, and JSON with it.
    Yaml,
}

/// How the kind of an object is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KindRule {
    /// The path says it: a body without `kind` or `apiVersion` is of the kind that is served there. Built-in kinds.
    FromPath,
    /// The body must say it. Custom resources.
    FromBody,
    /// The body must say it, and one that does not is refused as the kind that is served at the path. Custom resources
    /// whose unknown fields nobody asks about: a real server reads them with another reader.
    FromLooseBody,
}

/// An object as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The object.
    pub value: Value,
    /// The kind it says it is, completed by what the path says where that is allowed.
    pub kind: GroupVersionKind,
    /// Strict errors found so far: `duplicate field "spec.x"`.
    pub strict_errors: Vec<String>,
}

/// Reads text in either format.
pub fn read_text(format: TextFormat, bytes: &[u8]) -> Result<Document, String> {
    match format {
        TextFormat::Json => json::read(bytes),
        TextFormat::Yaml => {
            yaml::read(bytes).map_err(|error| format!("error converting YAML to JSON: {error}"))
        }
    }
}

/// Decodes the object of a create or an update, of the kind that is `expected` at this path.
///
/// The version is not compared: see [`check_version`].
pub fn decode_object(
    format: TextFormat,
    bytes: &[u8],
    expected: &GroupVersionKind,
    rule: KindRule,
) -> Result<Decoded, Status> {
    let unrecognized = |why: &str| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            expected.kind,
            summary(bytes)
        ))
    };
    // The reader of objects says what is wrong with YAML without the words that [`read_text`] puts before it.
    let document = match format {
        TextFormat::Json => json::read(bytes).map_err(|error| unrecognized(&no_kind(&error)))?,
        TextFormat::Yaml => yaml::read(bytes).map_err(|error| unrecognized(&error))?,
    };
    let mut kind = type_meta(&document.value).map_err(|error| unrecognized(&error))?;
    match rule {
        KindRule::FromPath => {
            complete(&mut kind, expected);
            if kind.version.is_empty() {
                return Err(cannot_be_handled(&kind, expected, &missing("apiVersion", bytes)));
            }
        }
        KindRule::FromBody if kind.kind.is_empty() => {
            return Err(unrecognized(&missing("Kind", bytes)));
        }
        KindRule::FromLooseBody if kind.kind.is_empty() => {
            complete(&mut kind, expected);
            // This reader repeats the value alone, and YAML as the JSON it stands for.
            let why = match format {
                TextFormat::Json => missing("Kind", bytes.trim_ascii()),
                TextFormat::Yaml => missing("Kind", document.value.to_string().as_bytes()),
            };
            return Err(cannot_be_handled(&kind, expected, &why));
        }
        KindRule::FromBody | KindRule::FromLooseBody => {}
    }
    // A kind could be read, so anything that is not an object was refused above, except for `null`.
    let strict_errors = match format {
        TextFormat::Json => strict_errors(TextFormat::Json, &document.duplicates),
        TextFormat::Yaml => yaml_strict_error(&document).into_iter().collect(),
    };
    let value = if document.value.is_null() { Value::Object(serde_json::Map::new()) } else { document.value };
    Ok(Decoded { value, kind, strict_errors })
}

/// Fills in what a body leaves to the path.
fn complete(kind: &mut GroupVersionKind, expected: &GroupVersionKind) {
    if kind.kind.is_empty() {
        kind.kind.clone_from(&expected.kind);
    }
    if kind.group.is_empty() && kind.version.is_empty() {
        kind.group.clone_from(&expected.group);
    }
    if kind.version.is_empty() && kind.group == expected.group {
        kind.version.clone_from(&expected.version);
    }
}

fn missing(what: &str, body: &[u8]) -> String {
    let shown = &body[..body.len().min(REPEATED_BYTES_MAX)];
    format!("Object '{what}' is missing in '{}'", String::from_utf8_lossy(shown))
}

/// Strict errors for fields that were given more than once in JSON; in YAML they are one error, see
/// [`yaml_strict_error`].
pub fn strict_errors(format: TextFormat, duplicates: &[String]) -> Vec<String> {
    match format {
        TextFormat::Json => {
            duplicates.iter().map(|path| format!("duplicate field {}", quote(path))).collect()
        }
        TextFormat::Yaml => duplicates
            .iter()
            .map(|path| format!("key {} already set in map", quote(last_key(path))))
            .collect(),
    }
}

/// The one strict error for every key that was given more than once in YAML.
pub fn yaml_strict_error(document: &Document) -> Option<String> {
    let mut lines = String::new();
    for (path, line) in document.duplicates.iter().zip(&document.duplicate_lines) {
        let _ = write!(lines, "\n  line {line}: key {} already set in map", quote(last_key(path)));
    }
    (!lines.is_empty()).then(|| format!("yaml: unmarshal errors:{lines}"))
}

fn last_key(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The refusal for an object whose kind is known and which cannot be taken as the kind served here.
pub fn cannot_be_handled(said: &GroupVersionKind, expected: &GroupVersionKind, why: &str) -> Status {
    Status::bad_request(format!(
        "{} in version {} cannot be handled as a {}: {why}",
        said.kind,
        quote(&said.version),
        expected.kind
    ))
}

/// The refusal for strict errors, when the request asks for `fieldValidation=Strict`.
pub fn strict_failure(said: &GroupVersionKind, expected: &GroupVersionKind, errors: &[String]) -> Status {
    cannot_be_handled(said, expected, &format!("strict decoding error: {}", errors.join(", ")))
}

/// The refusal for a body whose version is not the one served at the path.
pub fn check_version(said: &GroupVersionKind, expected: &GroupVersionKind) -> Result<(), Status> {
    if said.group == expected.group && said.version == expected.version {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the API version in the data ({}) does not match the expected API version ({})",
        api_version(&said.group, &said.version),
        api_version(&expected.group, &expected.version)
    )))
}

/// The refusal of a kind that a real server's table of kinds does not hold.
pub fn not_registered(said: &GroupVersionKind) -> String {
    format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        quote(&said.kind),
        quote(&said.api_version())
    )
}

fn no_kind(error: &str) -> String {
    format!("couldn't get version/kind; json parse error: {error}")
}

/// What `apiVersion` and `kind` of a value say, either of which may be empty. The error is the complaint of a Go server
/// about values that cannot have them.
pub fn type_meta(value: &Value) -> Result<GroupVersionKind, String> {
    let map = match value {
        Value::Null => return Ok(GroupVersionKind::default()),
        Value::Object(map) => map,
        other => {
            return Err(no_kind(&format!(
                "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                json_kind(other)
            )));
        }
    };
    let text = |field: &str| match map.get(field) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => {
            let kind = json_kind(other);
            Err(no_kind(&format!(
                "json: cannot unmarshal {kind} into Go struct field .{field} of type string"
            )))
        }
    };
    let (group, version) = split_api_version(text("apiVersion")?)?;
    Ok(GroupVersionKind::new(group, version, text("kind")?))
}

/// The beginning of a body, as refusals show it: text for objects, hexadecimal otherwise.
fn summary(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SUMMARY_BYTES)];
    let more = if bytes.len() > SUMMARY_BYTES { " ..." } else { "" };
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => {
            let mut hex = String::with_capacity(shown.len() * 2 + more.len());
            for byte in shown {
                let _ = write!(hex, "{byte:02x}");
            }
            hex + more
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn placement() -> GroupVersionKind {
        GroupVersionKind::new("cluster.open-cluster-management.io", "v1beta1", "Placement")
    }

    fn refusal(body: &str, rule: KindRule) -> String {
        decode_object(TextFormat::Json, body.as_bytes(), &placement(), rule).unwrap_err().message
    }

    #[test]
    fn a_custom_resource_must_say_its_kind() {
        assert_eq!(
            refusal("{}", KindRule::FromBody),
            "the object provided is unrecognized (must be of type Placement): Object 'Kind' is missing in '{}' ({})"
        );
    }

    #[test]
    fn a_custom_resource_without_a_kind_is_refused_as_the_kind_of_its_path_where_nobody_asks_for_strictness()
    {
        let told = |format, body: &[u8]| {
            decode_object(format, body, &placement(), KindRule::FromLooseBody).unwrap_err().message
        };
        assert_eq!(
            told(TextFormat::Json, b" {\"a\": 1}\n"),
            "Placement in version \"v1beta1\" cannot be handled as a Placement: Object 'Kind' is missing in '{\"a\": 1}'"
        );
        assert_eq!(
            told(TextFormat::Yaml, b"apiVersion: v9\n"),
            "Placement in version \"v9\" cannot be handled as a Placement: Object 'Kind' is missing in \
             '{\"apiVersion\":\"v9\"}'"
        );
        let said = br#"{"kind":"Placement"}"#;
        assert!(decode_object(TextFormat::Json, said, &placement(), KindRule::FromLooseBody).is_ok());
    }

    #[test]
    fn a_built_in_kind_is_known_by_its_path() {
        let decoded =
            decode_object(TextFormat::Json, b"{\"a\":1}", &placement(), KindRule::FromPath).unwrap();
        assert_eq!(decoded.kind, placement());
        let decoded =
            decode_object(TextFormat::Json, b"{\"apiVersion\":\"v1\"}", &placement(), KindRule::FromPath)
                .unwrap();
        assert_eq!(decoded.kind, GroupVersionKind::new("", "v1", "Placement"));
        assert_eq!(
            check_version(&decoded.kind, &placement()).unwrap_err().message,
            "the API version in the data (v1) does not match the expected API version \
             (cluster.open-cluster-management.io/v1beta1)"
        );
    }

    #[test]
    fn malformed_bodies_are_summarised() {
        assert_eq!(
            refusal("{\"kind\": x}", KindRule::FromBody),
            "the object provided is unrecognized (must be of type Placement): couldn't get version/kind; json parse \
             error: invalid character 'x' looking for beginning of value ({\"kind\": x})"
        );
        assert_eq!(
            refusal("", KindRule::FromBody),
            "the object provided is unrecognized (must be of type Placement): couldn't get version/kind; json parse \
             error: unexpected end of JSON input (<empty>)"
        );
        assert!(
            refusal("[]", KindRule::FromBody).ends_with("omitempty\\\"\" } (5b5d)"),
            "{}",
            refusal("[]", KindRule::FromBody)
        );
        assert!(refusal(&format!("{{{}", " ".repeat(40)), KindRule::FromBody).ends_with(" ...)"));
        assert!(
            refusal("{\"kind\":5}", KindRule::FromBody)
                .contains("json: cannot unmarshal number into Go struct field .kind of type string")
        );
    }

    #[test]
    fn duplicates_become_strict_errors() {
        let body = br#"{"kind":"Placement","apiVersion":"cluster.open-cluster-management.io/v1beta1","spec":{"x":1,"x":2}}"#;
        let decoded = decode_object(TextFormat::Json, body, &placement(), KindRule::FromBody).unwrap();
        assert_eq!(decoded.strict_errors, ["duplicate field \"spec.x\""]);
        assert_eq!(
            strict_failure(&decoded.kind, &placement(), &["unknown field \"spec.foo\"".to_owned()]).message,
            "Placement in version \"v1beta1\" cannot be handled as a Placement: strict decoding error: unknown field \
             \"spec.foo\""
        );
    }

    #[test]
    fn keys_given_twice_in_yaml_are_one_error_with_lines() {
        let body = b"kind: Placement\nspec:\n  a: 1\n  a: 2\n  b: 1\n  b: 2\n";
        let decoded = decode_object(TextFormat::Yaml, body, &placement(), KindRule::FromBody).unwrap();
        assert_eq!(
            decoded.strict_errors,
            [
                "yaml: unmarshal errors:\n  line 4: key \"a\" already set in map\n  line 6: key \"b\" already set in map"
            ]
        );
    }

    #[test]
    fn broken_yaml_is_told_as_yaml() {
        let status = decode_object(TextFormat::Yaml, b"a: [", &placement(), KindRule::FromBody).unwrap_err();
        let start = "the object provided is unrecognized (must be of type Placement): yaml: line ";
        assert!(status.message.starts_with(start), "{}", status.message);
        assert!(status.message.ends_with(" (613a205b)"));
        assert!(
            read_text(TextFormat::Yaml, b"a: [")
                .unwrap_err()
                .starts_with("error converting YAML to JSON: yaml: ")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_object_or_a_refusal(bytes in proptest::collection::vec(any::<u8>(), 0..100), yaml in any::<bool>()) {
            let format = if yaml { TextFormat::Yaml } else { TextFormat::Json };
            if let Err(status) = decode_object(format, &bytes, &placement(), KindRule::FromBody) {
                prop_assert_eq!(status.code(), 400);
            }
        }
    }
}
