//! An encoded document and its entity tag.

use std::fmt::Write as _;

use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest, Sha512};

use crate::envelope::{encode, encode_raw};

/// A document that is sent as it stands, with the tag by which clients ask whether it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    body: Bytes,
    etag: String,
}

impl Document {
    /// Encodes a document.
    pub fn new<T: Serialize + ?Sized>(content: &T) -> Self {
        let body = encode(content, false);
        let mut etag = String::with_capacity(130);
        etag.push('"');
        for byte in Sha512::digest(&body) {
            let _ = write!(etag, "{byte:02X}");
        }
        etag.push('"');
        Document { body, etag }
    }

    /// The document on one line.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The document as people or programs read it.
    pub fn to_bytes(&self, pretty: bool) -> Bytes {
        if pretty { encode_raw(&self.body, true) } else { self.body.clone() }
    }

    /// The entity tag, in quotes as the header has it.
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Whether a client with this `If-None-Match` has the document already: the answer is then 304 without a body.
    pub fn is_unchanged_for(&self, if_none_match: Option<&str>) -> bool {
        if_none_match == Some(self.etag.as_str())
    }
}
