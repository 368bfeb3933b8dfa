//! Whether a client takes what it asked for.
//!
//! A client of HTTP/2 can keep its connection lively and still take nothing of an answer, by granting it no room. Owns
//! the watch over that: an answer is handed out in pieces, and a piece that the client has no room for in time costs it
//! the connection. Never copies a piece, and never times an answer that waits for us.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame, SizeHint};

use super::talk::Open;

/// Bytes handed out at once: HTTP asks whether there is room before each piece, and takes it in whole.
const PIECE_BYTES: usize = 64 * 1024;

/// No piece is waiting for the client.
const NONE: u64 = 0;

/// The open answers of one connection.
#[derive(Debug, Clone)]
pub(super) struct Answers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    begun: Instant,
    /// For each answer, when the piece was handed out that the client has not asked beyond, in milliseconds.
    waits: Mutex<Vec<Weak<AtomicU64>>>,
}

impl Answers {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared { begun: Instant::now(), waits: Mutex::default() }))
    }

    /// An answer's body, watched.
    pub(super) fn watch<B: Body<Data = Bytes>>(&self, body: B) -> Taken<B> {
        if body.is_end_stream() || body.size_hint().upper().is_some_and(|most| most <= PIECE_BYTES as u64) {
            // It leaves whole or not at all.
            return Taken { body, piece: Bytes::new(), wait: None, answers: self.clone(), _open: None };
        }
        let wait = Arc::new(AtomicU64::new(NONE));
        let mut waits = self.0.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if waits.len() == waits.capacity() {
            waits.retain(|wait| wait.strong_count() > 0);
        }
        waits.push(Arc::downgrade(&wait));
        Taken { body, piece: Bytes::new(), wait: Some(wait), answers: self.clone(), _open: None }
    }

    /// Resolves when a client has let a piece wait for so long.
    pub(super) async fn stalled(&self, patience: Duration) {
        loop {
            let longest = {
                let mut waits = self.0.waits.lock().unwrap_or_else(PoisonError::into_inner);
                waits.retain(|wait| wait.strong_count() > 0);
                let since = waits.iter().filter_map(Weak::upgrade).map(|wait| wait.load(Ordering::Relaxed));
                since.filter(|since| *since != NONE).min().map(|since| self.now().saturating_sub(since))
            };
            let longest = Duration::from_millis(longest.unwrap_or_default());
            match patience.checked_sub(longest) {
                None | Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
            }
        }
    }

    /// Milliseconds since the connection began, and never [`NONE`].
    fn now(&self) -> u64 {
        u64::try_from(self.0.begun.elapsed().as_millis()).unwrap_or(u64::MAX).max(NONE + 1)
    }
}

/// A body whose pieces must be taken in time.
#[derive(Debug)]
pub(super) struct Taken<B> {
    body: B,
    /// What is left of a frame that is handed out in pieces.
    piece: Bytes,
    /// None where there is nothing to wait for.
    wait: Option<Arc<AtomicU64>>,
    answers: Answers,
    /// Held until the answer is out.
    _open: Option<Arc<Open>>,
}

impl<B> Taken<B> {
    /// The same answer, whose request is open until it is out.
    pub(super) fn holding(self, open: Arc<Open>) -> Self {
        Self { _open: Some(open), ..self }
    }

    fn waits(&self, since: u64) {
        if let Some(wait) = &self.wait {
            wait.store(since, Ordering::Relaxed);
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Taken<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        // Asking for more is taking what there was.
        this.waits(NONE);
        if !this.piece.has_remaining() {
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.piece = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = this.piece.split_to(this.piece.len().min(PIECE_BYTES));
        if !this.is_end_stream() {
            this.waits(this.answers.now());
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (left, rest) = (self.piece.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + left);
        }
        hint.set_lower(rest.lower() + left);
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    #[tokio::test]
    async fn an_answer_is_handed_out_in_pieces_and_arrives_whole() {
        let sent: Bytes = (0..3 * PIECE_BYTES + 5).map(|number| number as u8).collect::<Vec<u8>>().into();
        let mut taken = Answers::new().watch(Full::new(sent.clone()));
        assert_eq!(taken.size_hint().exact(), Some(sent.len() as u64));
        let first = taken.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first.len(), PIECE_BYTES);
        assert_eq!(taken.size_hint().exact(), Some((sent.len() - PIECE_BYTES) as u64));
        let rest = taken.collect().await.unwrap().to_bytes();
        assert_eq!([first, rest].concat(), sent);
    }

    #[tokio::test]
    async fn only_a_piece_that_is_not_asked_beyond_is_a_stall() {
        let answers = Answers::new();
        let patience = Duration::from_millis(20);
        let stalled = async || tokio::time::timeout(patience * 5, answers.stalled(patience)).await.is_ok();
        let mut large = answers.watch(Full::new(Bytes::from(vec![0; 2 * PIECE_BYTES])));
        let mut small = answers.watch(Full::new(Bytes::from_static(b"small")));
        small.frame().await.unwrap().unwrap();
        assert!(!stalled().await, "nothing was handed out that has more after it");
        large.frame().await.unwrap().unwrap();
        assert!(stalled().await);
        large.frame().await.unwrap().unwrap();
        assert!(!stalled().await, "all of it was taken");
    }
}
