//! How soon the process looks at what has come: at once while little happens, several at a time while much does.
//!
//! To be woken costs more than most news are worth: the processor has other work in its caches, and each wake reads one socket.
//! So while changes come one after another that nobody writes anything for, and while many writes are under way whose answers
//! trickle in, the process rests a moment before it sleeps, and finds the news of that moment together, as network cards
//! gather packets before they interrupt. Whoever changes something in a quiet fleet never waits for it, nor does a write that is
//! one of a few.
//!
//! Owns how long that rest is. Whoever runs the thread takes it ([`Pace::rest`]); where nobody does, nothing rests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How often it is looked whether changes come one after another.
const WINDOW: Duration = Duration::from_millis(250);
/// So many news in a window are a murmur: at fewer, waking for each costs next to nothing.
const MURMUR_NEWS: usize = 8;
/// The rest while changes murmur: how late the first that matters may be seen.
const MURMUR_REST: Duration = Duration::from_millis(50);
/// With so many writes under way no single one is waited for.
const MANY: usize = 16;
/// The longest rest while many writes are under way, and by how much it grows.
const STORM_REST_MAX: Duration = Duration::from_millis(25);
const STORM_STEP: Duration = Duration::from_micros(500);
/// The rest for each event that is on its way, for which nobody waits, and for how many of them at most.
const TELLING_REST: Duration = Duration::from_micros(2_500);
const TELLING_MAX: u32 = 8;
/// What stands for: not now, something is waited for.
const AWAKE: u32 = u32::MAX;

/// How long to rest before going to sleep. Clones are of one pace.
#[derive(Clone, Debug, Default)]
pub struct Pace(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// What the loop says, in microseconds, or [`AWAKE`].
    rest: AtomicU32,
    /// Events on their way.
    telling: AtomicU32,
}

/// An event is on its way until this is dropped.
#[derive(Debug)]
pub(crate) struct Telling(Pace);

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.0.telling.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pace {
    /// How long the thread of the controllers, which has nothing left to do, may rest before it looks for news.
    pub fn rest(&self) -> Duration {
        let rest = match self.0.rest.load(Ordering::Relaxed) {
            AWAKE => return Duration::ZERO,
            micros => Duration::from_micros(micros.into()),
        };
        let telling = self.0.telling.load(Ordering::Relaxed).min(TELLING_MAX);
        rest.max(TELLING_REST * telling)
    }

    /// An event sets out.
    pub(crate) fn telling(&self) -> Telling {
        self.0.telling.fetch_add(1, Ordering::Relaxed);
        Telling(self.clone())
    }

    fn set(&self, rest: Option<Duration>) {
        let micros = rest.map(|rest| u32::try_from(rest.as_micros()).unwrap_or(AWAKE - 1));
        self.0.rest.store(micros.unwrap_or(AWAKE), Ordering::Relaxed);
    }
}

/// Sets the pace by what each turn of the loop has found.
#[derive(Debug)]
pub(crate) struct Tempo {
    pace: Pace,
    /// When the window began, and the news in it.
    began: Instant,
    news: usize,
    /// Whether anything was written in it.
    has_written: bool,
    is_murmuring: bool,
    /// The rest while many writes are under way.
    storm: Duration,
}

impl Tempo {
    pub(crate) fn new(pace: Pace, now: Instant) -> Self {
        Self { pace, began: now, news: 0, has_written: false, is_murmuring: false, storm: Duration::ZERO }
    }

    /// What is done now is waited for, however much of it there is.
    pub(crate) fn hurry(&mut self, now: Instant) {
        *self = Self::new(self.pace.clone(), now);
        self.pace.set(None);
    }

    /// A turn of the loop has heard `news`, and leaves so many writes under way.
    pub(crate) fn turn(&mut self, now: Instant, news: usize, under_way: usize) {
        self.news += news;
        self.has_written |= under_way > 0;
        if now.saturating_duration_since(self.began) >= WINDOW {
            // After a long sleep the window is long as well, and what came in it is no murmur.
            let windows = (now - self.began).as_millis() / WINDOW.as_millis();
            self.is_murmuring = !self.has_written && self.news as u128 >= MURMUR_NEWS as u128 * windows;
            (self.began, self.news, self.has_written) = (now, 0, under_way > 0);
        }
        let rest = self.rest(news, under_way);
        self.pace.set(rest);
    }

