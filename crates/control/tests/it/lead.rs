//! Who leads, on real servers and against client-go. Waits for conditions, never for time.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use berth_bed::{Bed, BedError, cache, or_skip, scenario};
use berth_control::lead::{Clock, Driver, Fence, LeaderElection};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Forever, for a server that answers in milliseconds.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long others wait for a leader that is silent.
#[derive(Clone, Copy)]
enum Term {
    /// Not for long, and long enough to be renewed on a busy machine.
    Short,
    /// For longer than any test: whoever leads within [`SOON`] after another has not waited.
    Long,
}

const SHORT: Duration = Duration::from_secs(6);
const LONG: Duration = Duration::from_mins(2);
/// Far less than any lease that is to be let go, the one of the candidate in Go among them, and time enough for a busy machine.
const SOON: Duration = Duration::from_secs(20);

fn election(namespace: &str, identity: &str, term: Term) -> LeaderElection {
    let lease_duration = match term {
        Term::Short => SHORT,
        Term::Long => LONG,
    };
    LeaderElection {
        namespace: namespace.to_owned(),
        name: "leader".to_owned(),
        lease_duration,
        renew_deadline: lease_duration * 2 / 3,
        retry_period: Duration::from_millis(300),
        ..LeaderElection::new(identity.to_owned())
    }
}

