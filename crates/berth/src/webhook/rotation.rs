//! What to do next about certificates.
//!
//! Owns the plan: from what the Secret holds, what the API server was told and what is shown, the one next step. It reads no
//! clock and does nothing itself. Every replica plans alike; steps are written on the condition that nothing changed, so
//! it does not matter who takes one.
//!
//! An authority is replaced in an order in which no handshake can fail: the successor is made and trusted beside the
//! signer, both configurations are told, API servers get time to hear of it, and only then does the successor sign. The
//! former authority stays trusted until it ends. A Secret that was lost is made anew in the same order: whoever is
//! registered, or shown by a replica, stays trusted beside the new authority.

use std::time::Duration;

use berth_hub_guard::Certificate;
use jiff::{SignedDuration, Timestamp};

use super::vault::{Terms, Vault};

/// The longest that API servers take to hear that a configuration changed; a quarter of a life where that is less.
const SETTLE_MAX: Duration = Duration::from_secs(30);
/// The longest rest: what no watch and no date announces is looked at now and then all the same.
const REST_MAX: SignedDuration = SignedDuration::from_hours(1);

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make an authority and a certificate: there are none, or none that could be used.
    Found,
    /// Make a new serving certificate.
    Issue,
    /// Have the authority of what is shown trusted: who made the Secret anew did not know of it.
    Trust,
    /// Show the serving certificate of the Secret.
    Show,
    /// Tell both configurations whom to trust.
    Register,
    /// Make the authority that will follow.
    Appoint,
    /// Let the successor sign.
    Succeed,
    /// Forget authorities that have ended.
    Forget,
    /// Nothing until then, or until something changes.
    Rest(Timestamp),
}

/// What the plan is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'a> {
    /// What the Secret holds; `None` where it holds nothing that can be read.
    pub(crate) vault: Option<&'a Vault>,
    /// Since when every configuration that exists has trusted exactly whom the vault says; `None` while one does not.
    pub(crate) registered: Option<Timestamp>,
    /// What is shown.
    pub(crate) shown: Option<&'a Shown>,
}

/// A certificate that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The certificate, PEM.
    certificate: String,
    /// The authority that signed it.
    pub(crate) authority: Certificate,
}

impl Shown {
    /// The serving certificate of a vault.
    pub(crate) fn of(vault: &Vault) -> Self {
        Self {
            certificate: vault.serving.certificate_pem.clone(),
            authority: vault.signer.certificate().clone(),
        }
    }
}

/// What to do at `now`.
pub(crate) fn plan(sight: Sight<'_>, terms: &Terms, now: Timestamp) -> Step {
    let Some(vault) = sight.vault else { return Step::Found };
    let settled = sight.registered.map(|since| later(since, settle(terms)));
    let is_settled = settled.is_some_and(|at| at <= now);
    if vault.signer.certificate().not_after <= now {
        let lives = vault.successor.as_ref().is_some_and(|next| next.certificate().not_after > now);
        // Nobody could be served by the old one any more, so there is nothing to wait for.
        return if lives { Step::Succeed } else { Step::Found };
    }
    if !vault.is_good(terms, now) {
        return Step::Issue;
    }
    let is_unknown = |shown: &Shown| !vault.trusts(&shown.authority) && shown.authority.not_after > now;
    if sight.shown.is_some_and(is_unknown) {
        return Step::Trust;
    }
    let is_shown = sight.shown.is_some_and(|shown| shown.certificate == vault.serving.certificate_pem);
    // Who trusts the authority of what is shown trusts another certificate of the same.
    let is_trusted =
        sight.shown.is_none_or(|shown| shown.authority == *vault.signer.certificate()) || is_settled;
    if !is_shown && is_trusted {
        return Step::Show;
    }
    if sight.registered.is_none() {
        return Step::Register;
    }
    let (renew, replace) = (renewal(vault), replacement(vault));
    if vault.successor.is_some() && is_settled {
        return Step::Succeed;
    }
    if vault.successor.is_none() && replace <= now {
        return Step::Appoint;
    }
    if renew <= now {
        return Step::Issue;
    }
    let former = vault.trusted.iter().map(|certificate| certificate.not_after);
    let former: Vec<Timestamp> = former.filter(|end| *end != vault.signer.certificate().not_after).collect();
    if former.iter().any(|end| *end <= now) {
        return Step::Forget;
    }
    let waits = vault.successor.is_some() || !is_shown;
    let replace = vault.successor.is_none().then_some(replace);
    let next = [Some(renew), replace, settled.filter(|_| waits)];
    let next = next.into_iter().flatten().chain(former).min().unwrap_or(Timestamp::MAX);
    Step::Rest(next.min(now.saturating_add(REST_MAX).unwrap_or(Timestamp::MAX)))
}

