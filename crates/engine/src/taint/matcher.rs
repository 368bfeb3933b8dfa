//! The matcher: a taint against tolerations, at a moment.

use std::fmt;

use serde::Serialize;

use crate::moment::Moment;

/// Something that repels whoever does not tolerate it. `E` is the scale's effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Taint<E> {
    /// What the taint is about, `example.org/maintenance`.
    pub key: Box<str>,
    /// Its value; often empty.
    pub value: Box<str>,
    /// What it does.
    pub effect: E,
    /// When it was put on, if the object says so.
    pub added: Option<Moment>,
}

impl<E: fmt::Display> fmt::Display for Taint<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{}", self.effect)
    }
}

/// How a toleration's value relates to a taint's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Operator {
    /// The values are the same. The default.
    Equal,
    /// Any value.
    Exists,
    /// The taint's value is a number below the toleration's.
    Lt,
    /// The taint's value is a number above the toleration's.
    Gt,
    /// An operator this version does not know; it matches nothing.
    #[serde(untagged)]
    Other(Box<str>),
}

impl Operator {
    /// Reads the API's spelling; an empty one is [`Operator::Equal`].
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "Equal" => Self::Equal,
            "Exists" => Self::Exists,
            "Lt" => Self::Lt,
            "Gt" => Self::Gt,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "Equal",
            Self::Exists => "Exists",
            Self::Lt => "Lt",
            Self::Gt => "Gt",
            Self::Other(text) => text,
        })
    }
}

/// The readiness to stay with a taint, perhaps only for a while.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Toleration<E> {
    /// The taint's key; empty matches every key.
    pub key: Box<str>,
    /// How `value` is compared.
    pub operator: Operator,
    /// The value compared with.
    pub value: Box<str>,
    /// The effect tolerated; `None` is every effect.
    pub effect: Option<E>,
    /// For how long after the taint was added; `None` is for ever, zero and below not at all.
    pub seconds: Option<i64>,
}

impl<E: PartialEq> Toleration<E> {
    /// Whether this toleration speaks of `taint` at all, whatever the time.
    pub fn matches(&self, taint: &Taint<E>) -> bool {
        if self.effect.as_ref().is_some_and(|effect| *effect != taint.effect) {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        match self.operator {
            Operator::Equal => self.value == taint.value,
            Operator::Exists => true,
            Operator::Lt => self.compare(taint, |taint, limit| taint < limit),
            Operator::Gt => self.compare(taint, |taint, limit| taint > limit),
            Operator::Other(_) => false,
        }
    }

    /// Numeric comparison of the two values; anything that is not a whole number as one writes it matches nothing.
    fn compare(&self, taint: &Taint<E>, holds: impl Fn(i64, i64) -> bool) -> bool {
        match (whole(&taint.value), whole(&self.value)) {
            (Some(taint), Some(limit)) => holds(taint, limit),
            _ => false,
        }
    }

    /// For how long it lasts, given that it matches.
    fn lasting(&self) -> Lasting {
        self.seconds.map_or(Lasting::Forever, Lasting::Seconds)
    }
}

/// A whole number in its only spelling: `7`, not `+7` or `007`.
fn whole(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical =
        digits == "0" && digits == text || digits.starts_with(|first| matches!(first, '1'..='9'));
    text.parse().ok().filter(|_| is_canonical)
}

impl<E: fmt::Display> fmt::Display for Toleration<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key: &str = if self.key.is_empty() { "*" } else { &self.key };
        match &self.operator {
            Operator::Exists => write!(f, "{key} Exists")?,
            operator => write!(f, "{key} {operator} \"{}\"", self.value)?,
        }
        if let Some(effect) = &self.effect {
            write!(f, " ({effect})")?;
        }
        if let Some(seconds) = self.seconds {
            write!(f, " for {seconds}s")?;
        }
        Ok(())
    }
}

/// Which of several matching tolerations decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The first that matches, in the order written, even if it has expired and a later one would hold: pods.
    FirstMatch,
    /// The one that holds longest: clusters, where any unexpired toleration suffices.
    LongestMatch,
}

/// For how long a taint is tolerated after it was added, by the toleration that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Lasting {
    /// No toleration matches.
    Not,
    /// This many seconds.
    Seconds(i64),
    /// For ever.
    Forever,
}

impl Lasting {
    /// The end, counted from `since`.
    pub fn end(self, since: Moment) -> Moment {
        match self {
            Self::Not => Moment::PAST,
            Self::Seconds(seconds) => since.plus_seconds(seconds),
            Self::Forever => Moment::NEVER,
        }
    }
}

