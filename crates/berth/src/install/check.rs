//! Whether a server has what would be installed.
//!
//! Owns asking for each object, and for what is there besides, and the words for what is not as it should be. Only reads.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::anyhow;
use kube::Client;
use serde_json::Value;

use super::compare::{Difference, brief, compare, contrast, field_of_schema};
use super::guard::additions;
use super::object::{Identity, is_printed};
use super::parts::{self, Part};
use super::powers::{Power, powers};
use super::{Installation, rbac};

/// Differences of one object that are shown: whoever applies the manifests again mends them all.
const SHOWN_MAX: usize = 20;

/// What an API server gives as its reason where there is no such object.
const NOT_FOUND: &str = "NotFound";

/// How one object is.
#[derive(Debug)]
enum State {
    /// As it should be.
    Well,
    /// Not there.
    Missing,
    /// The server does not know such objects.
    Unknown,
    /// There, and on its way out.
    Leaving,
    /// There, and otherwise.
    Different(Vec<Difference>),
    /// A definition that lacks fields which this binary knows.
    Older(Vec<Difference>),
    /// As it should be, and not at work: so many pods of so many.
    NotReady(u64, u64),
    /// Of an installation with other flags, and still in force.
    LeftOver,
    /// A binding that nobody installs, which gives an account of ours a role.
    Further(Power),
}

/// How an installation is.
#[derive(Debug)]
pub(crate) struct Report {
    server: String,
    states: Vec<(Identity, State)>,
}

/// Compares a server with what would be printed.
pub(crate) async fn check(
    client: &Client,
    server: &str,
    installation: &Installation,
) -> anyhow::Result<Report> {
    let mut states = Vec::new();
    let mut is_unserved: Option<String> = None;
    for wanted in parts::objects(installation)? {
        let identity = Identity::of(&wanted);
        let state = if is_unserved.as_ref() == Some(&identity.api_version) {
            State::Unknown
        } else {
            match get(client, &identity).await {
                Ok(Some(found)) => state(&wanted, &found),
                Ok(None) if is_served(client, &identity).await? => State::Missing,
                Ok(None) => {
                    is_unserved = Some(identity.api_version.clone());
                    State::Unknown
                }
                Err(error) => return Err(refused(error, server, &identity)),
            }
        };
        states.push((identity, state));
    }
    let wanted: BTreeSet<Identity> = states.iter().map(|(identity, _)| identity.clone()).collect();
    let whole = installation.whole();
    // Roles that nobody is bound to, accounts that nobody runs as, and Secrets that nobody reads do nothing.
    for part in [Part::Plumbing, Part::Workloads, Part::Monitor, Part::Webhooks] {
        let objects = part.objects(&whole)?;
        let is_other = |identity: &Identity| identity.kind != "Secret" && !wanted.contains(identity);
        for identity in objects.iter().map(Identity::of).filter(is_other) {
            match get(client, &identity).await {
                // Somebody may well have something of that name, as a webhook that was registered by itself.
                Ok(Some(found)) if is_printed(&found) => states.push((identity, State::LeftOver)),
                Ok(_) => {}
                Err(error) => return Err(refused(error, server, &identity)),
            }
        }
    }
    let found = powers(client, &installation.namespace).await;
    let found = found.map_err(|(kinds, error)| refused(error, server, &kinds))?;
    let known = rbac::roles(&whole).iter().map(Identity::of).collect();
    states.extend(excess(found, &wanted, &known));
    Ok(Report { server: server.to_owned(), states })
}

/// Bindings of our accounts that are not `wanted`, which were compared: left over where an installation has such a one.
fn excess(
    powers: Vec<Power>,
    wanted: &BTreeSet<Identity>,
    known: &BTreeSet<Identity>,
) -> Vec<(Identity, State)> {
    let others = powers.into_iter().filter(|power| !wanted.contains(&power.identity));
    let told = |power: Power| {
        let identity = power.identity.clone();
        let is_known = known.contains(&identity);
        (identity, if is_known { State::LeftOver } else { State::Further(power) })
    };
    others.map(told).collect()
}

async fn get(client: &Client, identity: &Identity) -> Result<Option<Value>, kube::Error> {
    ask(client, &identity.path(), is_foreign(identity)).await
}

async fn ask(client: &Client, path: &str, is_foreign: bool) -> Result<Option<Value>, kube::Error> {
    let request = http::Request::get(path).body(Vec::new()).expect("names were checked when flags were read");
    match client.request(request).await {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if is_missing(&status, is_foreign) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a server says that there is no such object. A server that does not know a group says 404 without a reason; so does
/// whoever stands before a server and has lost the way, and of Kubernetes' own kinds nothing is known then.
fn is_missing(status: &kube::core::Status, is_foreign: bool) -> bool {
    status.code == 404 && (is_foreign || status.reason == NOT_FOUND)
}

/// Whether the kind is none of Kubernetes' own, which are always served.
fn is_foreign(identity: &Identity) -> bool {
    identity.api_version.contains('.') && !identity.api_version.contains(".k8s.io/")
}

/// Whether the server knows the group and version.
async fn is_served(client: &Client, identity: &Identity) -> Result<bool, kube::Error> {
    if !is_foreign(identity) {
        return Ok(true);
    }
    Ok(ask(client, &format!("/apis/{}", identity.api_version), true).await?.is_some())
}

fn refused(error: kube::Error, server: &str, what: &impl fmt::Display) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => {
            anyhow!("{server} does not show {what} ({}): {}", status.code, status.message)
        }
        error => anyhow::Error::new(error).context(format!("{server} does not answer")),
    }
}

