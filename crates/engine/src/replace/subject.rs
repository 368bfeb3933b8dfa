//! The pod that a replacement is about, and the one that takes its place, as they are now.

use super::course::Course;
use super::facts::{Known, Member, Pod};

/// The pod of a replacement, as it is now.
pub(super) enum Subject<'p> {
    Unknown,
    /// It is no more, or another one has its name.
    Gone,
    Leaving,
    There(&'p Pod),
}

/// The pod of a replacement.
pub(super) fn subject<'m>(member: &'m Member, course: &Course) -> Subject<'m> {
    match &member.pod {
        Known::Unknown => Subject::Unknown,
        Known::Known(Some(pod)) if pod.uid == course.uid => {
            if pod.is_leaving {
                Subject::Leaving
            } else {
                Subject::There(pod)
            }
        }
        Known::Known(_) => Subject::Gone,
    }
}

/// The pod that took the member's place; `None` while there is none.
pub(super) fn successor<'m>(member: &'m Member, course: &Course) -> Known<Option<&'m Pod>> {
    match &member.pod {
        Known::Unknown => Known::Unknown,
        Known::Known(Some(pod)) if pod.uid != course.uid => Known::Known(Some(pod)),
        Known::Known(Some(_)) => Known::Known(None),
        Known::Known(None) => match &member.successor {
            Known::Unknown => Known::Unknown,
            Known::Known(pod) => Known::Known(pod.as_ref()),
        },
    }
}
