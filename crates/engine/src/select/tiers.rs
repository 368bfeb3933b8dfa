//! Who waits to be chosen, in an order that survives every choice.
//!
//! Owns the queue of a spread selection. Choosing one cluster changes what spreading is worth for all that share a
//! place with it, so no order by worth would last. What lasts is the order by score among cells that are worth the
//! same *whatever is chosen*: such a *tier* keeps its cells sorted, and only the first of each tier competes.
//!
//! A crowded place tells tiers apart by itself, so nobody has to be moved when it fills. Places with few cells are told
//! apart by how many were chosen there: when that changes, those few cells move to another tier, at once or when they
//! come first in theirs, and when only the emptiest place fills, nobody does.
//!
//! Nor is every tier asked at every choice: while bids only fall, what each bid last is as much as it can bid now, so
//! only those on top are asked again. All are asked when bids may have risen, which [`Tiers::unsettle`] says. Never
//! decides what a tier is worth; that is [`super::spread`]'s business.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use hashbrown::HashMap;

use super::ranking::Ranked;

/// Cells moved to another tier cost this many looks at the first of a tier.
const MOVE_LOOKS: u64 = 10;
/// How many numbers of chosen clusters places of one topology have at a time, as a rule: spreading keeps them even.
const COUNTS_AT_A_TIME: u64 = 3;

/// What the cells of a tier have in common in one topology. There are no more places, nor clusters chosen in one, than
/// slots, which are 32 bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Seat {
    /// They have no value for the key.
    Nowhere,
    /// They are in this place, which is crowded.
    In(u32),
    /// They are in places, maybe several, where this many were chosen.
    With(u32),
}

/// The first cluster of a cell, and the cell.
pub(super) type Head = (Ranked, usize);

/// What a head offers to be chosen next. The greatest is chosen.
pub(super) type Bid = (i64, u64, Reverse<u64>);

#[derive(Debug)]
struct Tier {
    seats: Box<[Seat]>,
    heads: BTreeSet<Head>,
    /// The first of `heads`, at hand.
    first: Option<Head>,
    /// The bid in `offers` that stands for this tier; any other there is outdated.
    offer: Option<Bid>,
    /// Whether nobody waits here, and none will before it is used again for other seats.
    is_free: bool,
}

#[derive(Debug)]
pub(super) struct Tiers {
    /// For each topology and place, the cells to move when the place fills; `None` where it is crowded.
    movers: Vec<Vec<Option<Vec<usize>>>>,
    all: Vec<Tier>,
    numbers: HashMap<Box<[Seat]>, usize>,
    /// Tiers nobody waits in, to be used again.
    free: Vec<usize>,
    /// The tier each cell waits in.
    tier_of: Vec<Option<usize>>,
    /// What the tiers bid when last asked. While bids only fall, none bids more than it has here: it is enough to ask
    /// the greatest again until one keeps to its word.
    offers: BinaryHeap<(Bid, usize)>,
    /// The same when all were asked and it is not known yet whether that will be of use again.
    unsorted: Vec<(Bid, usize)>,
    /// Tiers with a new first, which may bid more than they have in `offers`.
    renewed: Vec<usize>,
    /// Whether any tier may.
    unsettled: bool,
    /// To look up tiers with.
    seats: Vec<Seat>,
    /// Firsts looked at and cells moved so far: what all this is to keep low.
    #[cfg(test)]
    pub(super) effort: usize,
}

