//! What time it is, and the dice: the two things pure code cannot make.
//!
//! Owns both behind one type, so that a test can set the time. Everything below the request pipeline gets them as values.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// Where the hub reads the time.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that stands still until it is set.
    pub fn manual(start: Timestamp) -> Self {
        Self(Some(Arc::new(AtomicI64::new(start.as_millisecond()))))
    }

    /// Sets a manual clock; the system's is left alone.
    pub fn set(&self, now: Timestamp) {
        if let Some(millis) = &self.0 {
            millis.store(now.as_millisecond(), Ordering::SeqCst);
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            None => Timestamp::now(),
            Some(millis) => Timestamp::from_millisecond(millis.load(Ordering::SeqCst))
                .expect("it was stored from a timestamp"),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock::manual" } else { "Clock::system" })
    }
}
