//! The scores of a placement in a few words, as events tell them.
//!
//! Owns the text and its limit. Only the clusters that fit are scored, however many are feasible.

use std::fmt::Write as _;

use super::feasible::feasible;
use super::score::Scorer;
use crate::model::{Model, PlacementKey, Slot};
use crate::moment::Moment;

/// What the text ends with when not all clusters fit.
const MORE: &str = "......";
/// The shortest entry in characters: a name of one letter, a colon, one digit, a space.
const ENTRY_CHARS_MIN: usize = 4;

impl Model {
    /// The feasible clusters with their scores, `<cluster>:<score> ` in the order of names, cut before the entry that
    /// would exceed `max_chars`; the mark that more were left out comes on top. Empty if nothing is feasible, or the
    /// placement is unknown, left alone or cannot be understood.
    ///
    /// It speaks of the model as it is: to tell the scores of a decision, ask at the same moment, right after deciding.
    pub fn score_note(&self, placement: &PlacementKey, now: Moment, max_chars: usize) -> String {
        let mut note = String::new();
        let Some(id) = self.placements.find(placement) else { return note };
        let entry = self.placements.get(id);
        let Ok(rule) = &entry.rule else { return note };
        if entry.idle || entry.eligible.broken.is_some() {
            return note;
        }
        let own = self.decisions.of(&entry.key);
        let feasible = feasible(self, entry, own, now);
        let scorer = Scorer::new(self, entry, rule, own, &feasible, now);
        let mut ranked: Vec<(u64, Slot)> =
            feasible.iter().map(|slot| (self.slots.rank(Slot(slot)), Slot(slot))).collect();
        // One more than can fit tells that something was left out.
        let room = (max_chars / ENTRY_CHARS_MIN).saturating_add(1);
        if room < ranked.len() {
            ranked.select_nth_unstable(room);
            ranked.truncate(room);
        }
        ranked.sort_unstable();
        for (_, slot) in ranked {
            let start = note.len();
            let _ = write!(note, "{}:{} ", self.name(slot), scorer.score(slot));
            if note.len() > max_chars {
                note.truncate(start);
                note.push_str(MORE);
                break;
            }
        }
        note
    }
}
