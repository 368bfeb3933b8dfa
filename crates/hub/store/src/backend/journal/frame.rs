//! One acknowledged write within the journal.
//!
//! Owns the bytes of a frame. It never knows whether the store has it.

use crate::backend::journal::BLOCK_BYTES;
use crate::record::{self, Record};
use crate::revision::Revision;

/// Checksum, mark, length of the body, revision that it follows, last revision.
const HEAD_BYTES: usize = 8 + 8 + 8 + 8 + 8;

/// Revision and length, in front of each record.
const RECORD_HEAD_BYTES: usize = 8 + 4;

/// The first bytes of a frame, after its checksum. Two of them are in no UTF-8 text, so an object never looks like one.
const MARK: [u8; 8] = *b"\xffberth\x01\xfe";

/// The bytes of a frame, whole blocks.
pub(super) fn frame(follows: Revision, records: &[Record]) -> Vec<u8> {
    let body: usize = records.iter().map(|record| RECORD_HEAD_BYTES + record.encoded_len()).sum();
    let last = records.last().map_or(follows, |record| record.revision);
    let mut bytes = Vec::with_capacity((HEAD_BYTES + body).next_multiple_of(BLOCK_BYTES));
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&MARK);
    bytes.extend_from_slice(&(body as u64).to_le_bytes());
    bytes.extend_from_slice(&follows.0.to_le_bytes());
    bytes.extend_from_slice(&last.0.to_le_bytes());
    for record in records {
        let length = record.encoded_len();
        bytes.extend_from_slice(&record.revision.0.to_le_bytes());
        bytes.extend_from_slice(&(length as u32).to_le_bytes());
        let start = bytes.len();
        bytes.resize(start + length, 0);
        record.encode(&mut bytes[start..]);
    }
    let sum = record::checksum(follows, &bytes[8..]);
    bytes[..8].copy_from_slice(&sum.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
    bytes
}

/// A frame that was found whole.
pub(super) struct Frame<'a> {
    /// The revision that it goes on after.
    pub(super) follows: Revision,
    pub(super) last: Revision,
    body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame that `bytes` begin with, if they do with one that is whole.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let (words, _) = head.as_chunks::<8>();
        let number = |index: usize| u64::from_le_bytes(words[index]);
        if words[1] != MARK {
            return None;
        }
        let length = usize::try_from(number(2)).ok()?;
        let body = rest.get(..length)?;
        let (follows, last) = (Revision(number(3)), Revision(number(4)));
        let whole = record::checksum(follows, &bytes[8..HEAD_BYTES + length]) == number(0);
        whole.then_some(Self { follows, last, body })
    }

    pub(super) fn blocks(&self) -> usize {
        (HEAD_BYTES + self.body.len()).div_ceil(BLOCK_BYTES)
    }

    pub(super) fn records(&self) -> Result<Vec<Record>, String> {
        let mut rest = self.body;
        let mut records = Vec::new();
        while !rest.is_empty() {
            let short = || "a frame ends within a record".to_owned();
            let (revision, tail) = rest.split_first_chunk::<8>().ok_or_else(short)?;
            let (length, tail) = tail.split_first_chunk::<4>().ok_or_else(short)?;
            let (bytes, tail) =
                tail.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(short)?;
            records.push(Record::decode(Revision(u64::from_le_bytes(*revision)), bytes)?);
            rest = tail;
        }
        Ok(records)
    }
}

/// The highest revision of all frames that are whole, wherever they are.
pub(super) fn highest(bytes: &[u8]) -> Option<Revision> {
    bytes
        .chunks(BLOCK_BYTES)
        .enumerate()
        .filter_map(|(block, _)| Frame::read(&bytes[block * BLOCK_BYTES..]))
        .map(|frame| frame.last)
        .max()
}