/// What the tolerations say of a taint, without a clock. Depends on the taint's key, value and effect only, so it
/// can be remembered for every taint alike.
pub fn lasting<E: PartialEq>(taint: &Taint<E>, tolerations: &[Toleration<E>], policy: Policy) -> Lasting {
    decider(taint, tolerations, policy).map_or(Lasting::Not, |(_, toleration)| toleration.lasting())
}

/// Why a taint is not tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Refusal {
    /// No toleration speaks of it.
    NoMatch,
    /// One did, until `at`.
    Expired {
        /// Its place in the list.
        by: usize,
        /// When it ended.
        at: Moment,
    },
}

/// What the tolerations say of a taint at a moment, with the toleration (by its place in the list) that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// For ever.
    Tolerated {
        /// Its place in the list.
        by: usize,
    },
    /// As long as `now < deadline`.
    Until {
        /// Its place in the list.
        by: usize,
        /// The first moment at which it no longer holds.
        deadline: Moment,
    },
    /// Not at this moment.
    Not(Refusal),
}

impl Verdict {
    /// Whether the taint is tolerated at the moment judged.
    pub fn holds(self) -> bool {
        !matches!(self, Self::Not(_))
    }
}

/// Judges one taint at `now`. Tolerations with a duration count from `since`: when the taint was added, or, where that is
/// not known, whatever the scale takes for it (clusters: [`Moment::PAST`], so they count as expired).
pub fn judge<E: PartialEq>(
    taint: &Taint<E>,
    tolerations: &[Toleration<E>],
    policy: Policy,
    since: Moment,
    now: Moment,
) -> Verdict {
    let Some((by, toleration)) = decider(taint, tolerations, policy) else {
        return Verdict::Not(Refusal::NoMatch);
    };
    match toleration.lasting().end(since) {
        Moment::NEVER => Verdict::Tolerated { by },
        deadline if now < deadline => Verdict::Until { by, deadline },
        at => Verdict::Not(Refusal::Expired { by, at }),
    }
}

