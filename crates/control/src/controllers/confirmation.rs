//! The word of a controller that it has heard a person's stop, or the end of one.
//!
//! Owns what is still to be told, and its words. Every controller that evicts gives it for itself: whoever threw the switch waits
//! for it. What a stop holds is each controller's own business.

use std::sync::Arc;

use crate::act::{Note, Target};
use crate::names::ControllerName;
use crate::serve::Metrics;
use crate::world::{Change, FreezeMap, Object};

/// What the event gives as its reason by which a stop is confirmed.
pub const FROZEN_REASON: &str = "EvictionsFrozen";

/// What one controller has heard and not told yet.
#[derive(Debug)]
pub(super) struct Confirmation {
    reporter: ControllerName,
    news: Option<(Arc<FreezeMap>, bool)>,
}

impl Confirmation {
    /// Of a controller that has heard nothing.
    pub(super) fn of(reporter: ControllerName) -> Self {
        Self { reporter, news: None }
    }

    /// Takes note of a change, if it is one of the switch; whether it is.
    pub(super) fn hear(&mut self, change: &Change, metrics: &Metrics) -> bool {
        let map = |object: &Option<Object>| match object {
            Some(Object::Freeze(map)) => Some(Arc::clone(map)),
            _ => None,
        };
        let (before, after) = (map(&change.before), map(&change.after));
        let is_frozen = after.is_some();
        match (before, after) {
            (_, Some(map)) => {
                tracing::warn!(controller = %self.reporter, reason = %map.freeze.reason, by = map.freeze.by.as_deref(), "evictions are frozen");
                self.news = Some((map, true));
            }
            (Some(map), None) => {
                tracing::info!(controller = %self.reporter, "evictions go on");
                self.news = Some((map, false));
            }
            (None, None) => return false,
        }
        metrics.evictions_frozen(is_frozen);
        true
    }

    /// What is to be told, once.
    pub(super) fn take(&mut self) -> Option<Note> {
        let (map, is_frozen) = self.news.take()?;
        let by = map.freeze.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let (reason, action, note) = if is_frozen {
            (FROZEN_REASON, "Freeze", format!("Evictions are frozen{by}: {}", map.freeze.reason))
        } else {
            ("EvictionsUnfrozen", "Unfreeze", "Evictions go on".to_owned())
        };
        let regarding = Target::of(&Object::Freeze(map));
        Some(Note {
            namespace: regarding.key.namespace.to_string(),
            regarding,
            related: None,
            is_warning: is_frozen,
            reason,
            action,
            note,
            reporter: self.reporter.as_str(),
        })
    }
}
