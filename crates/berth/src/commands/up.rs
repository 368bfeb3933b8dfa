//! `berth up`: a hub and its controllers in one process.
//!
//! Owns the order in which they come up, and the words for somebody who has just started it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use berth_admission::TimeAdded;
use berth_api::ManagedCluster;
use berth_control::lead::HOME;
use berth_control::{ControllerList, Pace, inquiries};
use berth_hub::Admission;
use clap::Args;
use kube::Client;
use kube::api::{Api, ListParams};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::hub::{Place, ServeArgs, Station, on_threads};
use crate::admission::FleetAdmission;
use crate::console::{Console, Outcome};
use crate::demo::{self, Simulator};
use crate::fleet::controllers::{Controllers, Listeners, identity};
use crate::fleet::nodes::NodeArgs;
use crate::fleet::settings::{Bind, ControllersArgs, DebugArgs};
use crate::fleet::{definitions, rights};
use crate::service::{LogArgs, Signals, start_log};

/// Arguments of `berth up`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth up --demo\n  berth up --data ./fleet --listen 127.0.0.1:0\n  KUBECONFIG=./fleet/kubeconfig kubectl get placements -A\n  berth up --demo --in-memory --kubeconfig ./kubeconfig\n  berth up --controllers='*,-cluster-taint-controller' --metrics-bind 127.0.0.1:8080\n  berth up --controllers='*,taint-eviction-controller' --eviction-rate 20\n  berth up --demo --debug-bind 127.0.0.1:9443"
)]
pub struct UpArgs {
    /// The hub.
    #[command(flatten)]
    pub serve: ServeArgs,

    /// Which controllers.
    #[command(flatten)]
    pub controllers: ControllersArgs,

    /// Where to serve /healthz, /readyz and /metrics of the controllers; 0 for nowhere [default: 0].
    #[arg(long, value_name = "ADDR")]
    pub metrics_bind: Option<Bind>,

    /// Who may ask, and where.
    #[command(flatten)]
    pub debug: DebugArgs,

    /// Let clients say since when a taint counts, as on a hub without upstream's admission.
    #[arg(long)]
    pub allow_time_added: bool,

    /// Have an example fleet: eight clusters with simulated agents, and three Placements.
    ///
    /// What is missing of it is created, what is there is left alone. `berth demo fail CLUSTER` silences an agent.
    #[arg(long)]
    pub demo: bool,

    /// How much to tell.
    #[command(flatten)]
    pub log: LogArgs,

    /// What is said of nodes, last because these flags stand under headings of their own.
    #[command(flatten)]
    pub nodes: NodeArgs,
}

/// Runs a hub and its controllers until a signal ends them.
pub fn run(args: UpArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let list = args.controllers.controllers.clone().unwrap_or_default();
    let nodes = match args.nodes.settle() {
        Ok(nodes) => nodes,
        Err(missing) => {
            writeln!(console.err, "berth: {}", missing.in_flags())?;
            return Ok(Outcome::Misused);
        }
    };
    start_log(&args.log);
    if let Some(idle) = args.nodes.idle(&list) {
        tracing::warn!("{idle}");
    }
    on_threads(async {
        let UpArgs { serve, allow_time_added, metrics_bind, debug, demo, .. } = args;
        let mut signals = Signals::listen()?;
        let listeners = Listeners::bind(metrics_bind.unwrap_or_default(), &debug).await?;
        let inquiries = inquiries();
        let time_added = if allow_time_added { TimeAdded::Client } else { TimeAdded::Server };
        let admission =
            FleetAdmission { time_added, inquirer: inquiries.0.clone(), controllers: rights::user().name };
        let admission: Vec<Arc<dyn Admission>> = vec![Arc::new(admission)];
        let station = Station::open(serve, admission, &mut signals, console).await?;
        let crew = async |place: &Place, stop: CancellationToken, console: &mut Console<'_>| {
            let controllers = Controllers {
                client: place.hub.client_as(rights::user()),
                server: "this hub".to_owned(),
                list,
                // One process works on a data directory, and it has the only controllers: nobody else is there to lead.
                election: None,
                identity: identity(),
                home: HOME.to_owned(),
                nodes,
                listeners,
                inquiries,
                // The hub works in the same threads.
                pace: Pace::default(),
            };
            work(place, controllers, demo, stop, console).await
        };
        Box::pin(station.run(crew, &mut signals, console)).await
    })
}

