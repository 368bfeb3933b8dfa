//! Stories that tell of a change, performed: the folder is applied with kubectl, the controllers run, and what happens to the
//! clusters happens by kubectl as well. What time does is brought near by when taints say they were added.

use berth_bed::Companion;
use berth_tests::waiting::until;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    cluster::{says, taint, whole},
    deadlines::{before, punctual},
    examples::{Standing, bring, can_be_told, live, printed, shelf, wipe},
    ground::{ALONE, QUIET, Turn, grounds},
    handle::PATIENCE,
    health::{AVAILABLE, UNREACHABLE},
};

/// How long before its end a grace period is joined at first: long enough for controllers to start. A busy machine tries again
/// with more.
const LEFT: SignedDuration = SignedDuration::from_secs(8);

/// A story that is being performed.
struct Play<'t, 'b> {
    turn: &'t Turn<'b>,
    /// The placement that it is about, as namespace and name.
    hero: &'static str,
}

impl<'t, 'b> Play<'t, 'b> {
    /// Applies a story's folder, but for some of its files.
    async fn of(turn: &'t Turn<'b>, folder: &str, without: &[&str], hero: &'static str) -> Self {
        bring(turn, &shelf().join(folder), without).await.unwrap_or_else(|why| panic!("{folder}: {why}"));
        Self { turn, hero }
    }

    async fn kubectl(&self, arguments: &[&str]) -> String {
        let mut command = self.turn.bed.kubectl().unwrap();
        command.args(arguments);
        printed(command).await
    }

    async fn controllers(&self, flags: &[&str]) -> Companion {
        self.turn.run("controllers", flags).await.unwrap()
    }

    /// Replaces the taints of a cluster.
    async fn taint(&self, cluster: &str, taints: &[Value]) {
        let patch = json!({"spec": {"taints": taints}}).to_string();
        self.kubectl(&["patch", "managedcluster", cluster, "--type=merge", "--patch", &patch]).await;
    }

    /// Lets a cluster's agent say how it is.
    async fn is_available(&self, cluster: &str, status: &str) {
        let patch = json!({"status": {"conditions": [says(AVAILABLE, status, "Story")]}}).to_string();
        let patched =
            ["patch", "managedcluster", cluster, "--subresource=status", "--type=merge", "--patch", &patch];
        self.kubectl(&patched).await;
    }

    /// Waits until the placement has exactly these clusters, and says whether these are all it wants.
    async fn comes_to(&self, wanted: &[&str], satisfied: &str) {
        let what = format!("{} on {wanted:?}, {satisfied}", self.hero);
        until(&what, PATIENCE, async || {
            let there: Option<Standing> = live(&self.turn.fleet.caller).await.remove(self.hero);
            let is_so = |(clusters, reason, _): &Standing| clusters == wanted && *reason == satisfied;
            if there.as_ref().is_some_and(is_so) { Ok(()) } else { Err(format!("{there:?}")) }
        })
        .await;
    }

    async fn is_on(&self, wanted: &[&str]) {
        self.comes_to(wanted, "AllDecisionsScheduled").await;
    }

    /// The placement stays where it is until then, says so, and is elsewhere from then on; how much later. Nothing where the time
    /// came before all was seen that comes before it.
    async fn moves_at(&self, deadline: Timestamp, from: &[&str], to: &[&str]) -> Option<SignedDuration> {
        before(deadline, self.is_on(from)).await?;
        if self.turn.fleet.ground.is_ours() {
            let (namespace, name) = self.hero.split_once('/').unwrap();
            let path = [
                "get",
                "placement",
                "-n",
                namespace,
                name,
                "--output=jsonpath={.status.nextTransition.time}",
            ];
            assert_eq!(before(deadline, self.kubectl(&path)).await?, whole(deadline));
        }
        self.is_on(to).await;
        let moved = Timestamp::now();
        assert!(moved >= deadline, "moved at {moved}, before {deadline}");
        Some(moved.duration_since(deadline))
    }
}

/// When a taint was added that is tolerated for so long and has little of it left, and when that ends. A later try has more left.
fn nearly_over(tolerated: SignedDuration, number: usize) -> (Timestamp, Timestamp) {
    let end = Timestamp::from_second((Timestamp::now() + LEFT * number as i32).as_second()).unwrap();
    (end - tolerated, end)
}

