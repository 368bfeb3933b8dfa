//! What is to be installed, as the flags say it.

use berth_control::{ControllerList, ControllerName};
use berth_text::names::dns_label;
use clap::Args;

use super::Image;
use crate::fleet::nodes::NodeArgs;
use crate::fleet::settings::parse_controllers;
use crate::fleet::typed::Typed;

/// More replicas than anybody needs: one acts, and the others stand by.
const REPLICAS_MAX: u16 = 100;

/// What `berth install` and `berth uninstall` are about.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct InstallationArgs {
    /// The namespace of everything that has one.
    #[arg(long, value_name = "NS", default_value = "berth-system", value_parser = parse_namespace)]
    pub namespace: String,

    /// Which controllers run, as `berth run --controllers` has it; roles are printed for these only.
    #[arg(long, value_name = "LIST", default_value = "*", value_parser = parse_installed, allow_hyphen_values = true)]
    pub controllers: ControllerList,

    /// How many pods of each; one acts, the others stand by.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=i64::from(REPLICAS_MAX)))]
    pub replicas: u16,

    /// Leave out the admission webhook, as where another program has these rules.
    #[arg(long)]
    pub without_webhooks: bool,

    /// Leave out the definitions (CRDs), as where Open Cluster Management's are there already.
    #[arg(long)]
    pub without_crds: bool,

    /// The image of this version of berth, as the cluster's nodes pull it [default: berth:VERSION].
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<Image>,

    /// Have metrics collected by the Prometheus operator, whose ServiceMonitor the cluster must know.
    #[arg(long)]
    pub service_monitor: bool,

    /// Let the controllers answer questions about Placements, by the Service berth-debugger.
    #[arg(long)]
    pub debugger: bool,

    /// What is said of nodes, as `berth run` has it.
    #[command(flatten)]
    pub nodes: Typed<NodeArgs>,
}

/// What is to be installed.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a part that is there or not, by itself")]
pub struct Installation {
    pub(crate) namespace: String,
    pub(crate) controllers: ControllerList,
    pub(crate) replicas: u16,
    pub(crate) has_webhooks: bool,
    pub(crate) has_definitions: bool,
    pub(crate) image: Image,
    pub(crate) is_monitored: bool,
    pub(crate) has_debugger: bool,
    /// Flags of `berth run` about nodes.
    pub(crate) node_flags: Vec<String>,
}

impl TryFrom<InstallationArgs> for Installation {
    type Error = String;

    /// Refuses flags that do not go together, in words for the user.
    fn try_from(args: InstallationArgs) -> Result<Self, String> {
        if args.debugger && !args.controllers.enabled().any(|name| name == ControllerName::Placement) {
            return Err(
                "--debugger: without the placement-controller there is nothing to be asked about".to_owned()
            );
        }
        let Typed { args: nodes, flags: node_flags } = args.nodes;
        nodes.settle().map_err(|missing| missing.in_flags().to_owned())?;
        if let Some(idle) = nodes.idle(&args.controllers) {
            return Err(idle);
        }
        Ok(Self {
            namespace: args.namespace,
            controllers: args.controllers,
            replicas: args.replicas,
            has_webhooks: !args.without_webhooks,
            has_definitions: !args.without_crds,
            image: args.image.unwrap_or_default(),
            is_monitored: args.service_monitor,
            has_debugger: args.debugger,
            node_flags,
        })
    }
}

impl Installation {
    /// The same with every part that there is, in the same place.
    pub(super) fn whole(&self) -> Self {
        let names = ControllerName::ALL.map(ControllerName::as_str);
        let controllers = ControllerList::from_entries(names).expect("every controller is known by its name");
        Self {
            controllers,
            has_webhooks: true,
            has_definitions: true,
            is_monitored: true,
            has_debugger: true,
            ..self.clone()
        }
    }
}

impl Default for Installation {
    /// Everything as it is without flags.
    fn default() -> Self {
        Self {
            namespace: "berth-system".to_owned(),
            controllers: ControllerList::default(),
            replicas: 2,
            has_webhooks: true,
            has_definitions: true,
            image: Image::default(),
            is_monitored: false,
            has_debugger: false,
            node_flags: Vec::new(),
        }
    }
}

fn parse_namespace(text: &str) -> Result<String, String> {
    let faults = dns_label(text);
    if faults.is_empty() { Ok(text.to_owned()) } else { Err(faults.join("; ")) }
}

/// A list that runs something: pods that do nothing are no installation.
fn parse_installed(text: &str) -> Result<ControllerList, String> {
    let list = parse_controllers(text)?;
    if list.enabled().next().is_none() {
        return Err("it turns every controller off; name one that runs, or * for all".to_owned());
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: InstallationArgs,
    }

    fn read(line: &[&str]) -> Result<Installation, String> {
        let line = ["berth"].iter().chain(line);
        Line::try_parse_from(line).map_err(|error| error.to_string())?.args.try_into()
    }

    #[test]
    fn flags_that_are_not_given_mean_what_is_usual() {
        assert_eq!(format!("{:?}", read(&[]).unwrap()), format!("{:?}", Installation::default()));
    }

    #[test]
    fn each_flag_is_checked() {
        for (line, told) in [
            (["--namespace", "Berth"], "RFC 1123 label"),
            (["--namespace", ""], "RFC 1123 label"),
            (["--controllers", "placement"], "placement-controller"),
            (["--controllers", ""], "turns every controller off"),
            (["--controllers", "-placement-controller"], "turns every controller off"),
            (["--replicas", "0"], "0 is not in 1..=100"),
            (["--replicas", "101"], "101 is not in 1..=100"),
            (["--image", "berth:latest!"], "its tag"),
        ] {
            let refusal = read(&line).unwrap_err();
            assert!(refusal.contains(told), "{line:?}: {refusal}");
        }
    }

    #[test]
    fn what_is_said_of_nodes_is_checked_as_by_those_who_obey_it() {
        let evictions = "--controllers=*,taint-eviction-controller";
        for (line, told) in [
            ([evictions, "--eviction-rate=0"], "above 0"),
            ([evictions, "--eviction-burst=5"], "--eviction-burst goes with --eviction-rate"),
            ([evictions, "--node-eviction-rate=1"], "node-lifecycle-controller"),
            (["--replicas=2", "--eviction-rate=5"], "taint-eviction-controller"),
        ] {
            let refusal = read(&line).unwrap_err();
            assert!(refusal.contains(told), "{line:?}: {refusal}");
        }
        let read = read(&[evictions, "--eviction-rate", "5"]).unwrap();
        assert_eq!(read.node_flags, ["--eviction-rate=5"]);
    }

    #[test]
    fn a_debugger_needs_somebody_who_knows_placements() {
        let refusal = read(&["--debugger", "--controllers=clusterset-controller"]).unwrap_err();
        assert!(refusal.contains("placement-controller"), "{refusal}");
        assert!(read(&["--debugger", "--controllers=placement-controller"]).unwrap().has_debugger);
    }
}
