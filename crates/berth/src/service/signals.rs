//! The signals that ask a process to end.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long after a signal the same one is its echo: who ends a process and its whole group, as `timeout` and some shells
/// do, reaches it twice at once, and means it once.
const ECHO: Duration = Duration::from_secs(1);

/// Listens for the signals that ask this process to end, in place of the system.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    heard: Heard,
}

impl Signals {
    /// To be called before anything else, so that a signal during the start is not the system's to handle.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("the process cannot listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            heard: Heard::default(),
        })
    }

    /// The name of the next one that is no echo.
    pub(crate) async fn next(&mut self) -> &'static str {
        loop {
            let name = tokio::select! {
                _ = self.interrupt.recv() => "SIGINT",
                _ = self.terminate.recv() => "SIGTERM",
            };
            if self.heard.is_new(name, Instant::now()) {
                return name;
            }
        }
    }
}

/// The last signal that counted, and when it came.
#[derive(Debug, Default)]
struct Heard(Option<(&'static str, Instant)>);

impl Heard {
    /// Whether a signal counts. An echo does not begin the time anew, so that who insists is heard.
    fn is_new(&mut self, name: &'static str, now: Instant) -> bool {
        let is_echo =
            self.0.is_some_and(|(last, at)| last == name && now.saturating_duration_since(at) < ECHO);
        if !is_echo {
            self.0 = Some((name, now));
        }
        !is_echo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_signal_within_a_second_is_an_echo_of_the_first() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut heard = Heard::default();
        assert!(heard.is_new("SIGTERM", at(0)));
        assert!(!heard.is_new("SIGTERM", at(0)));
        assert!(!heard.is_new("SIGTERM", at(999)));
        assert!(heard.is_new("SIGTERM", at(1000)), "counted from the first, not from its echo");
    }

    #[test]
    fn another_signal_counts_at_once() {
        let now = Instant::now();
        let mut heard = Heard::default();
        assert!(heard.is_new("SIGTERM", now));
        assert!(heard.is_new("SIGINT", now));
    }
}