grounds! {
    /// The till moves the moment its cluster stops answering, and again, until there is nowhere to go.
    turn async fn the_till_moves_at_once(turn: &mut Turn<'_>) {
        if !can_be_told(turn) {
            return;
        }
        let play = Play::of(turn, "taint-02-moves-at-once", &[], "shop/till").await;
        // All controllers: the taint is the hub's to put.
        let controllers = play.controllers(ALONE).await;
        play.is_on(&["madrid"]).await;
        play.is_available("madrid", "Unknown").await;
        play.is_on(&["lisbon"]).await;
        play.is_available("lisbon", "False").await;
        play.is_on(&["porto"]).await;
        play.kubectl(&["delete", "managedcluster", "porto"]).await;
        play.comes_to(&[], "NoManagedClusterMatched").await;
        play.is_available("madrid", "True").await;
        play.is_on(&["madrid"]).await;
        drop(controllers);
        wipe(&turn.fleet.caller).await;
    }

    /// The timetable bears an unreachable cluster until the very second that its grace is over.
    turn async fn the_timetable_has_its_time_of_grace(turn: &mut Turn<'_>) {
        if !can_be_told(turn) {
            return;
        }
        punctual(async |number| {
            let play = Play::of(turn, "taint-04-tolerated-time", &[], "shop/timetable").await;
            let (added, end) = nearly_over(SignedDuration::from_secs(300), number);
            play.taint("dover", &[taint(UNREACHABLE, "", "NoSelect", added)]).await;
            let _controllers = play.controllers(QUIET).await;
            play.moves_at(end, &["calais", "dover"], &["calais", "ostend"]).await
        }).await;
        wipe(&turn.fleet.caller).await;
    }

    /// The inspection leaves a cluster that turns unhealthy at once, and one that is out of reach when it has waited enough.
    turn async fn the_inspection_leaves_now_or_after_ninety_seconds(turn: &mut Turn<'_>) {
        if !can_be_told(turn) {
            return;
        }
        let reserved = taint("gpu", "true", "NoSelectIfNew", Timestamp::now() - SignedDuration::from_hours(1));
        let unhealthy = || taint("unhealthy", "", "NoSelect", Timestamp::now());
        let play = Play::of(turn, "taint-example-3-1-immediate", &[], "default/inspection").await;
        play.taint("vision-1", std::slice::from_ref(&reserved)).await;
        let controllers = play.controllers(QUIET).await;
        play.is_on(&["vision-1"]).await;
        play.taint("vision-1", &[reserved.clone(), unhealthy()]).await;
        play.is_on(&["vision-2"]).await;
        play.taint("vision-2", &[reserved.clone(), unhealthy()]).await;
        play.comes_to(&[], "NoManagedClusterMatched").await;
        drop(controllers);

        punctual(async |number| {
            let play = Play::of(turn, "taint-example-3-2-after-90-seconds", &[], "default/inspection").await;
            let (added, end) = nearly_over(SignedDuration::from_secs(90), number);
            play.taint("vision-1", &[reserved.clone(), taint("unreachable", "", "NoSelect", added)]).await;
            let _controllers = play.controllers(QUIET).await;
            play.moves_at(end, &["vision-1"], &["vision-2"]).await
        }).await;
        wipe(&turn.fleet.caller).await;
    }

    /// The ledger switches to the backup when the primary falls, and back when it returns.
    turn async fn the_ledger_switches_and_returns(turn: &mut Turn<'_>) {
        if !can_be_told(turn) {
            return;
        }
        let play = Play::of(turn, "score-03-disaster-recovery", &[], "accounts/ledger").await;
        let controllers = play.controllers(ALONE).await;
        play.is_on(&["primary"]).await;
        play.is_available("primary", "False").await;
        play.is_on(&["backup"]).await;
        play.is_available("primary", "True").await;
        play.is_on(&["primary"]).await;
        drop(controllers);
        wipe(&turn.fleet.caller).await;
    }

    /// The administrator grants sets, and bindings follow; what is withdrawn is gone, and what was selected by it.
    turn async fn the_administrator_grants_and_withdraws(turn: &mut Turn<'_>) {
        if !can_be_told(turn) {
            return;
        }
        let story = "placement-scenario-2-service-account";
        // The file of bindings is for planners: here they are to follow from the rights.
        let play = Play::of(turn, story, &["bindings.yaml"], "web-team/openshift-4-18").await;
        let controllers = play.controllers(QUIET).await;
        play.is_on(&["north-ocp", "south-ocp"]).await;
        let bindings = [
            "get", "managedclustersetbindings", "-n", "web-team", "-l", "berth.dev/bound-by=rbac",
            "--output=jsonpath={.items[*].metadata.name}",
        ];
        assert_eq!(play.kubectl(&bindings).await, "north south");
        play.kubectl(&["delete", "clusterrolebinding", "bind-north-web-team"]).await;
        play.is_on(&["south-ocp"]).await;
        assert_eq!(play.kubectl(&bindings).await, "south");
        play.kubectl(&["delete", "clusterrolebinding", "bind-south-web-team"]).await;
        play.comes_to(&[], "NoManagedClusterSetBindings").await;
        assert_eq!(play.kubectl(&bindings).await, "");
        drop(controllers);
        wipe(&turn.fleet.caller).await;
    }
}
