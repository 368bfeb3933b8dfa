//! One line of the log, as every backend stores it.
//!
//! Owns the byte layout and its checksum. It never interprets the object inside.

use std::ops::Range;

use bytes::Bytes;

use crate::key::{Key, ResourceKey};
use crate::revision::Revision;

/// What a record does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The object has this state from here on.
    Put,
    /// The object is gone from here on; the record holds its last state.
    Delete,
}

/// One change in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The position in the log.
    pub revision: Revision,
    /// What it does.
    pub operation: Operation,
    /// The object.
    pub key: Key,
    /// The revision that created the object.
    pub created: Revision,
    /// The revision of the state that this one replaces; zero when there was none.
    pub previous: Revision,
    /// Where `metadata` lies in `json`, so that reading a store back parses nothing else.
    pub metadata: Range<usize>,
    /// The complete object.
    pub json: Bytes,
}

/// Bytes in front of the key text: checksum, operation, two revisions, metadata range, three lengths.
const HEAD_BYTES: usize = 8 + 1 + 8 + 8 + 4 + 4 + 4 + 4 + 4;

impl Record {
    /// The bytes of [`Record::encode`].
    pub fn encoded_len(&self) -> usize {
        HEAD_BYTES + self.key.text_bytes() + self.json.len()
    }

    /// Writes the record into `out`, which has exactly [`Record::encoded_len`] bytes. The revision is not in it: it is
    /// the key under which a backend stores these bytes, but the checksum covers it.
    pub fn encode(&self, out: &mut [u8]) {
        let mut at = 8;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let texts = [self.key.resource.as_str(), &self.key.namespace, &self.key.name];
        put(&[match self.operation {
            Operation::Put => 1,
            Operation::Delete => 2,
        }]);
        put(&self.created.0.to_le_bytes());
        put(&self.previous.0.to_le_bytes());
        put(&(self.metadata.start as u32).to_le_bytes());
        put(&(self.metadata.end as u32).to_le_bytes());
        for text in texts {
            put(&(text.len() as u32).to_le_bytes());
        }
        for text in texts {
            put(text.as_bytes());
        }
        put(&self.json);
        let sum = checksum(self.revision, &out[8..]);
        out[..8].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads back what [`Record::encode`] wrote; the error says what is wrong with the bytes.
    pub fn decode(revision: Revision, bytes: &[u8]) -> Result<Self, String> {
        let damaged = |what: &str| format!("the record at revision {revision} {what}");
        let Some((sum, body)) = bytes.split_first_chunk::<8>().filter(|_| bytes.len() >= HEAD_BYTES) else {
            return Err(damaged("is cut short"));
        };
        if checksum(revision, body) != u64::from_le_bytes(*sum) {
            return Err(damaged("does not match its checksum"));
        }
        let mut rest = &body[1..];
        let mut eight = || {
            let (number, tail) = rest.split_first_chunk::<8>().expect("the head is long enough");
            rest = tail;
            u64::from_le_bytes(*number)
        };
        let (created, previous) = (eight(), eight());
        let mut four = || {
            let (number, tail) = rest.split_first_chunk::<4>().expect("the head is long enough");
            rest = tail;
            u32::from_le_bytes(*number) as usize
        };
        let metadata = four()..four();
        let lengths = [four(), four(), four()];
        let mut text = |length: usize| {
            let (text, tail) = rest.split_at_checked(length)?;
            rest = tail;
            std::str::from_utf8(text).ok()
        };
        let [Some(resource), Some(namespace), Some(name)] = lengths.map(&mut text) else {
            return Err(damaged("has a key that cannot be read"));
        };
        Ok(Self {
            revision,
            operation: match body[0] {
                1 => Operation::Put,
                2 => Operation::Delete,
                _ => return Err(damaged("does something that this version does not know")),
            },
            key: Key::new(&ResourceKey::from_stored(resource), namespace, name),
            created: Revision(created),
            previous: Revision(previous),
            metadata,
            json: Bytes::copy_from_slice(rest),
        })
    }
}

/// A 64-bit sum over eight-byte words. It finds torn and rotten records; it is no defence against someone who edits the
/// file on purpose. Four words at a time, because one chain of multiplications would be half of the time that opening a
/// store takes.
pub(crate) fn checksum(revision: Revision, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |sum: u64, word: u64| ((sum ^ word).wrapping_mul(PRIME)).rotate_left(29).wrapping_mul(SPREAD);
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let mut lanes = [revision.0, bytes.len() as u64, PRIME, SPREAD];
    let (blocks, tail) = bytes.as_chunks::<32>();
    for block in blocks {
        for (lane, bytes) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = step(*lane, u64::from_le_bytes(*bytes));
        }
    }
    for (lane, bytes) in lanes.iter_mut().zip(tail.chunks(8)) {
        *lane = step(*lane, word(bytes));
    }
    lanes.into_iter().fold(0, step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Record {
        Record {
            revision: Revision(7),
            operation: Operation::Put,
            key: Key::new(&ResourceKey::new("apps", "deployments"), "ns", "name"),
            created: Revision(3),
            previous: Revision(5),
            metadata: 12..14,
            json: Bytes::from_static(b"{\"metadata\":{}}"),
        }
    }

    fn encoded(record: &Record) -> Vec<u8> {
        let mut bytes = vec![0; record.encoded_len()];
        record.encode(&mut bytes);
        bytes
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let record = sample();
        assert_eq!(Record::decode(Revision(7), &encoded(&record)).unwrap(), record);
    }

    #[test]
    fn a_record_under_another_revision_is_damaged() {
        assert!(Record::decode(Revision(8), &encoded(&sample())).unwrap_err().contains("checksum"));
    }

    proptest! {
        #[test]
        fn every_flipped_bit_and_every_cut_is_found(at in any::<prop::sample::Index>(), bit in 0..8_u8, cut in any::<bool>()) {
            let mut bytes = encoded(&sample());
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1_u8 << bit }
            prop_assert!(Record::decode(Revision(7), &bytes).is_err());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Record::decode(Revision(1), &bytes);
        }
    }
}