fn state(wanted: &Value, found: &Value) -> State {
    if found.pointer("/metadata/deletionTimestamp").is_some() {
        return State::Leaving;
    }
    let mut differences = compare(wanted, found);
    differences.extend(additions(wanted, found));
    if !differences.is_empty() {
        let lacks = |one: &Difference| one.found.is_none() && field_of_schema(&one.path).is_some();
        return if differences.iter().any(lacks) {
            State::Older(differences)
        } else {
            State::Different(differences)
        };
    }
    if wanted["kind"] == "Deployment" {
        let number = |pointer: &str| found.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
        let wanted = number("/spec/replicas");
        // Pods of before do not count: what is ready may be the version that is being replaced, all of them for all we know.
        let updated = number("/status/updatedReplicas");
        let before = number("/status/replicas").saturating_sub(updated);
        let ready = number("/status/readyReplicas").saturating_sub(before).min(updated);
        let is_seen = number("/status/observedGeneration") >= number("/metadata/generation");
        if ready < wanted || !is_seen {
            return State::NotReady(if is_seen { ready } else { 0 }, wanted);
        }
    }
    State::Well
}

impl Report {
    /// Whether there is nothing to do.
    pub(crate) fn is_well(&self) -> bool {
        self.states.iter().all(|(_, state)| matches!(state, State::Well))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_well() {
            return writeln!(
                out,
                "all is well: {} objects on {} are as berth {} installs them",
                self.states.len(),
                self.server,
                env!("CARGO_PKG_VERSION")
            );
        }
        for (identity, state) in &self.states {
            state.tell(identity, out)?;
        }
        let count = self.states.iter().filter(|(_, state)| !matches!(state, State::Well)).count();
        let all = self.states.len();
        writeln!(
            out,
            "{count} of {all} objects on {} are not as berth {} installs them",
            self.server,
            env!("CARGO_PKG_VERSION")
        )
    }
}

impl State {
    fn tell(&self, identity: &Identity, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Well => Ok(()),
            Self::Missing => writeln!(out, "missing    {identity}"),
            Self::Unknown => {
                writeln!(out, "missing    {identity}: the server does not serve {}", identity.api_version)
            }
            Self::Leaving => writeln!(out, "leaving    {identity}: it is being deleted"),
            Self::NotReady(ready, wanted) => {
                writeln!(out, "not ready  {identity}: {ready} of {wanted} pods are ready")
            }
            Self::LeftOver if identity.kind.ends_with("Binding") => {
                let role = identity.kind.trim_end_matches("Binding");
                let kinds = format!("{},{role}", identity.kind).to_lowercase();
                writeln!(
                    out,
                    "left over  {identity}: gives rights that this installation does not need; {}",
                    identity.deletion(&kinds)
                )
            }
            Self::LeftOver => {
                let deletion = identity.deletion(&identity.kind.to_lowercase());
                writeln!(out, "left over  {identity}: of an installation with other flags; {deletion}")
            }
            Self::Further(Power { role, holders, .. }) => {
                writeln!(
                    out,
                    "further    {identity}: gives {} the {role}, which berth does not install",
                    holders.join(" and ")
                )
            }
            Self::Different(differences) => {
                writeln!(out, "different  {identity}")?;
                list(differences, out)
            }
            Self::Older(differences) => {
                writeln!(
                    out,
                    "older      {identity}: it lacks fields that berth {} has",
                    env!("CARGO_PKG_VERSION")
                )?;
                list(differences, out)
            }
        }
    }
}

