//! What an answer means.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822;

use super::document::Response;

/// The shortest and the longest time after which it may be asked again: who says less would be asked all the time, and who
/// says more would be forgotten.
const LATER_MIN: Duration = Duration::from_secs(1);
const LATER_MAX: Duration = Duration::from_hours(1);
/// How many characters of what a service says are shown: messages end up in events and conditions.
const MESSAGE_CHARS_MAX: usize = 512;

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The pod may go.
    Allowed,
    /// It may not.
    Denied {
        /// What was said about it; may be empty.
        message: String,
    },
    /// It may not yet: ask again.
    Later {
        /// After so long.
        after: Duration,
        /// What was said about it; may be empty.
        message: String,
    },
    /// Nobody knows, so it may not.
    Unanswered {
        /// Why.
        why: Silence,
    },
}

/// Why a question has no answer. Each may pass, so it is asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The service could not be talked to: no connection, no trust, or it broke off.
    Unreachable(String),
    /// It took longer than it may.
    Timeout(Duration),
    /// So many questions are under way that this one's time passed before it was its turn.
    Busy,
    /// It sent us elsewhere; a review goes where the policy says and nowhere else.
    Redirected(u16),
    /// It answered with a status that is none of an answer.
    Status(u16),
    /// It answered with more bytes than an answer may have.
    TooLong {
        /// The most.
        bytes_max: usize,
    },
    /// It answered with something else than an answer.
    Unreadable(String),
    /// It answered another question.
    Another {
        /// The id of that.
        uid: String,
    },
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "the service cannot be reached: {error}"),
            Self::Timeout(limit) => write!(f, "no answer within {} s", limit.as_secs()),
            Self::Busy => f.write_str("too many questions are under way"),
            Self::Redirected(code) => write!(f, "the service redirects ({code}), which is not followed"),
            Self::Status(code) => write!(f, "the service answers with status {code}"),
            Self::TooLong { bytes_max } => write!(f, "the answer has more than {bytes_max} bytes"),
            Self::Unreadable(error) => write!(f, "the answer cannot be read: {error}"),
            Self::Another { uid } => write!(f, "the answer is to another question, {uid:?}"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |message: &String| if message.is_empty() { String::new() } else { format!(": {message}") };
        match self {
            Self::Allowed => f.write_str("allowed"),
            Self::Denied { message } => write!(f, "denied{}", said(message)),
            Self::Later { after, message } => {
                write!(f, "ask again in {} s{}", after.as_secs(), said(message))
            }
            Self::Unanswered { why } => write!(f, "unanswered: {why}"),
        }
    }
}

impl Answer {
    /// Every word there is for one.
    pub const WORDS: [&'static str; 4] = ["allowed", "denied", "later", "unanswered"];

    /// What it is in one word, for metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied { .. } => "denied",
            Self::Later { .. } => "later",
            Self::Unanswered { .. } => "unanswered",
        }
    }

    /// What an answer with this status and these headers says, if the body need not be read for it.
    pub(super) fn of_head(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        let unanswered = |why| Some(Self::Unanswered { why });
        match status {
            StatusCode::OK => None,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => match retry_after(headers) {
                Some(after) => Some(Self::Later { after, message: format!("status {}", status.as_u16()) }),
                None => unanswered(Silence::Status(status.as_u16())),
            },
            _ if status.is_redirection() => unanswered(Silence::Redirected(status.as_u16())),
            _ => unanswered(Silence::Status(status.as_u16())),
        }
    }

    /// What a document says that came with these headers.
    pub(super) fn of_document(response: &Response, headers: &HeaderMap) -> Self {
        if response.allowed {
            return Self::Allowed;
        }
        let message = shown(&response.message);
        let after = response.retry_after_seconds.map(|seconds| {
            Duration::from_secs(u64::try_from(seconds).unwrap_or_default()).clamp(LATER_MIN, LATER_MAX)
        });
        match after.or_else(|| retry_after(headers)) {
            Some(after) => Self::Later { after, message },
            None => Self::Denied { message },
        }
    }
}

/// What `Retry-After` says: seconds, or a time by the clock of the service, which `Date` tells.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let after = text(header::RETRY_AFTER)?.trim();
    let wait = if let Ok(seconds) = after.parse::<u64>() {
        Duration::from_secs(seconds)
    } else {
        let time = |text: &str| Some(rfc2822::parse(text).ok()?.timestamp());
        let (until, now): (Timestamp, Timestamp) = (time(after)?, time(text(header::DATE)?)?);
        until.duration_since(now).try_into().unwrap_or_default()
    };
    Some(wait.clamp(LATER_MIN, LATER_MAX))
}

/// What a stranger said, as it may be shown: one line, and not too long.
pub(super) fn shown(text: &str) -> String {
    let clean = text.chars().map(|char| if char.is_control() { ' ' } else { char });
    clean.take(MESSAGE_CHARS_MAX).collect::<String>().trim().to_owned()
}
