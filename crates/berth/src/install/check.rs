//! Whether a server has what would be installed.
//!
//! Owns asking for each object and the words for what is not as it should be. Only reads.

use std::fmt;

use anyhow::anyhow;
use kube::Client;
use serde_json::Value;

use super::compare::{Difference, brief, compare, contrast, field_of_schema};
use super::guard::additions;
use super::object::Identity;
use super::{CONTROLLERS, Installation, parts, rbac};

/// Differences of one object that are shown: whoever applies the manifests again mends them all.
const SHOWN_MAX: usize = 20;

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
    /// Of an installation with more controllers, and still in force.
    LeftOver,
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
            match get(client, &identity.path()).await {
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
    for identity in rbac::bindings_of_others(installation) {
        match get(client, &identity.path()).await {
            Ok(Some(found)) if binds(&found, &installation.namespace) => {
                states.push((identity, State::LeftOver));
            }
            Ok(_) => {}
            Err(error) => return Err(refused(error, server, &identity)),
        }
    }
    Ok(Report { server: server.to_owned(), states })
}

/// Whether a binding is about the account of the controllers in a namespace.
fn binds(binding: &Value, namespace: &str) -> bool {
    let account = rbac::account(CONTROLLERS);
    let mut subjects = binding["subjects"].as_array().into_iter().flatten();
    subjects.any(|subject| {
        subject["kind"] == "ServiceAccount"
            && subject["name"] == *account
            && subject["namespace"] == *namespace
    })
}

async fn get(client: &Client, path: &str) -> Result<Option<Value>, kube::Error> {
    let request = http::Request::get(path).body(Vec::new()).expect("names were checked when flags were read");
    match client.request(request).await {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the server knows the group and version; Kubernetes' own are always there.
async fn is_served(client: &Client, identity: &Identity) -> Result<bool, kube::Error> {
    let is_foreign = identity.api_version.contains('.') && !identity.api_version.contains(".k8s.io/");
    if !is_foreign {
        return Ok(true);
    }
    Ok(get(client, &format!("/apis/{}", identity.api_version)).await?.is_some())
}

fn refused(error: kube::Error, server: &str, identity: &Identity) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => {
            anyhow!("{server} does not show {identity} ({}): {}", status.code, status.message)
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
            Self::LeftOver => {
                let name = &identity.name;
                writeln!(
                    out,
                    "left over  {identity}: gives rights that these controllers do not need; \
                     kubectl delete clusterrolebinding,clusterrole {name}"
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

    #[test]
    fn rights_of_an_installation_with_more_controllers_are_told() {
        let mut others = rbac::bindings_of_others(&Installation::default()).into_iter();
        let identity = others.find(|binding| binding.name == "berth:taint-eviction-controller").unwrap();
        assert!(others.any(|binding| binding.name == "berth:debugger"));
        let report = Report { server: "https://hub".to_owned(), states: vec![(identity, State::LeftOver)] };
        assert!(!report.is_well());
        assert!(
            report.to_string().starts_with(
                "left over  ClusterRoleBinding berth:taint-eviction-controller: gives rights that these controllers do \
                 not need; kubectl delete clusterrolebinding,clusterrole berth:taint-eviction-controller\n"
            ),
            "{report}"
        );
        let binding = |namespace: &str| {
            let account = rbac::account(CONTROLLERS);
            json!({"subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]})
        };
        assert!(binds(&binding("fleet"), "fleet"));
        assert!(!binds(&binding("of-others"), "fleet"), "another installation has it");
        assert!(!binds(&json!({"subjects": [{"kind": "User", "name": "jane"}]}), "fleet"));
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