    fn rest(&mut self, news: usize, under_way: usize) -> Option<Duration> {
        if under_way >= MANY {
            // A rest is right when it gathers an eighth to a quarter of what is under way: enough to be worth waking for, and
            // never so much that the server runs out of writes to do.
            if news > under_way / 4 {
                self.storm /= 2;
            } else if news < under_way / 8 {
                self.storm = (self.storm + STORM_STEP).min(STORM_REST_MAX);
            }
            return Some(self.storm);
        }
        self.storm = Duration::ZERO;
        if under_way > 0 {
            self.is_murmuring = false;
            return None;
        }
        Some(if self.is_murmuring { MURMUR_REST } else { Duration::ZERO })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tempo that begins now, its pace, and the moment.
    fn tempo() -> (Tempo, Pace, Instant) {
        let (pace, now) = (Pace::default(), Instant::now());
        (Tempo::new(pace.clone(), now), pace, now)
    }

    /// Lets `news` come every `every`, `turns` times.
    fn come(
        tempo: &mut Tempo,
        now: &mut Instant,
        every: Duration,
        turns: u32,
        news: usize,
        under_way: usize,
    ) {
        for _ in 0..turns {
            *now += every;
            tempo.turn(*now, news, under_way);
        }
    }

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn nobody_waits_in_a_quiet_fleet() {
        let (mut tempo, pace, mut now) = tempo();
        come(&mut tempo, &mut now, millis(100), 50, 1, 0);
        assert_eq!(pace.rest(), Duration::ZERO);
        come(&mut tempo, &mut now, Duration::from_secs(30), 3, 20, 0);
        assert_eq!(pace.rest(), Duration::ZERO, "a burst now and then is no murmur");
    }

    #[test]
    fn changes_that_concern_nobody_are_gathered_until_one_does() {
        let (mut tempo, pace, mut now) = tempo();
        come(&mut tempo, &mut now, millis(10), 60, 1, 0);
        assert_eq!(pace.rest(), MURMUR_REST);
        come(&mut tempo, &mut now, millis(60), 15, 6, 0);
        assert_eq!(pace.rest(), MURMUR_REST, "gathered, they are as many");
        come(&mut tempo, &mut now, millis(10), 1, 1, 1);
        assert_eq!(pace.rest(), Duration::ZERO, "a write is under way");
        come(&mut tempo, &mut now, millis(10), 1, 1, 0);
        assert_eq!(pace.rest(), Duration::ZERO, "and another may follow");
        come(&mut tempo, &mut now, millis(10), 80, 1, 0);
        assert_eq!(pace.rest(), MURMUR_REST);
        come(&mut tempo, &mut now, millis(400), 2, 1, 0);
        assert_eq!(pace.rest(), Duration::ZERO, "they have stopped");
    }

    #[test]
    fn answers_to_many_writes_are_gathered_as_far_as_the_server_has_more_to_do() {
        let (mut tempo, pace, mut now) = tempo();
        come(&mut tempo, &mut now, millis(1), 100, 1, 64);
        assert_eq!(pace.rest(), STORM_REST_MAX, "they trickle");
        come(&mut tempo, &mut now, millis(30), 5, 12, 64);
        assert_eq!(pace.rest(), STORM_REST_MAX, "a good handful");
        come(&mut tempo, &mut now, millis(10), 2, 40, 64);
        assert_eq!(pace.rest(), STORM_REST_MAX / 4, "the server is faster than that");
        come(&mut tempo, &mut now, millis(10), 1, 3, 4);
        assert_eq!(pace.rest(), Duration::ZERO, "the last few are waited for");
    }

    #[test]
    fn events_are_gathered_unless_a_write_is_waited_for() {
        let (mut tempo, pace, mut now) = tempo();
        let telling: Vec<Telling> = (0..2 * TELLING_MAX).map(|_| pace.telling()).collect();
        come(&mut tempo, &mut now, millis(10), 1, 0, 0);
        assert_eq!(pace.rest(), TELLING_MAX * TELLING_REST);
        come(&mut tempo, &mut now, millis(10), 1, 1, 1);
        assert_eq!(pace.rest(), Duration::ZERO);
        come(&mut tempo, &mut now, millis(10), 1, 1, 0);
        drop(telling);
        assert_eq!(pace.rest(), Duration::ZERO);
    }
}