/// The toleration that decides, with its place. Ties under [`Policy::LongestMatch`] go to the first written.
fn decider<'t, E: PartialEq>(
    taint: &Taint<E>,
    tolerations: &'t [Toleration<E>],
    policy: Policy,
) -> Option<(usize, &'t Toleration<E>)> {
    let mut matching = tolerations.iter().enumerate().filter(|(_, toleration)| toleration.matches(taint));
    match policy {
        Policy::FirstMatch => matching.next(),
        Policy::LongestMatch => matching.reduce(|best, next| {
            let longer = match (best.1.seconds, next.1.seconds) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(best), Some(next)) => next > best,
            };
            if longer { next } else { best }
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::taint::{ClusterEffect, NodeEffect};

    fn taint(key: &str, value: &str) -> Taint<NodeEffect> {
        let added = Some(Moment::from_second(100));
        Taint { key: key.into(), value: value.into(), effect: NodeEffect::NoExecute, added }
    }

    fn toleration(key: &str, operator: &str, value: &str, seconds: Option<i64>) -> Toleration<NodeEffect> {
        let operator = Operator::parse(operator);
        Toleration { key: key.into(), operator, value: value.into(), effect: None, seconds }
    }

    fn judged(tolerations: &[Toleration<NodeEffect>], policy: Policy, second: i64) -> Verdict {
        judge(&taint("down", "5"), tolerations, policy, Moment::from_second(100), Moment::from_second(second))
    }

    #[test]
    fn a_toleration_with_an_empty_key_matches_every_taint() {
        assert!(toleration("", "Exists", "", None).matches(&taint("anything", "at all")));
        assert!(!toleration("other", "Exists", "", None).matches(&taint("down", "")));
    }

    #[test]
    fn every_operator_compares_in_its_own_way() {
        let cases = [
            ("", "5", true),
            ("Equal", "5", true),
            ("Equal", "05", false),
            ("Exists", "", true),
            ("Lt", "6", true),
            ("Lt", "5", false),
            ("Gt", "4", true),
            ("Gt", "5", false),
            ("Gt", "-9223372036854775808", true),
            ("Lt", "six", false),
            ("Lt", "+6", false),
            ("Lt", "06", false),
            ("Gt", "-0", false),
            ("Gt", "-7", true),
            ("Gt", "0", true),
            ("Lt", "99999999999999999999", false),
            ("Like", "5", false),
        ];
        for (operator, value, matches) in cases {
            let toleration = toleration("down", operator, value, None);
            assert_eq!(toleration.matches(&taint("down", "5")), matches, "{operator} {value}");
        }
        assert!(
            !toleration("down", "Gt", "4", None).matches(&taint("down", "high")),
            "what is no number is not compared"
        );
    }

    #[test]
    fn an_effect_that_is_given_must_be_the_taints() {
        let mut toleration = toleration("down", "Exists", "", None);
        toleration.effect = Some(NodeEffect::NoSchedule);
        assert!(!toleration.matches(&taint("down", "")));
        toleration.effect = Some(NodeEffect::NoExecute);
        assert!(toleration.matches(&taint("down", "")));
    }

    #[test]
    fn pods_go_by_the_first_match_and_clusters_by_the_longest() {
        let both = [toleration("down", "Exists", "", Some(10)), toleration("", "Exists", "", Some(60))];
        let first = Verdict::Until { by: 0, deadline: Moment::from_second(110) };
        let longest = Verdict::Until { by: 1, deadline: Moment::from_second(160) };
        assert_eq!(judged(&both, Policy::FirstMatch, 105), first);
        assert_eq!(judged(&both, Policy::LongestMatch, 105), longest);
        let ended = Verdict::Not(Refusal::Expired { by: 0, at: Moment::from_second(110) });
        assert_eq!(judged(&both, Policy::FirstMatch, 110), ended, "even though the second would still hold");
        assert_eq!(judged(&both, Policy::LongestMatch, 110), longest);
    }

    #[test]
    fn of_equals_the_first_written_decides() {
        let both = [toleration("down", "Exists", "", None), toleration("", "Exists", "", None)];
        assert_eq!(judged(&both, Policy::LongestMatch, 0), Verdict::Tolerated { by: 0 });
        assert_eq!(judged(&[], Policy::LongestMatch, 0), Verdict::Not(Refusal::NoMatch));
    }

    #[test]
    fn a_taint_without_a_time_is_tolerated_for_ever_or_not_at_all() {
        let timeless = Taint { added: None, ..taint("down", "") };
        let judged = |seconds| {
            judge(
                &timeless,
                &[toleration("down", "Exists", "", seconds)],
                Policy::LongestMatch,
                Moment::PAST,
                Moment::PAST,
            )
        };
        assert!(judged(None).holds());
        assert_eq!(judged(Some(i64::MAX)), Verdict::Not(Refusal::Expired { by: 0, at: Moment::PAST }));
    }

    #[test]
    fn taints_and_tolerations_print_as_they_are_written() {
        assert_eq!(taint("down", "").to_string(), "down:NoExecute");
        assert_eq!(taint("down", "hard").to_string(), "down=hard:NoExecute");
        let mut limited = toleration("", "Exists", "", Some(5));
        limited.effect = Some(NodeEffect::NoExecute);
        assert_eq!(limited.to_string(), "* Exists (NoExecute) for 5s");
    }

    fn any_toleration() -> impl Strategy<Value = Toleration<ClusterEffect>> {
        let texts = (
            select(vec!["", "a", "b"]),
            select(vec!["", "Exists", "Lt", "Gt", "?"]),
            select(vec!["", "1", "2", "x"]),
        );
        let effect =
            prop::option::of(select(vec!["NoSelect", "PreferNoSelect", "?"]).prop_map(ClusterEffect::parse));
        (texts, effect, prop::option::of(any::<i64>())).prop_map(
            |((key, operator, value), effect, seconds)| Toleration {
                key: key.into(),
                operator: Operator::parse(operator),
                value: value.into(),
                effect,
                seconds,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_remembered_of_a_taint_agrees_with_a_judgement_at_any_moment(
            tolerations in prop::collection::vec(any_toleration(), 0..5),
            (key, value, effect) in (select(vec!["a", "b"]), select(vec!["", "1", "x"]), select(vec!["NoSelect", "?"])),
            since in prop_oneof![Just(Moment::PAST), any::<i64>().prop_map(Moment::from_second)],
            now in any::<i64>().prop_map(Moment::from_second),
            policy in select(vec![Policy::FirstMatch, Policy::LongestMatch]),
        ) {
            let taint = Taint { key: key.into(), value: value.into(), effect: ClusterEffect::parse(effect), added: None };
            let end = lasting(&taint, &tolerations, policy).end(since);
            let verdict = judge(&taint, &tolerations, policy, since, now);
            // At the end of time itself nothing is before for ever.
            prop_assert_eq!(verdict.holds(), now < end || end == Moment::NEVER, "{:?} until {:?}", verdict, end);
        }

        #[test]
        fn another_toleration_never_shortens_the_longest(
            tolerations in prop::collection::vec(any_toleration(), 0..4),
            more in any_toleration(),
            added in any::<i64>().prop_map(Moment::from_second),
        ) {
            let taint = Taint { key: "a".into(), value: "1".into(), effect: ClusterEffect::NoSelect, added: Some(added) };
            let before = lasting(&taint, &tolerations, Policy::LongestMatch).end(added);
            let all: Vec<_> = tolerations.into_iter().chain([more]).collect();
            prop_assert!(lasting(&taint, &all, Policy::LongestMatch).end(added) >= before);
        }
    }
}
