//! Any bytes as the body of a request to the hub: JSON, YAML, protobuf.
//!
//! Owns the promises: reading ends with a value or with a refusal that says why, what was read is within bounds, and it
//! is read back from its JSON as it was, by the reader of requests as well as by the one of stored objects.

use berth_hub_kinds::{Builtins, Gvk, conform, protobuf};
use berth_hub_wire::GroupVersionKind;
use berth_hub_wire::body::json::DUPLICATES_MAX;
use berth_hub_wire::body::yaml::EXPANSION_BYTES_MAX;
use berth_hub_wire::body::{KindRule, TextFormat, decode_object, json, yaml};
use serde_json::Value;

/// Bytes of JSON that one byte of text can stand for: a control character becomes `\u0000`.
const ESCAPE: usize = 6;
/// Bytes of JSON that one value of a built-in kind can take besides its text: the longest name of a field and its marks.
const VALUE_BYTES: usize = 64;
/// Kinds to read messages as that do not say what they are: deep ones, wide ones, and the options of a deletion.
const KINDS: [(&str, &str); 4] = [
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("meta.k8s.io/v1", "DeleteOptions"),
];

/// Reads the bytes in every format a body can have.
pub fn bodies(bytes: &[u8]) {
    text(TextFormat::Json, bytes);
    text(TextFormat::Yaml, bytes);
    for format in [TextFormat::Json, TextFormat::Yaml] {
        for rule in [KindRule::FromPath, KindRule::FromBody] {
            object(format, bytes, rule);
        }
    }
    message(bytes, None);
    let bare = enveloped(bytes);
    for (api_version, kind) in KINDS {
        message(&bare, Gvk::new(api_version, kind).as_ref());
    }
}

fn text(format: TextFormat, bytes: &[u8]) {
    let read = match format {
        TextFormat::Json => json::read(bytes),
        TextFormat::Yaml => yaml::read(bytes),
    };
    match read {
        Ok(document) => {
            assert!(document.duplicates.len() <= DUPLICATES_MAX, "duplicates are told up to a limit");
            let written = written_and_read(&document.value);
            let unfolded = if format == TextFormat::Yaml { EXPANSION_BYTES_MAX } else { 0 };
            // Numbers grow a little: `1e5` is `100000`, and a float has up to 24 characters.
            assert!(
                written.len() <= (bytes.len() + unfolded) * 4 * ESCAPE + 64,
                "a value is as large as its text"
            );
        }
        Err(why) => assert!(!why.is_empty(), "an error says what is wrong"),
    }
}

fn object(format: TextFormat, bytes: &[u8], rule: KindRule) {
    let expected = GroupVersionKind::new("apps", "v1", "Deployment");
    match decode_object(format, bytes, &expected, rule) {
        Ok(decoded) => {
            assert!(decoded.value.is_object(), "what has a kind is an object");
            assert!(!decoded.kind.kind.is_empty(), "the kind is known");
        }
        Err(status) => {
            assert_eq!(status.code(), 400, "a body that cannot be read is a bad request");
            assert!(!status.message.is_empty(), "a refusal says what is wrong");
        }
    }
}

fn message(bytes: &[u8], expected: Option<&Gvk>) {
    match protobuf::decode(bytes, expected) {
        Ok((kind, object)) => {
            assert_eq!(Gvk::of(&object).as_ref(), Some(&kind), "an object says what it is");
            let written = written_and_read(&object);
            let bound = conform::VALUES_MAX * VALUE_BYTES + bytes.len() * ESCAPE;
            assert!(written.len() <= bound, "an object is within bounds");
            let id = Builtins::load().body(&kind).expect("what was read is a known kind");
            let again = conform::conform(id, object.clone()).expect("an object of a kind stays one");
            assert_eq!(again.value, object, "an object is in the form of its kind");
            assert!(again.unknown.is_empty(), "a message has no unknown fields: {:?}", again.unknown);
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says what is wrong"),
    }
}

/// The JSON of a value, which both readers read as that value.
pub(crate) fn written_and_read(value: &Value) -> Vec<u8> {
    let written = serde_json::to_vec(value).expect("a value in memory has a JSON text");
    let again = json::read(&written).unwrap_or_else(|why| panic!("{why} in {}", lossy(&written)));
    assert_eq!(&again.value, value, "a body is read as it was written");
    assert!(again.duplicates.is_empty(), "a value says nothing twice");
    stored_and_read(value, &written);
    written
}

/// What is stored is read again by a reader with a limit on nesting of its own.
pub(crate) fn stored_and_read(value: &Value, written: &[u8]) {
    let again: Value =
        serde_json::from_slice(written).unwrap_or_else(|why| panic!("{why} in {}", lossy(written)));
    assert_eq!(&again, value, "an object is read as it was stored");
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]).into_owned()
}

/// The bytes as the content of a protobuf body that does not say its kind.
fn enveloped(bytes: &[u8]) -> Vec<u8> {
    const CONTENT: u8 = 2 << 3 | 2;
    let mut body = protobuf::MAGIC.to_vec();
    body.push(CONTENT);
    let mut length = bytes.len();
    while length > 0x7f {
        body.push(length as u8 | 0x80);
        length >>= 7;
    }
    body.push(length as u8);
    body.extend_from_slice(bytes);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_message_is_read_as_the_kind_that_is_expected() {
        // metadata (1) { name (1): "web" }
        let body = enveloped(b"\x0a\x05\x0a\x03web");
        let (kind, object) = protobuf::decode(&body, Gvk::new("v1", "Pod").as_ref()).unwrap();
        assert_eq!((&*kind.kind, &object["metadata"]["name"]), ("Pod", &Value::from("web")));
    }
}