fn list(differences: &[Difference], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    for Difference { path, wanted, found } in differences.iter().take(SHOWN_MAX) {
        match (wanted, found, field_of_schema(path)) {
            (Some(_), None, Some(field)) => writeln!(out, "             {field}: missing")?,
            (Some(wanted), Some(found), _) => {
                writeln!(out, "             {path}: {}", contrast(wanted, found))?;
            }
            (Some(wanted), None, _) => {
                writeln!(out, "             {path}: wanted {}, found nothing", brief(wanted))?;
            }
            (None, found, _) => {
                let found = found.as_ref().map(brief).unwrap_or_default();
                writeln!(out, "             {path}: wanted nothing, found {found}")?;
            }
        }
    }
    let more = differences.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        writeln!(out, "             and {more} more")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(wanted: &Value, found: &Value) -> String {
        let identity = Identity::of(wanted);
        Report { server: "https://hub".to_owned(), states: vec![(identity, state(wanted, found))] }
            .to_string()
    }

    #[test]
    fn a_deployment_is_well_when_its_new_pods_are_ready() {
        let wanted = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "n", "name": "d"},
            "spec": {"replicas": 2}});
        let with = |generation: u64, updated: u64| {
            let mut found = wanted.clone();
            found["metadata"]["generation"] = json!(generation);
            found["status"] =
                json!({"observedGeneration": 1, "readyReplicas": 2, "updatedReplicas": updated});
            found
        };
        assert!(told(&wanted, &with(1, 2)).starts_with("all is well: 1 objects on https://hub"));
        assert!(told(&wanted, &with(1, 1)).starts_with("not ready  Deployment n/d: 1 of 2 pods are ready\n"));
        assert!(told(&wanted, &with(2, 2)).starts_with("not ready  Deployment n/d: 0 of 2 pods are ready\n"));
        assert!(told(&wanted, &wanted).starts_with("not ready"));
        let mut stuck = with(1, 1);
        stuck["status"]["replicas"] = json!(3);
        assert!(told(&wanted, &stuck).starts_with("not ready  Deployment n/d: 0 of 2 pods are ready\n"));
    }

    fn power(kind: &str, (namespace, name): (&str, &str), role: &str) -> Power {
        let identity = Identity {
            api_version: rbac::VERSION.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        Power { identity, role: role.to_owned(), holders: vec!["berth".to_owned()] }
    }

    #[test]
    fn rights_that_this_installation_does_not_give_are_told() {
        let installation = Installation { has_webhooks: false, ..Installation::default() };
        let of = |installation: &Installation| rbac::roles(installation).iter().map(Identity::of).collect();
        let powers = vec![
            power("ClusterRoleBinding", ("", "berth:placement-controller"), "ClusterRole any"),
            power("ClusterRoleBinding", ("", "berth:taint-eviction-controller"), "ClusterRole any"),
            power("ClusterRoleBinding", ("", "berth:debugger"), "ClusterRole any"),
            power("RoleBinding", ("berth-system", "berth:webhook"), "Role any"),
            power("RoleBinding", ("team", "berth:webhook"), "ClusterRole edit"),
            power("ClusterRoleBinding", ("", "admins"), "ClusterRole cluster-admin"),
        ];
        let states = excess(powers, &of(&installation), &of(&installation.whole()));
        let report = Report { server: "https://hub".to_owned(), states };
        assert!(!report.is_well());
        let needless = "gives rights that this installation does not need; kubectl delete";
        assert_eq!(
            report.to_string().lines().collect::<Vec<_>>()[..5],
            [
                &*format!(
                    "left over  ClusterRoleBinding berth:taint-eviction-controller: {needless} \
                     clusterrolebinding,clusterrole berth:taint-eviction-controller"
                ),
                &*format!(
                    "left over  ClusterRoleBinding berth:debugger: {needless} clusterrolebinding,clusterrole berth:debugger"
                ),
                &*format!(
                    "left over  RoleBinding berth-system/berth:webhook: {needless} rolebinding,role -n berth-system berth:webhook"
                ),
                "further    RoleBinding team/berth:webhook: gives berth the ClusterRole edit, which berth does not install",
                "further    ClusterRoleBinding admins: gives berth the ClusterRole cluster-admin, which berth does not install",
            ]
        );
    }

    #[test]
    fn what_an_installation_with_other_flags_runs_is_told_with_how_to_be_rid_of_it() {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "n", "name": "d"}});
        let states = vec![(Identity::of(&deployment), State::LeftOver)];
        let report = Report { server: "https://hub".to_owned(), states };
        let line = "left over  Deployment n/d: of an installation with other flags; kubectl delete deployment -n n d\n";
        assert!(report.to_string().starts_with(line), "{report}");
    }

    #[test]
    fn an_answer_of_whoever_stands_before_the_server_says_nothing_of_an_object() {
        let status = |reason: &str| kube::core::Status::failure("not here", reason).with_code(404);
        assert!(is_missing(&status("NotFound"), false));
        assert!(!is_missing(&status("Failed to parse error data"), false), "a page of a proxy");
        assert!(is_missing(&status("Failed to parse error data"), true), "a group that is not served");
        assert!(!is_missing(&kube::core::Status::failure("no", "NotFound").with_code(403), true));
    }

    #[test]
    fn a_definition_without_a_field_is_older() {
        let definition = |fields: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "placements.x"},
            "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {
                "spec": {"properties": fields},
            }}}}]}})
        };
        let (ours, before) =
            (definition(json!({"a": {}, "b": {"type": "string"}})), definition(json!({"a": {}})));
        let lines = told(&ours, &before);
        assert!(
            lines.starts_with("older      CustomResourceDefinition placements.x: it lacks fields"),
            "{lines}"
        );
        assert!(lines.contains("\n             v1 spec.b: missing\n"), "{lines}");
        assert!(told(&before, &ours).starts_with("all is well"), "newer ones do");
    }
}