impl Tiers {
    /// For cells by number, each with its place in every topology. `sizes` says how many places these have.
    pub(super) fn new<'c>(cells: impl Iterator<Item = &'c [Option<usize>]>, sizes: &[usize]) -> Self {
        Self::with(cells, sizes, few)
    }

    /// The same with another opinion on how many cells are [`few`].
    pub(super) fn with<'c>(
        cells: impl Iterator<Item = &'c [Option<usize>]>,
        sizes: &[usize],
        few: impl FnOnce(&[Vec<Vec<usize>>], usize) -> usize,
    ) -> Self {
        let mut places: Vec<Vec<Vec<usize>>> = sizes.iter().map(|size| vec![Vec::new(); *size]).collect();
        let mut count = 0;
        for (cell, at) in cells.enumerate() {
            for (places, place) in places.iter_mut().zip(at) {
                if let Some(place) = place {
                    places[*place].push(cell);
                }
            }
            count = cell + 1;
        }
        let few = few(&places, count);
        let movers = places
            .into_iter()
            .map(|places| {
                // The only place is always the emptiest: how many were chosen there makes no difference.
                let alone = places.len() == 1;
                places.into_iter().map(|cells| (!alone && cells.len() <= few).then_some(cells)).collect()
            })
            .collect();
        Self {
            movers,
            all: Vec::new(),
            numbers: HashMap::new(),
            free: Vec::new(),
            tier_of: vec![None; count],
            offers: BinaryHeap::new(),
            unsorted: Vec::new(),
            renewed: Vec::new(),
            unsettled: true,
            seats: Vec::new(),
            #[cfg(test)]
            effort: 0,
        }
    }

    /// The tier a cell belongs to now; `chosen` gives the number of chosen clusters in a place of a topology.
    fn tier(&mut self, at: &[Option<usize>], chosen: impl Fn(usize, usize) -> usize) -> usize {
        let Self { movers, seats, .. } = self;
        let seat = |(topology, place): (usize, &Option<usize>)| match *place {
            None => Seat::Nowhere,
            Some(place) if movers[topology][place].is_none() => Seat::In(place as u32),
            Some(place) => Seat::With(chosen(topology, place) as u32),
        };
        seats.clear();
        seats.extend(at.iter().enumerate().map(seat));
        if let Some(number) = self.numbers.get(&*self.seats) {
            return *number;
        }
        let seats: Box<[Seat]> = self.seats.as_slice().into();
        let tier =
            Tier { seats: seats.clone(), heads: BTreeSet::new(), first: None, offer: None, is_free: false };
        let number = if let Some(number) = self.free.pop() {
            self.all[number] = tier;
            number
        } else {
            self.all.push(tier);
            self.all.len() - 1
        };
        self.numbers.insert(seats, number);
        number
    }

    /// Lets the head of a cell wait.
    pub(super) fn add(&mut self, head: Head, at: &[Option<usize>], chosen: impl Fn(usize, usize) -> usize) {
        let number = self.tier(at, chosen);
        self.put(head, number);
    }

    fn put(&mut self, head: Head, number: usize) {
        self.tier_of[head.1] = Some(number);
        let Tier { heads, first, .. } = &mut self.all[number];
        heads.insert(head);
        if first.is_none_or(|first| head < first) {
            *first = Some(head);
            self.renewed.push(number);
        }
    }

    /// Takes the head of a cell out; whether it waited.
    pub(super) fn remove(&mut self, head: &Head) -> bool {
        #[cfg(test)]
        {
            self.effort += 1;
        }
        let Some(number) = self.tier_of[head.1].take() else { return false };
        let Tier { heads, first, .. } = &mut self.all[number];
        let waited = heads.remove(head);
        *first = heads.first().copied();
        waited
    }

    /// Moves a head from the tier it is in to where it belongs now; whether it was elsewhere.
    pub(super) fn reseat(
        &mut self,
        head: Head,
        at: &[Option<usize>],
        chosen: impl Fn(usize, usize) -> usize,
    ) -> bool {
        let number = self.tier(at, chosen);
        if self.tier_of[head.1] == Some(number) {
            return false;
        }
        self.remove(&head);
        self.put(head, number);
        true
    }

    /// The cells that move when a cluster in these places is chosen, each once.
    pub(super) fn moved(&self, at: &[Option<usize>]) -> Vec<usize> {
        let places = self.movers.iter().zip(at).filter_map(|(places, place)| places[(*place)?].as_ref());
        let mut moved: Vec<usize> = places.flatten().copied().collect();
        moved.sort_unstable();
        moved.dedup();
        moved
    }

    /// Says that tiers may bid more than they did, those with the same first too.
    pub(super) fn unsettle(&mut self) {
        self.unsettled = true;
    }

    /// The first that bids most, if any may bid at all. Heads that `gone` names are dropped for good on the way.
    pub(super) fn best(
        &mut self,
        gone: impl Fn(usize) -> bool,
        bid: impl Fn(&[Seat], &Ranked) -> Option<Bid>,
    ) -> Option<(Bid, Head)> {
        if std::mem::take(&mut self.unsettled) {
            return self.ask_all(gone, bid);
        }
        if !self.unsorted.is_empty() {
            self.offers = std::mem::take(&mut self.unsorted).into();
        }
        while let Some(number) = self.renewed.pop() {
            let offer = self.ask(number, &gone, &bid).map(|(bid, _)| bid);
            if offer > self.all[number].offer {
                self.all[number].offer = offer;
                self.offers.extend(offer.map(|bid| (bid, number)));
            }
        }
        loop {
            let (offer, number) = *self.offers.peek()?;
            if self.all[number].offer != Some(offer) {
                self.offers.pop();
                continue;
            }
            let asked = self.ask(number, &gone, &bid);
            let fresh = asked.map(|(bid, _)| bid);
            if fresh == Some(offer) {
                return asked;
            }
            self.all[number].offer = fresh;
            self.offers.pop();
            self.offers.extend(fresh.map(|bid| (bid, number)));
        }
    }

    /// The first that bids most, as all bid now.
    fn ask_all(
        &mut self,
        gone: impl Fn(usize) -> bool,
        bid: impl Fn(&[Seat], &Ranked) -> Option<Bid>,
    ) -> Option<(Bid, Head)> {
        self.renewed.clear();
        self.offers.clear();
        self.unsorted.clear();
        let mut best = None;
        for number in 0..self.all.len() {
            let asked = self.ask(number, &gone, &bid);
            let offer = asked.map(|(bid, _)| bid);
            self.all[number].offer = offer;
            self.unsorted.extend(offer.map(|bid| (bid, number)));
            best = best.max(asked);
        }
        best
    }

    /// What the first of a tier bids now.
    fn ask(
        &mut self,
        number: usize,
        gone: impl Fn(usize) -> bool,
        bid: impl Fn(&[Seat], &Ranked) -> Option<Bid>,
    ) -> Option<(Bid, Head)> {
        let tier = &mut self.all[number];
        while let Some(head) = tier.first {
            #[cfg(test)]
            {
                self.effort += 1;
            }
            if !gone(head.1) {
                return bid(&tier.seats, &head.0).map(|bid| (bid, head));
            }
            self.tier_of[head.1] = None;
            tier.heads.pop_first();
            tier.first = tier.heads.first().copied();
        }
        if !tier.is_free {
            tier.is_free = true;
            self.numbers.remove(&tier.seats);
            self.free.push(number);
        }
        None
    }
}

