//! Bytes in, lines out.
//!
//! Owns what of a stream has come without its end. A line that came in one piece, as nearly all do, is not copied.

use bytes::{Bytes, BytesMut};

/// The longest line: many times the largest object that an API server stores.
pub(super) const LINE_BYTES_MAX: usize = 32 << 20;

/// A line went on past the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line of the watch is longer than {LINE_BYTES_MAX} bytes")]
pub(super) struct TooLong;

/// The lines of a stream.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The beginning of a line whose end is still to come.
    begun: BytesMut,
    /// What came last, as far as it was not handed out.
    piece: Bytes,
}

impl Lines {
    /// Takes a piece of the stream. The lines of the piece before must have been taken.
    pub(super) fn feed(&mut self, piece: Bytes) {
        debug_assert!(self.piece.is_empty(), "lines were left behind");
        self.piece = piece;
    }

    /// The next line that is complete, without its end; never an empty one.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, TooLong> {
        while let Some(end) = memchr::memchr(b'\n', &self.piece) {
            let mut line = self.piece.split_to(end + 1);
            line.truncate(end);
            if !self.begun.is_empty() {
                self.begun.extend_from_slice(&line);
                line = self.begun.split().freeze();
            }
            if line.len() > LINE_BYTES_MAX {
                return Err(TooLong);
            }
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
        self.begun.extend_from_slice(&std::mem::take(&mut self.piece));
        if self.begun.len() > LINE_BYTES_MAX { Err(TooLong) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drain(lines: &mut Lines) -> Vec<Bytes> {
        std::iter::from_fn(|| lines.next().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_the_stream_is_cut(
            text in "[a-c\n]{0,60}",
            cuts in proptest::collection::vec(1_usize..7, 0..60),
        ) {
            let mut lines = Lines::default();
            let (mut found, mut rest) = (Vec::new(), Bytes::from(text.clone()));
            for cut in cuts {
                lines.feed(rest.split_to(cut.min(rest.len())));
                found.extend(drain(&mut lines));
            }
            lines.feed(rest);
            found.extend(drain(&mut lines));
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let expected: Vec<_> = whole.split('\n').filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_line_without_an_end_does_not_fill_the_memory() {
        let mut lines = Lines::default();
        let piece = Bytes::from(vec![b'x'; LINE_BYTES_MAX / 2]);
        for _ in 0..2 {
            lines.feed(piece.clone());
            assert_eq!(lines.next(), Ok(None));
        }
        lines.feed(piece);
        assert_eq!(lines.next(), Err(TooLong));
    }
}