/// When the serving certificate is renewed: after two thirds of its life, so that a third is left for whatever is in the
/// way.
fn renewal(vault: &Vault) -> Timestamp {
    two_thirds(vault.serving.issued, vault.serving.not_after)
}

fn replacement(vault: &Vault) -> Timestamp {
    let certificate = vault.signer.certificate();
    two_thirds(certificate.issued, certificate.not_after)
}

fn two_thirds(from: Timestamp, to: Timestamp) -> Timestamp {
    let life_ms = to.as_millisecond().saturating_sub(from.as_millisecond()).max(0);
    Timestamp::from_millisecond(from.as_millisecond().saturating_add(life_ms / 3 * 2)).unwrap_or(to)
}

/// How long API servers get to hear of a change.
fn settle(terms: &Terms) -> Duration {
    SETTLE_MAX.min(terms.life / 4)
}

fn later(since: Timestamp, by: Duration) -> Timestamp {
    since.saturating_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 60 * 60;

    fn terms() -> Terms {
        Terms { names: vec!["hook.ns.svc".to_owned()], life: Duration::from_hours(90 * 24) }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// A server, a Secret and replicas, driven by nothing but the plan.
    struct Play {
        terms: Terms,
        vault: Option<Vault>,
        /// Whom the configurations have trusted, since when.
        bundles: Vec<(Timestamp, Vec<Certificate>)>,
        replicas: Vec<Replica>,
        now: Timestamp,
    }

    #[derive(Default)]
    struct Replica {
        shown: Option<Shown>,
        /// Since when it has seen this registered.
        seen: Option<(Vec<Certificate>, Timestamp)>,
    }

    impl Play {
        fn new() -> Self {
            Self::of(1, terms())
        }

        fn of(replicas: usize, terms: Terms) -> Self {
            let replicas = (0..replicas).map(|_| Replica::default()).collect();
            Self { terms, vault: None, bundles: Vec::new(), replicas, now: at(0) }
        }

        fn registered(&self) -> &[Certificate] {
            self.bundles.last().map_or(&[], |(_, bundle)| bundle)
        }

        /// What a replica does next.
        fn next_of(&mut self, who: usize) -> Step {
            let held = self.vault.as_ref().map(|vault| vault.trusted.clone());
            let held = held.filter(|held| held == self.registered());
            let replica = &mut self.replicas[who];
            let before = replica.seen.take();
            replica.seen =
                held.map(|held| before.filter(|(seen, _)| *seen == held).unwrap_or((held, self.now)));
            let registered = replica.seen.as_ref().map(|(_, since)| *since);
            let sight = Sight { vault: self.vault.as_ref(), registered, shown: replica.shown.as_ref() };
            plan(sight, &self.terms, self.now)
        }

        fn next(&mut self) -> Step {
            self.next_of(0)
        }

        fn take_as(&mut self, who: usize, step: Step) {
            let (terms, now) = (&self.terms, self.now);
            let shown = &mut self.replicas[who].shown;
            let vault = self.vault.take();
            self.vault = match (step, vault) {
                (Step::Found, _) => {
                    let registered = self.bundles.last().into_iter().flat_map(|(_, bundle)| bundle.clone());
                    let former: Vec<Certificate> =
                        shown.iter().map(|shown| shown.authority.clone()).chain(registered).collect();
                    Some(Vault::found(terms, &former, now).unwrap())
                }
                (Step::Issue, vault) => Some(vault.unwrap().reissued(terms, now).unwrap()),
                (Step::Trust, vault) => Some(vault.unwrap().trusting(&shown.as_ref().unwrap().authority)),
                (Step::Appoint, vault) => Some(vault.unwrap().with_successor(terms, now).unwrap()),
                (Step::Succeed, vault) => Some(vault.unwrap().succeeded(terms, now).unwrap()),
                (Step::Forget, vault) => Some(vault.unwrap().cleared(now)),
                (Step::Show, vault) => {
                    *shown = vault.as_ref().map(Shown::of);
                    vault
                }
                (Step::Register, vault) => {
                    self.bundles.extend(vault.as_ref().map(|vault| (now, vault.trusted.clone())));
                    vault
                }
                (Step::Rest(_), vault) => vault,
            };
        }

        fn take(&mut self, step: Step) {
            self.take_as(0, step);
        }

        /// A handshake with any replica works, for API servers that heard of the last change at once and for those that
        /// take as long as they may.
        fn check(&self, after: &str) {
            let late = self.now.checked_sub(settle(&self.terms)).unwrap();
            let ends = self.bundles.iter().skip(1).map(|(since, _)| *since).chain([Timestamp::MAX]);
            let in_force = self.bundles.iter().zip(ends).filter(|(_, end)| *end > late);
            let in_force: Vec<&Vec<Certificate>> = in_force.map(|((_, bundle), _)| bundle).collect();
            for (who, replica) in self.replicas.iter().enumerate() {
                let Some(shown) = &replica.shown else { continue };
                let path = std::path::Path::new("shown");
                let ends = Certificate::read_all(&shown.certificate, path).unwrap()[0].not_after;
                assert!(ends > self.now, "{who} shows what has ended, after {after} at {}", self.now);
                for bundle in &in_force {
                    let is_trusted = bundle.iter().any(|one| one.der == shown.authority.der);
                    assert!(is_trusted, "{who} is not trusted after {after} at {}", self.now);
                }
            }
        }
    }

    fn until_rest(play: &mut Play) -> Vec<Step> {
        let mut steps = Vec::new();
        loop {
            let step = play.next();
            if matches!(step, Step::Rest(_)) {
                return steps;
            }
            play.take(step);
            steps.push(step);
            assert!(steps.len() < 10, "{steps:?}");
        }
    }

    /// Sixteen lives of serving certificates, with a second replica that is always twenty seconds behind. The Secret is
    /// lost after each of these steps.
    fn play_lives(mut losses: Vec<Step>) {
        const LIVES: i64 = 16;
        let life = Duration::from_hours(90);
        let mut play = Play::of(2, Terms { life, ..terms() });
        let mut shown = 0;
        while play.now < later(at(0), life * u32::try_from(LIVES).unwrap()) {
            let mut rest = Timestamp::MAX;
            for who in [0, 1] {
                rest = loop {
                    let step = play.next_of(who);
                    if let Step::Rest(until) = step {
                        assert!(until > play.now, "a rest that has passed would turn for ever");
                        break rest.min(until);
                    }
                    shown += i64::from(step == Step::Show);
                    play.take_as(who, step);
                    play.check(&format!("{step:?}"));
                    // The first life is left in peace.
                    if play.now > later(at(0), life)
                        && let Some(lost) = losses.iter().position(|loss| *loss == step)
                    {
                        losses.swap_remove(lost);
                        play.vault = None;
                    }
                };
                play.now = later(play.now, Duration::from_secs(20));
                play.check("a while");
            }
            play.now = play.now.max(rest);
            play.check("a rest");
        }
        assert_eq!(losses, [], "every loss was played");
        assert!(shown > LIVES * 2, "{shown}");
    }

    #[test]
    fn from_nothing_a_certificate_is_made_shown_and_registered() {
        let mut play = Play::new();
        assert_eq!(until_rest(&mut play), [Step::Found, Step::Show, Step::Register]);
    }

    #[test]
    fn a_serving_certificate_is_renewed_after_two_thirds_of_its_life() {
        let mut play = Play::new();
        until_rest(&mut play);
        play.now = at(60 * DAY - 1);
        assert!(matches!(play.next(), Step::Rest(_)));
        play.now = at(60 * DAY);
        assert_eq!(until_rest(&mut play), [Step::Issue, Step::Show]);
    }

    #[test]
    fn a_successor_signs_only_when_everybody_has_had_time_to_trust_it() {
        let mut play = Play::new();
        until_rest(&mut play);
        play.now = at(240 * DAY - 1);
        until_rest(&mut play);
        play.now = at(240 * DAY);
        assert_eq!(until_rest(&mut play), [Step::Appoint, Step::Register]);
        play.now = at(240 * DAY + 29);
        assert!(matches!(play.next(), Step::Rest(until) if until == at(240 * DAY + 30)));
        play.now = at(240 * DAY + 30);
        assert_eq!(until_rest(&mut play), [Step::Succeed, Step::Show]);
        play.now = at(360 * DAY);
        assert!(until_rest(&mut play).contains(&Step::Forget));
        assert_eq!(play.vault.unwrap().trusted.len(), 1);
    }

    #[test]
    fn for_many_lives_every_handshake_works() {
        play_lives(Vec::new());
    }

    #[test]
    fn whenever_the_secret_is_lost_every_handshake_works() {
        let steps = [Step::Issue, Step::Show, Step::Register, Step::Appoint, Step::Succeed, Step::Forget];
        for step in steps {
            // And once more, before anybody was told of what was made anew.
            play_lives(vec![step, Step::Found]);
        }
        play_lives(steps.to_vec());
    }

    #[test]
    fn a_replica_does_not_show_what_is_not_trusted_yet() {
        let mut play = Play::new();
        until_rest(&mut play);
        let shown = play.replicas[0].shown.clone();
        // The Secret was lost, and another replica made a new one.
        let former = play.registered().to_vec();
        play.vault = Some(Vault::found(&terms(), &former, play.now).unwrap());
        assert_eq!(play.next(), Step::Register);
        play.take(Step::Register);
        assert!(matches!(play.next(), Step::Rest(_)));
        assert!(play.registered().contains(&shown.unwrap().authority));
        play.now = at(30);
        assert_eq!(play.next(), Step::Show);
    }

    #[test]
    fn what_a_replica_shows_is_trusted_by_whoever_made_the_secret_anew() {
        let mut play = Play::new();
        until_rest(&mut play);
        play.vault = Some(Vault::found(&terms(), &[], play.now).unwrap());
        assert_eq!(until_rest(&mut play), [Step::Trust, Step::Register]);
        play.check("another's founding");
    }

    #[test]
    fn a_new_vault_trusts_no_more_than_replicas_could_show_and_nobody_who_has_ended() {
        let founded = |second| Vault::found(&terms(), &[], at(second)).unwrap();
        let mut former: Vec<Certificate> =
            (0..20).map(|second| founded(second).signer.certificate().clone()).collect();
        former.push(former[0].clone());
        assert_eq!(Vault::found(&terms(), &former, at(30)).unwrap().trusted.len(), 17);
        assert_eq!(Vault::found(&terms(), &former, at(360 * DAY + 60)).unwrap().trusted.len(), 1);
    }

    #[test]
    fn another_certificate_of_the_same_authority_is_shown_at_once() {
        let mut play = Play::new();
        until_rest(&mut play);
        play.take(Step::Issue);
        assert_eq!(play.next(), Step::Show);
    }

    #[test]
    fn after_a_long_sleep_everything_is_made_anew() {
        let mut play = Play::new();
        until_rest(&mut play);
        play.now = at(100 * DAY);
        assert_eq!(play.next(), Step::Issue);
        play.now = at(1_000 * DAY);
        assert_eq!(play.next(), Step::Found);
    }

    #[test]
    fn a_webhook_of_another_name_gets_a_certificate_for_it() {
        let vault = Vault::found(&terms(), &[], at(0)).unwrap();
        let other = Terms { names: vec!["other.ns.svc".to_owned()], ..terms() };
        let sight = Sight { vault: Some(&vault), registered: None, shown: None };
        assert_eq!(plan(sight, &other, at(0)), Step::Issue);
    }

    #[test]
    fn what_is_kept_comes_back_the_same_and_half_of_it_is_nothing() {
        let vault = Vault::found(&terms(), &[], at(0)).unwrap().with_successor(&terms(), at(0)).unwrap();
        let data = vault.data();
        let read = Vault::read(&data).unwrap().unwrap();
        assert_eq!(read.data(), data);
        assert!(Vault::read(&std::collections::BTreeMap::new()).unwrap().is_none());
        let broken = |key: &str| {
            let mut broken = data.clone();
            broken.insert(key.to_owned(), k8s_openapi::ByteString(b"nonsense".to_vec()));
            Vault::read(&broken).map(Option::unwrap)
        };
        assert!(broken("tls.key").is_err() && broken("signer.pem").is_err());
        // A successor has signed nothing yet, and whom to trust at the least is known without the bundle.
        let without = broken("successor.pem").unwrap();
        assert!(without.successor.is_none() && without.trusts(vault.signer.certificate()));
        let without = broken("ca.crt").unwrap();
        assert!(without.trusts(vault.signer.certificate()) && without.trusted.len() == 2);
        let told = format!("{vault:?}");
        assert!(!told.contains("PRIVATE"), "{told}");
    }

    #[test]
    fn what_somebody_else_keeps_in_a_secret_is_never_replaced() {
        let held = |pairs: &[(&str, &str)]| -> std::collections::BTreeMap<String, k8s_openapi::ByteString> {
            let bytes = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
            pairs.iter().map(|(key, text)| ((*key).to_owned(), bytes(text))).collect()
        };
        assert!(Vault::is_foreign(&held(&[("tls.crt", "a"), ("tls.key", "b")])));
        assert!(Vault::is_foreign(&held(&[("password", "a")])));
        assert!(
            !Vault::is_foreign(&held(&[])) && !Vault::is_foreign(&held(&[("tls.crt", ""), ("tls.key", "")]))
        );
        assert!(!Vault::is_foreign(&held(&[("signer.pem", "torn")])));
        let vault = Vault::found(&terms(), &[], at(0)).unwrap();
        let kept = vault.data_beside(held(&[("note", "mine"), ("successor.pem", "old"), ("tls.crt", "old")]));
        assert_eq!(kept["note"].0, b"mine");
        assert_eq!(kept.len(), vault.data().len() + 1);
        assert_eq!(kept["tls.crt"], vault.data()["tls.crt"]);
    }
}