async fn work(
    place: &Place,
    controllers: Controllers,
    demo: bool,
    stop: CancellationToken,
    console: &mut Console<'_>,
) -> anyhow::Result<()> {
    let admin = place.hub.client();
    let prepared = prepare(&admin, &controllers.list, controllers.is_debugged(), demo);
    let Some(prepared) = stop.run_until_cancelled(prepared).await else {
        return Ok(());
    };
    prepared?;
    let _agents = demo.then(|| {
        let agents = Simulator::new(admin.clone()).run(stop.clone());
        AbortOnDropHandle::new(tokio::spawn(agents))
    });
    controllers
        .run(stop, async |line| {
            writeln!(console.out, "{line}")?;
            if demo {
                guide_through_demo(&place.kubeconfig, console)?;
            } else if is_empty(&admin).await? {
                guide(&place.kubeconfig, console)?;
            }
            Ok(console.out.flush()?)
        })
        .await
}

/// Everything the controllers find when they start.
async fn prepare(
    admin: &Client,
    controllers: &ControllerList,
    is_debugged: bool,
    demo: bool,
) -> anyhow::Result<()> {
    definitions::apply(admin).await?;
    rights::grant(admin, controllers, is_debugged).await?;
    if demo {
        demo::load(admin).await?;
        // Before the controllers look: leases from before a stop have run out, and that is nobody's failure.
        Simulator::new(admin.clone()).begin().await.context("the agents of the demo cannot begin")?;
    }
    Ok(())
}

/// Whether nobody has begun to use the hub.
async fn is_empty(admin: &Client) -> anyhow::Result<bool> {
    let clusters: Api<ManagedCluster> = Api::all(admin.clone());
    Ok(clusters.list_metadata(&ListParams::default().limit(1)).await?.items.is_empty())
}

fn guide_through_demo(kubeconfig: &Path, console: &mut Console<'_>) -> std::io::Result<()> {
    let (namespace, kubeconfig) = (demo::NAMESPACE, from_anywhere(kubeconfig));
    write!(
        console.out,
        "
Eight clusters with simulated agents, and three Placements. In another terminal:
  export KUBECONFIG={}
  kubectl get managedclusters
  kubectl get placementdecisions -n {namespace} -w -o 'custom-columns=NAME:.metadata.name,CLUSTERS:.status.decisions[*].clusterName'
and in a third, with the same KUBECONFIG, fail a cluster that is chosen:
  berth demo fail fra-1      # web leaves it within seconds, ledger waits 20 s more
  berth demo recover fra-1
More: docs/fleet.md, berth demo --help
",
        shell_word(&kubeconfig)
    )
}

fn guide(kubeconfig: &Path, console: &mut Console<'_>) -> std::io::Result<()> {
    let kubeconfig = from_anywhere(kubeconfig);
    write!(
        console.out,
        "
There are no clusters yet. In another terminal:
  export KUBECONFIG={}
  kubectl create -f your-fleet/                    # ManagedClusters, sets, bindings, Placements
  kubectl get managedclusters,placements,placementdecisions -A
To see a fleet at work first, stop this and run `berth up --demo`.
More: docs/fleet.md, docs/hub.md, berth explain --help
",
        shell_word(&kubeconfig)
    )
}

/// A path for another terminal, which may be in another folder.
fn from_anywhere(path: &Path) -> String {
    // Where this folder is gone, the path is as good as it was given.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// A text as one word of a shell's line.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_good_in_any_folder() {
        assert_eq!(from_anywhere(Path::new("/data/kubeconfig")), "/data/kubeconfig");
        let relative = from_anywhere(Path::new("./fleet/kubeconfig"));
        assert!(Path::new(&relative).is_absolute() && relative.ends_with("/fleet/kubeconfig"), "{relative}");
    }

    #[test]
    fn a_path_is_one_word_to_a_shell() {
        assert_eq!(
            shell_word("/home/a/.local/share/berth/kubeconfig"),
            "/home/a/.local/share/berth/kubeconfig"
        );
        assert_eq!(shell_word("/my data/it's"), r"'/my data/it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
