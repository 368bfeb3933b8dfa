//! Whose turn it is on a connection.
//!
//! Owns the clock of what a client has to do next: to begin, to finish the head of a request once it has begun one, to
//! ask again within reasonable time. Never times a request that is worked on, an answer that is on its way, or a body:
//! they have limits of their own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a client of HTTP/2 begins with; anything else is HTTP/1.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The turn of one connection, known to its stream, its requests and its task.
#[derive(Debug, Clone)]
pub(super) struct Talk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    version: Version,
    /// Requests that are not answered yet, or whose body still arrives.
    open: usize,
    turn: Turn,
    since: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// So many bytes of the preface have come, and nothing else.
    Unknown(usize),
    One,
    Two,
}

/// What a connection without an open request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The rest of a head, or the first word at all.
    Head,
    /// The next request.
    Next,
}

/// How long each turn may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) head: Duration,
    pub(super) next: Duration,
}

impl Talk {
    pub(super) fn new() -> Self {
        let state = State { version: Version::Unknown(0), open: 0, turn: Turn::Head, since: Instant::now() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of what the client sent.
    pub(super) fn hear(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = self.state();
        match state.version {
            Version::Unknown(read) => {
                let expected = &PREFACE[read..];
                state.version = match bytes.len() {
                    _ if expected.starts_with(bytes) && bytes.len() < expected.len() => {
                        Version::Unknown(read + bytes.len())
                    }
                    _ if bytes.starts_with(expected) => Version::Two,
                    _ => Version::One,
                };
                if state.version == Version::Two {
                    state.wait_for(Turn::Next);
                }
            }
            // A head has begun. In HTTP/2 it may as well be the answer to a ping.
            Version::One if state.open == 0 && state.turn == Turn::Next => state.wait_for(Turn::Head),
            Version::One | Version::Two => {}
        }
    }

    /// A request has come. It is open until the last copy of what is returned is gone.
    pub(super) fn begin(&self) -> Arc<Open> {
        self.state().open += 1;
        Arc::new(Open(self.clone()))
    }

    /// Resolves when the client has let its turn pass.
    pub(super) async fn passed(&self, patience: Patience) -> Turn {
        loop {
            let left = match self.overdue(patience, Instant::now()) {
                Ok(turn) => return turn,
                Err(left) => left,
            };
            tokio::time::sleep(left).await;
        }
    }

    /// The turn that is past its time, or how long nothing can be.
    fn overdue(&self, patience: Patience, now: Instant) -> Result<Turn, Duration> {
        // Whatever begins from here on has at least that long.
        let least = patience.head.min(patience.next);
        let state = self.state();
        if state.open > 0 {
            return Err(least);
        }
        let (turn, since) = (state.turn, state.since);
        drop(state);
        let allowed = if turn == Turn::Head { patience.head } else { patience.next };
        match allowed.checked_sub(now.saturating_duration_since(since)) {
            None | Some(Duration::ZERO) => Ok(turn),
            Some(left) => Err(left.min(least)),
        }
    }
}

impl State {
    fn wait_for(&mut self, turn: Turn) {
        self.turn = turn;
        self.since = Instant::now();
    }
}

/// An open request.
#[derive(Debug)]
pub(super) struct Open(Talk);

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open -= 1;
        if state.open == 0 {
            state.wait_for(Turn::Next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { head: Duration::from_secs(10), next: Duration::from_mins(3) };

    /// Whether a turn is past its time so many seconds from now.
    fn passed(talk: &Talk, seconds: u64) -> Option<Turn> {
        talk.overdue(PATIENCE, Instant::now() + Duration::from_secs(seconds)).ok()
    }

    fn heard(parts: &[&[u8]]) -> Version {
        let talk = Talk::new();
        for part in parts {
            talk.hear(part);
        }
        talk.state().version
    }

    #[test]
    fn the_version_is_known_by_the_first_words() {
        assert_eq!(heard(&[]), Version::Unknown(0));
        assert_eq!(heard(&[b"P", b"RI * HT"]), Version::Unknown(8));
        assert_eq!(heard(&[&PREFACE[..23]]), Version::Unknown(23));
        for parts in [&[PREFACE][..], &[&PREFACE[..5], &PREFACE[5..]], &[&[PREFACE, b"more"].concat()]] {
            assert_eq!(heard(parts), Version::Two);
        }
        for parts in [&[&b"GET"[..]][..], &[b"PATCH"], &[b"P", b"UT"], &[b"PRI * HTTP/2.0\r\n\r\nXX"]] {
            assert_eq!(heard(parts), Version::One);
        }
    }

    #[test]
    fn a_client_begins_in_time_and_finishes_its_head_in_the_same_time() {
        let talk = Talk::new();
        assert_eq!((passed(&talk, 9), passed(&talk, 11)), (None, Some(Turn::Head)));
        talk.hear(b"GET / HT");
        assert_eq!((passed(&talk, 9), passed(&talk, 11)), (None, Some(Turn::Head)));
    }

    #[test]
    fn an_open_request_is_not_timed_and_the_next_may_take_longer_to_come() {
        let talk = Talk::new();
        talk.hear(b"GET / HTTP/1.1\r\n\r\n");
        let (answer, body) = (talk.begin(), talk.begin());
        assert_eq!(passed(&talk, 1_000), None);
        drop(answer);
        assert_eq!(passed(&talk, 1_000), None);
        drop(body);
        assert_eq!((passed(&talk, 179), passed(&talk, 181)), (None, Some(Turn::Next)));
        talk.hear(b"G");
        assert_eq!(passed(&talk, 11), Some(Turn::Head), "a head that has begun must end");
    }

    #[test]
    fn what_keeps_a_connection_of_http2_alive_begins_no_request() {
        let talk = Talk::new();
        talk.hear(PREFACE);
        talk.hear(b"a ping");
        assert_eq!((passed(&talk, 179), passed(&talk, 181)), (None, Some(Turn::Next)));
    }
}
