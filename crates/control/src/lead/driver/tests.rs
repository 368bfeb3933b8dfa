//! The driver and a server with troubles, in virtual time.

use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::*;
use crate::lead::fixtures::{Server, Trouble};
use crate::names::ControllerName;

const SECOND: Duration = Duration::from_secs(1);

struct Candidate {
    fence: Fence,
    stop: CancellationToken,
    task: JoinHandle<()>,
    clock: Clock,
}

fn candidate(server: &Server, name: &str) -> Candidate {
    candidate_with(server, name, &[])
}

fn candidate_with(server: &Server, name: &str, controllers: &[ControllerName]) -> Candidate {
    let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
    let election =
        LeaderElection { controllers: controllers.to_vec(), ..LeaderElection::new(name.to_owned()) };
    let (driver, fence) = Driver::new(server.client(), election, clock.clone()).unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(driver.run(stop.clone()));
    Candidate { fence, stop, task, clock }
}

impl Candidate {
    /// How long it takes until this candidate leads (or does not any more).
    async fn until(&mut self, leads: bool) -> Duration {
        let begun = Instant::now();
        let change = async {
            while self.fence.holds() != leads {
                self.fence.changed().await;
            }
        };
        timeout(60 * SECOND, change).await.expect("it changes within a minute");
        begun.elapsed()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_candidate_leads_at_once_and_for_as_long_as_it_runs() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    assert!(one.until(true).await < SECOND);
    let mut two = candidate(&server, "two");
    for _ in 0..100 {
        sleep(SECOND).await;
        assert!(one.fence.holds() && !two.fence.holds());
    }
    assert_eq!(two.fence.leader().as_deref(), Some("one"));
    assert_eq!(server.spec()["leaseTransitions"], 0);
    one.stop().await;
    assert!(two.until(true).await < SECOND, "a lease that is let go is taken at once");
    assert_eq!(server.spec()["leaseTransitions"], 1);
    assert_eq!(server.spec()["holderIdentity"], "two");
    two.stop().await;
    assert_eq!(server.spec()["holderIdentity"], "");
    assert_eq!(server.spec()["leaseDurationSeconds"], 1);
}

#[tokio::test(start_paused = true)]
async fn the_lease_tells_what_its_holder_does() {
    let server = Server::new();
    let told = || server.annotations()[annotation::LEADING_CONTROLLERS].clone();
    let both = [ControllerName::NodeLifecycle, ControllerName::TaintEviction];
    let mut one = candidate_with(&server, "one", &both);
    one.until(true).await;
    assert_eq!(told(), "node-lifecycle-controller,taint-eviction-controller");
    one.stop().await;
    let mut two = candidate_with(&server, "two", &both[..1]);
    two.until(true).await;
    assert_eq!(told(), "node-lifecycle-controller");
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_namespace_of_the_lease_is_made_where_it_is_missing_and_only_then() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    one.stop().await;
    assert!(!server.log().contains(&"make namespace"));

    let server = Server::new();
    server.without_namespace(true);
    let mut one = candidate(&server, "one");
    assert!(one.until(true).await < SECOND);
    one.stop().await;

    // Whoever may not make it waits until somebody has.
    let server = Server::new();
    server.without_namespace(false);
    let mut one = candidate(&server, "one");
    sleep(20 * SECOND).await;
    assert!(!one.fence.holds());
    server.without_namespace(true);
    one.until(true).await;
    one.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_may_not_watch_looks_from_time_to_time() {
    let server = Server::new();
    server.forbid_watching();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    let mut two = candidate(&server, "two");
    sleep(20 * SECOND).await;
    one.stop().await;
    assert!(two.until(true).await < 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_takes_over_fifteen_seconds_after_the_last_renewal() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    let mut two = candidate(&server, "two");
    sleep(21 * SECOND).await;
    one.task.abort();
    let took = two.until(true).await;
    assert!((12 * SECOND..=15 * SECOND).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_proxy_says_that_has_lost_the_way_tells_nothing_of_the_lease() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    let two = candidate(&server, "two");
    sleep(SECOND).await;
    server.set(Trouble::Refuses(404));
    server.log();
    sleep(5 * SECOND).await;
    let log = server.log();
    assert!(log.contains(&"get") || log.contains(&"update"), "{log:?}");
    assert!(!log.contains(&"create") && !log.contains(&"make namespace"), "{log:?}");
    assert!(one.fence.holds() && !two.fence.holds());
    server.set(Trouble::None);
    sleep(60 * SECOND).await;
    assert!(one.fence.holds() && !two.fence.holds(), "its holder renews it as if nothing had been");
    assert_eq!(server.spec()["leaseTransitions"], 0);
    two.stop().await;
    one.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_cut_off_from_the_server_stops_five_seconds_before_another_begins() {
    for trouble in [Trouble::Silent, Trouble::Refuses(503), Trouble::Refuses(403), Trouble::Refuses(404)] {
        let (near, far) = (Server::new(), Server::new());
        let mut one = candidate(&near, "one");
        one.until(true).await;
        sleep(9 * SECOND).await;
        near.set(trouble);
        let took = one.until(false).await;
        assert!((7 * SECOND..=10 * SECOND).contains(&took), "{trouble:?}: {took:?}");
        assert!(far.log().is_empty());
        near.set(Trouble::None);
        assert!(one.until(true).await < 10 * SECOND, "and leads again when nobody took it, {trouble:?}");
        assert_eq!(near.spec()["leaseTransitions"], 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_for_less_than_the_deadline_costs_nothing() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    let term = one.fence.term();
    for trouble in [Trouble::Silent, Trouble::Mute, Trouble::Refuses(500)] {
        server.set(trouble);
        sleep(4 * SECOND).await;
        server.set(Trouble::None);
        sleep(10 * SECOND).await;
        assert_eq!(one.fence.term(), term, "{trouble:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_does_not_act_before_it_has_renewed() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    let term = one.fence.term();
    one.clock.skip(11 * SECOND);
    assert!(!one.fence.holds());
    assert!(one.until(true).await <= 3 * SECOND);
    assert!(one.fence.term() > term);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_the_elections_in_a_lease_is_kept() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    let term = one.fence.term();
    server.edit(|lease| lease["metadata"]["labels"] = json!({"team": "fleet"}));
    sleep(10 * SECOND).await;
    assert_eq!(one.fence.term(), term);
    assert_eq!(server.lease()["metadata"]["labels"], json!({"team": "fleet"}));
}

#[tokio::test(start_paused = true)]
async fn a_person_can_move_the_lead() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    let mut two = candidate(&server, "two");
    sleep(SECOND).await;
    server.edit(|lease| lease["spec"]["holderIdentity"] = json!(""));
    assert!(two.until(true).await < SECOND);
    one.until(false).await;
    sleep(60 * SECOND).await;
    assert!(two.fence.holds() && !one.fence.holds());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_anew() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    server.delete();
    sleep(3 * SECOND).await;
    assert!(one.fence.holds());
    assert_eq!(server.spec()["holderIdentity"], "one");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_asks_about_as_often_as_client_go() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    server.log();
    sleep(60 * SECOND).await;
    let log = server.log();
    assert!(log.iter().all(|request| *request == "update") && (28..=30).contains(&log.len()), "{log:?}");
    let two = candidate(&server, "two");
    sleep(60 * SECOND).await;
    let log = server.log();
    let looks = log.iter().filter(|request| **request == "get").count();
    assert!((28..=34).contains(&looks), "one look for each renewal: {log:?}");
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_without_a_server_does_not_wait_for_ever() {
    for trouble in [Trouble::Silent, Trouble::Mute] {
        let server = Server::new();
        let mut one = candidate(&server, "one");
        one.until(true).await;
        server.set(trouble);
        let fence = one.fence.clone();
        let begun = Instant::now();
        one.stop().await;
        assert!(!fence.holds());
        assert!(begun.elapsed() <= 2 * RELEASE_PATIENCE, "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_just_won_is_let_go_when_stopped() {
    let server = Server::new();
    let one = candidate(&server, "one");
    // The lookup is answered, the creation is under way.
    sleep(Duration::from_millis(7)).await;
    assert_eq!(server.log(), ["get"]);
    one.stop().await;
    assert_eq!(server.spec()["holderIdentity"], "");
}

#[tokio::test]
async fn an_election_that_would_not_be_safe_is_not_held() {
    let election = LeaderElection { renew_deadline: 20 * SECOND, ..LeaderElection::new("one".to_owned()) };
    let refused = Driver::new(Server::new().client(), election, Clock::system()).unwrap_err();
    assert_eq!(refused, ElectionError::LeaseNotBeyondDeadline);
}

#[test]
fn jitter_is_a_part_of_one() {
    assert!((0..1000).map(|_| jitter()).all(|jitter| (0.0..1.0).contains(&jitter)));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_dated_past_the_calendar_is_held_and_taken_over_like_any_other() {
    let server = Server::new();
    let mut one = candidate(&server, "one");
    one.until(true).await;
    let never = json!("9999-12-31T23:59:59.000000Z");
    server.edit(|lease| lease["spec"]["renewTime"] = never.clone());
    for _ in 0..60 {
        sleep(SECOND).await;
        assert!(one.fence.holds(), "its holder goes on");
    }
    one.task.abort();
    server.edit(|lease| {
        lease["spec"]["acquireTime"] = never.clone();
        lease["spec"]["renewTime"] = never.clone();
    });
    let mut two = candidate(&server, "two");
    assert!(two.until(true).await < 20 * SECOND, "who is dead is followed");
    two.stop().await;
}
