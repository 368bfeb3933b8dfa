//! The clusters that carry one `key=value` pair.
//!
//! Most values of a fleet are either shared by many clusters or unique to one (an id, a URL). The unique ones cost
//! nothing beyond the slot number; the shared ones are a roaring bitmap.

use roaring::RoaringBitmap;

use super::slots::Slot;

#[derive(Debug, Default)]
pub(crate) enum Posting {
    #[default]
    Nobody,
    One(Slot),
    Many(Box<RoaringBitmap>),
}

impl Posting {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Nobody)
    }

    pub(crate) fn insert(&mut self, slot: Slot) {
        match self {
            Self::Nobody => *self = Self::One(slot),
            Self::One(only) if *only == slot => {}
            Self::One(only) => *self = Self::Many(Box::new([only.0, slot.0].into_iter().collect())),
            Self::Many(slots) => {
                slots.insert(slot.0);
            }
        }
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        match self {
            Self::One(only) if *only == slot => *self = Self::Nobody,
            Self::Nobody | Self::One(_) => {}
            Self::Many(slots) => {
                slots.remove(slot.0);
                // Back to the small form only when nobody is left: a value that was shared will be shared again.
                if slots.is_empty() {
                    *self = Self::Nobody;
                }
            }
        }
    }

    pub(crate) fn add_to(&self, slots: &mut RoaringBitmap) {
        match self {
            Self::Nobody => {}
            Self::One(slot) => {
                slots.insert(slot.0);
            }
            Self::Many(many) => *slots |= &**many,
        }
    }
}
