//! The first block of a journal.
//!
//! Owns what ties a journal to its store. It is written once, before the store is told, and never again: no write of a
//! frame can tear it.

use std::hash::{BuildHasher as _, RandomState};

use crate::backend::journal::BLOCK_BYTES;
use crate::record;
use crate::revision::Revision;

/// After the checksum, as in a frame.
const MARK: [u8; 8] = *b"\xffberth\x02\xfe";

/// Checksum, mark, number, size, revision.
const HEADER_BYTES: usize = 8 + 8 + 8 + 8 + 8;

/// Whose journal this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Random, never zero; the store has it too.
    pub(super) number: u64,
    /// The size of the journal in bytes, so that one that was cut is told.
    pub(super) room: u64,
    /// The last revision of the store when the journal was made.
    pub(super) begun: Revision,
}

impl Header {
    pub(super) fn new(room: u64, begun: Revision) -> Self {
        // The keys of the standard hasher come from the system's randomness.
        Self { number: RandomState::new().hash_one(begun.0).max(1), room, begun }
    }

    /// A whole block.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        bytes.extend_from_slice(&MARK);
        for number in [self.number, self.room, self.begun.0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let sum = record::checksum(self.begun, &bytes[8..]);
        bytes[..8].copy_from_slice(&sum.to_le_bytes());
        bytes.resize(BLOCK_BYTES, 0);
        bytes
    }

    /// The header that a journal begins with, if it does with one that is whole.
    pub(super) fn read(journal: &[u8]) -> Option<Self> {
        let head = journal.get(..HEADER_BYTES)?;
        let (words, _) = head.as_chunks::<8>();
        let number = |index: usize| u64::from_le_bytes(words[index]);
        let header = Self { number: number(2), room: number(3), begun: Revision(number(4)) };
        (words[1] == MARK && header.number != 0 && record::checksum(header.begun, &head[8..]) == number(0))
            .then_some(header)
    }
}
