//! Cutting a selection into decision groups and slices.

use std::sync::Arc;

use berth_api::placement_decision::DECISIONS_PER_SLICE_MAX;

use super::decision::{Group, Pick};
use super::ranking::Ranked;
use super::rule::{GroupSize, Groups, Order, Rule};
use crate::model::Model;

/// Groups a selection: named groups first, in order, then the rest; each cut to the group size. The clusters come
/// back in group order, and the groups say how many of them are theirs.
pub(crate) fn group(model: &Model, rule: &Rule, mut selected: Vec<Ranked>) -> (Vec<Pick>, Vec<Group>) {
    match rule.order {
        Order::Name => selected.sort_unstable_by_key(|ranked| ranked.rank),
        Order::Score => selected.sort_unstable(),
    }
    let size = group_size(&rule.groups, selected.len());
    let mut groups = Vec::new();
    let mut picks = Vec::with_capacity(selected.len());
    let mut close = |name: &Arc<str>, members: &mut dyn Iterator<Item = Ranked>| {
        let mut open = 0;
        for ranked in members {
            picks.push(Pick {
                cluster: model.name(ranked.slot).clone(),
                slot: ranked.slot,
                score: ranked.score,
            });
            open += 1;
            if open == size {
                groups.push(Group { name: name.clone(), len: open });
                open = 0;
            }
        }
        if open > 0 {
            groups.push(Group { name: name.clone(), len: open });
        }
    };
    let lens = model.lens();
    for (name, term) in &rule.groups.named {
        let mut members = selected.extract_if(.., |ranked| lens.passes_screen(term, ranked.slot));
        close(name, &mut members);
    }
    let nameless: Arc<str> = Arc::from("");
    close(&nameless, &mut selected.into_iter());
    if groups.is_empty() {
        groups.push(Group { name: nameless, len: 0 });
    }
    (picks, groups)
}

fn group_size(groups: &Groups, total: usize) -> usize {
    let size = match groups.size {
        GroupSize::Count(count) => count,
        GroupSize::Percent(percent) => (usize::from(percent) * total).div_ceil(100),
    };
    if size == 0 || size > total { total } else { size }
}

/// How many slices a group of `len` clusters takes: an empty one still takes one.
pub(crate) fn slices(len: usize) -> usize {
    len.div_ceil(DECISIONS_PER_SLICE_MAX).max(1)
}
