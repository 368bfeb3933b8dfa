//! An impact in a sentence, short enough for a warning header.

use std::fmt::{self, Write as _};

use super::Impact;
use crate::model::PlacementKey;

/// Placements that are named: the ones that lose most.
const NAMED_MAX: usize = 3;
/// Characters of names: clients may cut a warning after 256 in all.
const NAMES_CHARS_MAX: usize = 130;

impl fmt::Display for Impact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = if self.is_partial { "at least " } else { "" };
        if let [(only, count)] = &*self.losses
            && !self.is_partial
        {
            write!(f, "this change removes {} from placement {only}", self.clusters_in_words(*count, ""))?;
        } else if !self.losses.is_empty() {
            let (clusters, placements) = (self.clusters.len(), self.losses.len());
            write!(
                f,
                "this change removes {} from {least}{placements} {}{}",
                self.clusters_in_words(clusters, least),
                noun(placements),
                names(&self.losses)
            )?;
        }
        let Some((count, first)) = &self.later else { return Ok(()) };
        let (begin, more) = if self.losses.is_empty() { ("this change makes ", "") } else { ("; ", " more") };
        let lose = if !self.losses.is_empty() && *count == 1 { "loses" } else { "lose" };
        write!(
            f,
            "{begin}{least}{count}{more} {} {lose} clusters when tolerations end, from {first} on",
            noun(*count)
        )
    }
}

impl Impact {
    /// One cluster is named, several are counted.
    fn clusters_in_words(&self, count: usize, least: &str) -> String {
        match (count, self.clusters.first()) {
            (1, Some(only)) if !self.is_partial => format!("cluster {only}"),
            (1, _) => format!("{least}1 cluster"),
            _ => format!("{least}{count} clusters"),
        }
    }
}

fn noun(placements: usize) -> &'static str {
    if placements == 1 { "placement" } else { "placements" }
}

/// `: a/b (20), c/d (3) and 10 more`.
fn names(losses: &[(PlacementKey, usize)]) -> String {
    let is_worth_a_count = losses.iter().any(|(_, count)| *count > 1);
    let mut out = String::new();
    let mut named = 0;
    for (placement, count) in losses.iter().take(NAMED_MAX) {
        let mut name = placement.to_string();
        if is_worth_a_count {
            // Writing to a text cannot fail.
            let _ = write!(name, " ({count})");
        }
        if out.len() + name.len() > NAMES_CHARS_MAX {
            break;
        }
        out.push_str(if named == 0 { ": " } else { ", " });
        out.push_str(&name);
        named += 1;
    }
    if named > 0 && losses.len() > named {
        let _ = write!(out, " and {} more", losses.len() - named);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;

    fn impact(clusters: &[&str], losses: &[(&str, usize)]) -> Impact {
        Impact {
            clusters: clusters.iter().map(|name| (*name).into()).collect(),
            losses: losses.iter().map(|(name, count)| (PlacementKey::new("shop", name), *count)).collect(),
            ..Impact::default()
        }
    }

    #[test]
    fn one_is_named_and_several_are_counted() {
        let one = impact(&["fra-1"], &[("web", 1)]);
        assert_eq!(one.to_string(), "this change removes cluster fra-1 from placement shop/web");
        let several = impact(&["a", "b"], &[("web", 2)]);
        assert_eq!(several.to_string(), "this change removes 2 clusters from placement shop/web");
        let spread = impact(&["fra-1"], &[("batch", 1), ("web", 1)]);
        assert_eq!(
            spread.to_string(),
            "this change removes cluster fra-1 from 2 placements: shop/batch, shop/web"
        );
    }

    #[test]
    fn the_largest_losses_are_named() {
        let many =
            impact(&["a", "b", "c"], &[("web", 3), ("batch", 2), ("ledger", 1), ("more", 1), ("yet", 1)]);
        assert_eq!(
            many.to_string(),
            "this change removes 3 clusters from 5 placements: shop/web (3), shop/batch (2), shop/ledger (1) and 2 more"
        );
    }

    #[test]
    fn what_was_not_all_looked_at_says_so() {
        let part = Impact { is_partial: true, ..impact(&["a"], &[("web", 1)]) };
        assert_eq!(
            part.to_string(),
            "this change removes at least 1 cluster from at least 1 placement: shop/web"
        );
    }

    #[test]
    fn what_leaves_later_is_told_with_the_time() {
        let at = Moment::from_second(1_700_000_000);
        let later = Impact { later: Some((2, at)), ..Impact::default() };
        assert_eq!(
            later.to_string(),
            "this change makes 2 placements lose clusters when tolerations end, from 2023-11-14T22:13:20Z on"
        );
        let both = Impact { later: Some((1, at)), ..impact(&["a"], &[("web", 1)]) };
        assert_eq!(
            both.to_string(),
            "this change removes cluster a from placement shop/web; 1 more placement loses clusters when tolerations end, \
             from 2023-11-14T22:13:20Z on"
        );
    }

    #[test]
    fn a_warning_stays_short_whatever_things_are_called() {
        let long = "n".repeat(63);
        let losses: Vec<(PlacementKey, usize)> =
            (0..5).map(|_| (PlacementKey::new(&long, &long), usize::MAX)).collect();
        let worst = Impact {
            clusters: ["a".into(), "b".into()].into(),
            losses,
            later: Some((usize::MAX, Moment::from_second(1_700_000_000))),
            is_partial: true,
        };
        assert!(worst.to_string().len() < 256, "{worst}");
    }
}
