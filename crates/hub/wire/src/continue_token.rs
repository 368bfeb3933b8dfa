//! Continue tokens: where the next page of a list starts, and in which revision.
//!
//! Owns the encoding, which clients must not look into, and the checks, since clients can send anything. The start is
//! relative to the list it was made for, so a token cannot reach beyond it. Never reads the store.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Serialize};

use crate::status::Status;

const VERSION: &str = "meta.k8s.io/v1";

/// Bytes of a token: a namespace and a name are 253 each, so anything longer is not one of ours.
pub const TOKEN_BYTES_MAX: usize = 2 * 1024;

/// URL-safe without padding, and like Go's decoder lenient about spare bits.
const ENCODING: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Which state a page is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageRevision {
    /// The snapshot that the first page was read from.
    At(u64),
    /// Whatever is there now: the page's own snapshot was gone.
    Latest,
}

/// Where a page starts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContinueToken {
    /// The state it is read from.
    pub revision: PageRevision,
    /// The key after which it starts, relative to the list: `name` in a list of one namespace or of cluster-wide
    /// objects, `namespace/name` in a list across namespaces.
    pub after: String,
}

#[derive(Serialize, Deserialize)]
struct Encoded {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

impl ContinueToken {
    /// The token as it is sent.
    pub fn encode(&self) -> String {
        let rv = match self.revision {
            PageRevision::At(revision) => i64::try_from(revision).unwrap_or(i64::MAX),
            PageRevision::Latest => -1,
        };
        // The smallest key that is larger than `after`: the page starts right behind it.
        let encoded = Encoded { v: VERSION.to_owned(), rv, start: format!("{}\0", self.after) };
        let json = serde_json::to_vec(&encoded).expect("strings and numbers encode");
        ENCODING.encode(json)
    }

    /// Reads a token; the error is the answer to the request.
    pub fn decode(token: &str) -> Result<Self, Status> {
        Self::read(token).map_err(|why| Status::bad_request(format!("invalid continue token: {why}")))
    }

    fn read(token: &str) -> Result<Self, String> {
        const NOT_VALID: &str = "continue key is not valid";
        if token.len() > TOKEN_BYTES_MAX {
            return Err(format!("{NOT_VALID}: longer than {TOKEN_BYTES_MAX} bytes"));
        }
        let json = ENCODING.decode(token).map_err(|error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                base64::DecodeError::InvalidLength(length) => length,
                base64::DecodeError::InvalidPadding => token.len(),
            };
            format!("{NOT_VALID}: illegal base64 data at input byte {at}")
        })?;
        let document = crate::body::json::read(&json).map_err(|error| format!("{NOT_VALID}: {error}"))?;
        let encoded: Encoded =
            serde_json::from_value(document.value).map_err(|error| format!("{NOT_VALID}: {error}"))?;
        if encoded.v != VERSION {
            return Err(format!("{NOT_VALID}: server does not recognize this encoded version {}", encoded.v));
        }
        if encoded.rv == 0 {
            return Err(format!("{NOT_VALID}: incorrect encoded start resourceVersion (version {VERSION})"));
        }
        if encoded.start.is_empty() {
            return Err(format!("{NOT_VALID}: encoded start key empty (version {VERSION})"));
        }
        let key = encoded.start.strip_prefix('/').unwrap_or(&encoded.start);
        if key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(format!("{NOT_VALID}: {}", encoded.start));
        }
        // A key without the zero byte names the first object of the page instead of the last of the one before; no
        // token of ours has it.
        let Some(after) = key.strip_suffix('\0') else {
            return Err(format!("{NOT_VALID}: {}", encoded.start));
        };
        let revision = u64::try_from(encoded.rv).map_or(PageRevision::Latest, PageRevision::At);
        Ok(ContinueToken { revision, after: after.to_owned() })
    }

    /// The namespace and the name after which the page starts, in a list across namespaces.
    pub fn namespace_and_name(&self) -> (&str, &str) {
        self.after.split_once('/').unwrap_or(("", &self.after))
    }

    /// The answer when the token's snapshot is gone, with a token that goes on in the latest state.
    pub fn expired(&self) -> Status {
        let fresh = ContinueToken { revision: PageRevision::Latest, after: self.after.clone() };
        Status::continue_expired(Some(fresh.encode()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(json: &str) -> String {
        ContinueToken::decode(&ENCODING.encode(json)).unwrap_err().message
    }

    #[test]
    fn a_token_is_what_a_real_server_makes() {
        let token = ContinueToken { revision: PageRevision::At(243), after: "default/p1".into() };
        let json = ENCODING.decode(token.encode()).unwrap();
        assert_eq!(
            String::from_utf8(json).unwrap(),
            r#"{"v":"meta.k8s.io/v1","rv":243,"start":"default/p1\u0000"}"#
        );
        assert_eq!(token.namespace_and_name(), ("default", "p1"));
    }

    #[test]
    fn forged_tokens_are_refused() {
        assert_eq!(
            refusal(r#"{"v":"v9","rv":1,"start":"a\u0000"}"#),
            "invalid continue token: continue key is not valid: server does not recognize this encoded version v9"
        );
        assert_eq!(
            refusal(r#"{"v":"meta.k8s.io/v1","start":"a\u0000"}"#),
            "invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        );
        assert_eq!(
            refusal(r#"{"v":"meta.k8s.io/v1","rv":1}"#),
            "invalid continue token: continue key is not valid: encoded start key empty (version meta.k8s.io/v1)"
        );
        for start in ["../x", "a/../b", "a//b", "./a", "a/.", "//a"] {
            let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":1,"start":"{start}"}}"#);
            assert_eq!(refusal(&json), format!("invalid continue token: continue key is not valid: {start}"));
        }
        assert_eq!(
            ContinueToken::decode("a*b").unwrap_err().message,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 1"
        );
        assert!(ContinueToken::decode(&"a".repeat(TOKEN_BYTES_MAX + 1)).is_err());
        assert!(refusal("{").contains("unexpected end of JSON input"));
    }

    #[test]
    fn an_expired_token_is_answered_with_one_for_the_latest_state() {
        let token = ContinueToken { revision: PageRevision::At(5), after: "x".into() };
        let fresh = ContinueToken::decode(&token.expired().metadata.continue_token).unwrap();
        assert_eq!(fresh, ContinueToken { revision: PageRevision::Latest, after: "x".into() });
    }

    proptest! {
        #[test]
        fn tokens_read_back_as_they_were_made(revision in 1..u64::MAX / 2, after in "[a-z0-9-]{1,63}(/[a-z0-9.-]{1,63}z)?") {
            prop_assume!(!after.split('/').any(|part| part == "." || part == ".."));
            let token = ContinueToken { revision: PageRevision::At(revision), after };
            prop_assert_eq!(ContinueToken::decode(&token.encode()).unwrap(), token);
        }

        #[test]
        fn any_text_is_a_token_or_a_refusal(text in "[a-zA-Z0-9_=+/-]{0,80}", json in ".{0,80}") {
            let _ = ContinueToken::decode(&text);
            if let Err(status) = ContinueToken::decode(&ENCODING.encode(json)) {
                prop_assert_eq!(status.code(), 400);
            }
        }
    }
}