/// Up to how many cells a place has to be told apart by a number: few enough to move them, and so many that there are not
/// too many tiers to look at. Of all powers of two the one with the least of both.
fn few(topologies: &[Vec<Vec<usize>>], cells: usize) -> usize {
    let cost = |few: usize| {
        let (mut tiers, mut moves) = (1_u64, 0_u64);
        for places in topologies {
            let crowded = places.iter().filter(|cells| cells.len() > few).count();
            let counts = if crowded < places.len() { COUNTS_AT_A_TIME } else { 0 };
            tiers = tiers.saturating_mul((crowded as u64 + counts).max(1));
            // Where more cells are, more is chosen.
            let squares = places.iter().filter(|cells| cells.len() <= few).map(|cells| cells.len() as u64);
            moves = moves.saturating_add(squares.map(|size| size * size).sum::<u64>() / cells.max(1) as u64);
        }
        tiers.min(cells as u64).saturating_add(moves.saturating_mul(MOVE_LOOKS))
    };
    let powers = std::iter::successors(Some(1_usize), |few| (*few < cells).then(|| few * 2));
    std::iter::once(0).chain(powers).min_by_key(|few| cost(*few)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(sizes: &[usize]) -> Vec<Vec<usize>> {
        let mut next = 0..;
        sizes.iter().map(|size| next.by_ref().take(*size).collect()).collect()
    }

    #[test]
    fn a_place_that_has_nearly_all_is_crowded_and_one_of_its_own_is_not() {
        let few = few(&[places(&[1000]), places(&[1; 1000])], 1000);
        assert!((1..1000).contains(&few), "{few}");
    }

    #[test]
    fn one_crowded_place_among_many_small_ones_is_told_apart() {
        let mut sizes = vec![1; 5000];
        sizes.push(5000);
        let few = few(&[places(&sizes), places(&vec![1; 10_000])], 10_000);
        assert!((1..5000).contains(&few), "{few}");
    }

    #[test]
    fn a_handful_of_cells_is_simply_looked_at() {
        assert_eq!(few(&[places(&[1, 1, 1])], 3), 0);
    }
}