struct Candidate {
    fence: Fence,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Candidate {
    fn stand(bed: &Bed, namespace: &str, identity: &str, term: Term) -> Self {
        let (driver, fence) =
            Driver::new(bed.client(), election(namespace, identity, term), Clock::system()).unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(driver.run(stop.clone()));
        Self { fence, stop, task }
    }

    async fn until(&mut self, leads: bool) -> Duration {
        let begun = Instant::now();
        let change = async {
            while self.fence.holds() != leads {
                self.fence.changed().await;
            }
        };
        tokio::time::timeout(PATIENCE, change).await.expect("the lead changes in time");
        begun.elapsed()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

async fn spec(bed: &Bed, namespace: &str) -> LeaseSpec {
    let leases: Api<Lease> = Api::namespaced(bed.client(), namespace);
    leases.get("leader").await.unwrap().spec.unwrap()
}

/// Waits until the lease was renewed so often, asserting all the while that `fence` is closed.
async fn closed_for_renewals(bed: &Bed, namespace: &str, fence: &Fence, count: usize) {
    let (mut renewals, mut last) = (0, None);
    let begun = Instant::now();
    while renewals < count {
        assert!(!fence.holds(), "no two lead");
        assert!(begun.elapsed() < PATIENCE, "the leader renews");
        let renewed = spec(bed, namespace).await.renew_time;
        renewals += usize::from(renewed != last);
        last = renewed;
    }
}

scenario! {
    async fn one_of_two_leads_and_hands_over_when_it_stops(bed: &Bed) {
        let namespace = bed.namespace("lead").await;
        let mut one = Candidate::stand(bed, &namespace, "one", Term::Long);
        one.until(true).await;
        let mut two = Candidate::stand(bed, &namespace, "two", Term::Long);
        closed_for_renewals(bed, &namespace, &two.fence, 4).await;
        assert!(one.fence.holds());
        assert_eq!(two.fence.leader().as_deref(), Some("one"));
        one.stop().await;
        let took = two.until(true).await;
        assert!(took < SOON, "a lease that was let go need not run out: {took:?}");
        let held = spec(bed, &namespace).await;
        assert_eq!((held.holder_identity.as_deref(), held.lease_transitions), (Some("two"), Some(1)));
        assert_eq!(held.lease_duration_seconds, Some(120));
        two.stop().await;
        let left = spec(bed, &namespace).await;
        assert_eq!((left.holder_identity.as_deref(), left.lease_duration_seconds), (Some(""), Some(1)));
    }

    async fn a_leader_that_is_gone_is_replaced_when_its_lease_has_run_out(bed: &Bed) {
        let namespace = bed.namespace("lead").await;
        let mut one = Candidate::stand(bed, &namespace, "one", Term::Short);
        one.until(true).await;
        let mut two = Candidate::stand(bed, &namespace, "two", Term::Short);
        closed_for_renewals(bed, &namespace, &two.fence, 2).await;
        one.task.abort();
        let took = two.until(true).await;
        assert!((SHORT * 2 / 3..SHORT * 5 / 3).contains(&took), "{took:?}");
    }

    async fn what_others_write_on_the_lease_is_kept(bed: &Bed) {
        let namespace = bed.namespace("lead").await;
        let mut one = Candidate::stand(bed, &namespace, "one", Term::Short);
        one.until(true).await;
        let term = one.fence.term();
        let leases: Api<Lease> = Api::namespaced(bed.client(), &namespace);
        let label = json!({"metadata": {"labels": {"team": "fleet"}}});
        leases.patch("leader", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
        let renewed = spec(bed, &namespace).await.renew_time;
        while spec(bed, &namespace).await.renew_time == renewed {
            assert_eq!(one.fence.term(), term);
        }
        assert_eq!(leases.get("leader").await.unwrap().metadata.labels.unwrap()["team"], "fleet");
        one.stop().await;
    }

    async fn a_leader_whose_server_is_silent_stops_in_time_and_goes_on_after(bed: &mut Bed) {
        let namespace = bed.namespace("lead").await;
        let mut one = Candidate::stand(bed, &namespace, "one", Term::Short);
        one.until(true).await;
        let term = one.fence.term();
        bed.pause().unwrap();
        let took = one.until(false).await;
        assert!(took < SHORT, "before the lease runs out: {took:?}");
        bed.resume().unwrap();
        one.until(true).await;
        assert!(one.fence.term() > term);
        assert_eq!(spec(bed, &namespace).await.lease_transitions, Some(0));
        one.stop().await;
    }

    async fn a_candidate_on_client_go_and_ours_exclude_each_other(bed: &Bed) {
        let Some(program) = program() else { return };
        let namespace = bed.namespace("lead").await;
        let mut theirs = Theirs::stand(program, bed, &namespace, "theirs");
        theirs.says("leading");
        let mut ours = Candidate::stand(bed, &namespace, "ours", Term::Long);
        closed_for_renewals(bed, &namespace, &ours.fence, 5).await;
        assert_eq!(ours.fence.leader().as_deref(), Some("theirs"));
        theirs.resign();
        theirs.says("stopped");
        let took = ours.until(true).await;
        assert!(took < SOON, "a lease that was let go need not run out: {took:?}");
        let held = spec(bed, &namespace).await;
        assert_eq!((held.holder_identity.as_deref(), held.lease_transitions), (Some("ours"), Some(1)));

        let mut again = Theirs::stand(program, bed, &namespace, "again");
        again.says("sees ours");
        let term = ours.fence.term();
        let renewed = spec(bed, &namespace).await.renew_time;
        while spec(bed, &namespace).await.renew_time == renewed {}
        assert_eq!(ours.fence.term(), term);
        ours.stop().await;
        again.says("leading");
        assert_eq!(spec(bed, &namespace).await.lease_transitions, Some(2));
    }
}

/// A candidate written in Go.
struct Theirs {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Theirs {
    fn stand(program: &Path, bed: &Bed, namespace: &str, identity: &str) -> Self {
        let mut process = Command::new(program)
            .args(["stand", namespace, "leader", identity])
            .env("KUBECONFIG", bed.kubeconfig())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Waits until it has said this.
    fn says(&mut self, wanted: &str) {
        // It ends by itself when it waits for too long, and its output with it.
        let said = tokio::task::block_in_place(|| self.lines.any(|line| line.unwrap() == wanted));
        assert!(said, "the candidate in Go never said {wanted:?}");
    }

    /// Its candidacy ends with its input.
    fn resign(&mut self) {
        drop(self.process.stdin.take());
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program in `tests/client-go`, built once a run into the cache; nothing where there is no Go.
fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        if Command::new("go").arg("version").output().is_err() {
            let remedy = "the client-go program needs it to be built";
            return or_skip(Err(BedError::Absent { what: "Go".to_owned(), remedy }));
        }
        let program = cache().join("client-go").join("candidate");
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        let built = Command::new("go")
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/client-go"))
            .env("CGO_ENABLED", "0")
            .args(["build", "-trimpath", "-buildvcs=false", "-o"])
            .arg(&program)
            .arg(".")
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(program)
    };
    BUILT.get_or_init(build).as_deref()
}
