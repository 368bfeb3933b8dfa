//! Who else has a say in a write: functions in this process, webhooks, and the rules that objects have among each other.
//!
//! Owns the order: first what may change the object, then what the hub itself writes into it, last what may only refuse.

use std::fmt;
use std::sync::Arc;

use berth_hub_guard::webhook::{Admission, Around, Kind, Resource as WebhookResource, WebhookKind};
use berth_hub_guard::{PolicyKind, PolicyWrite, User, WebhookSet};
use berth_hub_kinds::admission::{self as kinds, Surroundings};
use berth_hub_store::ResourceKey;
use berth_hub_wire::Status;
use serde_json::Value;

pub use berth_hub_guard::webhook::Operation;

use super::caller::refused;
use super::{Call, options};
use crate::keep::definition;
use crate::read::parse;
use crate::resource::{Act, Outcome, Part, Pending, Step, Terms};

const RBAC: &str = "rbac.authorization.k8s.io";
const WEBHOOKS: &str = "admissionregistration.k8s.io";
const DEFAULT_STORAGE_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// One write, as an admission function in this process sees it.
#[derive(Debug, Clone, Copy)]
pub struct Proposal<'a> {
    /// Who writes.
    pub user: &'a User,
    /// What they do.
    pub operation: Operation,
    /// The API group, empty for core.
    pub group: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The namespace, or empty.
    pub namespace: &'a str,
    /// The name, empty while it is still to be generated.
    pub name: &'a str,
    /// The object as it is stored, if there is one.
    pub old: Option<&'a Value>,
    /// Whether nothing will be kept.
    pub dry_run: bool,
}

/// A function in this process that has a say in writes, as a webhook has, without the way there and back.
pub trait Admit: Send + Sync + fmt::Debug {
    /// Changes the object, or refuses it. Texts it gives back are warnings for the caller.
    fn mutate(&self, proposal: &Proposal<'_>, object: &mut Value) -> Result<Vec<String>, Status> {
        let _ = (proposal, object);
        Ok(Vec::new())
    }

    /// Refuses the object, which is absent in deletions.
    fn validate(&self, proposal: &Proposal<'_>, object: Option<&Value>) -> Result<Vec<String>, Status> {
        let _ = (proposal, object);
        Ok(Vec::new())
    }
}

/// Lets those who may change the object do so. When one of them refuses, `told` gets what they warned of until then.
pub(crate) async fn mutate(
    call: &Call,
    act: &Act<'_>,
    operation: Operation,
    mut pending: Pending,
    old: Option<&Value>,
    told: &mut Vec<String>,
) -> Result<Pending, Status> {
    let proposal = proposal(call, act, operation, pending.object(), old);
    let mut object = surround(call, act, operation, pending.object(), old)?;
    let mut warnings = Vec::new();
    for function in call.core.admission.iter() {
        let object = object.get_or_insert_with(|| pending.object().clone());
        warnings.extend(function.mutate(&proposal, object)?);
    }
    let webhooks = call.core.webhooks();
    if !webhooks.is_empty(WebhookKind::Mutating) {
        let equivalents = equivalents(call, act);
        let sent = object.take().unwrap_or_else(|| pending.object().clone());
        let options = options::of_write(call, act, operation);
        let mut admission = admission(call, act, operation, Some(sent), old, proposal.name, &equivalents);
        admission.options = Some(&options);
        let patch = |object: &Value, patch: &Value| {
            berth_hub_merge::json_patch(object, patch).map_err(|error| error.to_string())
        };
        let around = Around { lookup: &*call.core, patch: &patch };
        let asked = call.core.webhook_client.mutate(&webhooks, &mut admission, around, &mut warnings).await;
        asked.inspect_err(|_| told.append(&mut warnings)).map_err(refused)?;
        object = admission.object;
    }
    if let Some(object) = object.filter(|object| object != pending.object()) {
        pending.replace(object);
    }
    pending.warnings.extend(warnings);
    Ok(pending)
}

/// What Kubernetes' always-on admission adds to objects of some kinds.
fn surround(
    call: &Call,
    act: &Act<'_>,
    operation: Operation,
    object: &Value,
    old: Option<&Value>,
) -> Result<Option<Value>, Status> {
    let (Some(kind), Part::Whole) = (act.resource.builtin(), act.part) else { return Ok(None) };
    if !matches!((kind.group, kind.kind), ("", "Pod" | "PersistentVolumeClaim")) {
        return Ok(None);
    }
    if let (Operation::Update, Some(old)) = (operation, old) {
        let mut object = object.clone();
        kinds::on_update(kind, &mut object, old);
        return Ok(Some(object));
    }
    let all = |group: &str, plural: &str| {
        call.core.all(&ResourceKey::new(group, plural)).into_iter().map(|entry| parse(entry.json()))
    };
    let mut surroundings = Surroundings::default();
    let class;
    let storage;
    if kind.kind == "Pod" {
        let named = object.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or_default();
        class = all("scheduling.k8s.io", "priorityclasses").find(|class| {
            if named.is_empty() { class["globalDefault"] == true } else { class["metadata"]["name"] == named }
        });
        if class.is_none() && !named.is_empty() {
            let why = format!("no PriorityClass with name {named} was found");
            return Err(Status::forbidden(
                act.resource.group_resource(),
                crate::resource::meta::text(object, "name"),
                &why,
            ));
        }
        surroundings.priority_class = class.as_ref();
    } else {
        storage = all("storage.k8s.io", "storageclasses")
            .find(|class| class["metadata"]["annotations"][DEFAULT_STORAGE_CLASS] == "true");
        surroundings.default_storage_class =
            storage.as_ref().and_then(|class| class["metadata"]["name"].as_str());
    }
    let mut object = object.clone();
    let name = crate::resource::meta::text(&object, "name").to_owned();
    kinds::on_create(kind, &mut object, &surroundings)
        .map_err(|why| Status::forbidden(act.resource.group_resource(), &name, &why))?;
    Ok(Some(object))
}

/// Writes into the object what the hub itself answers for.
pub(crate) fn settle(call: &Call, act: &Act<'_>, mut outcome: Outcome) -> Outcome {
    // A dry run shows the definition as sent: nothing is established by it.
    if act.resource.storage == call.core.definitions && !act.dry_run {
        let known = call.core.derived.definitions();
        let others: Vec<&Value> = known.iter().map(|definition| &**definition).collect();
        for step in &mut outcome.steps {
            if let Step::Create(object) | Step::Update(object) = step
                && let Some(established) = definition::establish(object, &others, act.now)
            {
                *object = established;
            }
        }
    }
    outcome
}

/// Asks those who may only refuse a creation or an update; gives back their warnings, into `told` when they refuse.
pub(crate) async fn validate(
    call: &Call,
    act: &Act<'_>,
    operation: Operation,
    object: Option<&Value>,
    old: Option<&Value>,
    told: &mut Vec<String>,
) -> Result<Vec<String>, Status> {
    let options = options::of_write(call, act, operation);
    review(call, act, operation, (object, old, &options), told).await
}

/// Asks those who may refuse a deletion; gives back their warnings, into `told` when they refuse.
pub(crate) async fn validate_deletion(
    call: &Call,
    act: &Act<'_>,
    old: &Value,
    terms: &Terms,
    told: &mut Vec<String>,
) -> Result<Vec<String>, Status> {
    review(call, act, Operation::Delete, (None, Some(old), &options::of_deletion(act, terms)), told).await
}

async fn review(
    call: &Call,
    act: &Act<'_>,
    operation: Operation,
    (object, old, options): (Option<&Value>, Option<&Value>, &Value),
    told: &mut Vec<String>,
) -> Result<Vec<String>, Status> {
    if operation != Operation::Delete && object.is_none() {
        // Nothing changes, so nobody needs to be asked.
        return Ok(Vec::new());
    }
    escalation(call, act, operation, object, old)?;
    if &*act.resource.group == WEBHOOKS
        && let Some(object) = object
    {
        let problems: Vec<(String, String, String)> = WebhookSet::check(object)
            .into_iter()
            .map(|problem| (problem.reason.to_owned(), problem.message, problem.field))
            .collect();
        if !problems.is_empty() {
            return Err(Status::invalid(act.resource.group_kind(), name(act, object), &problems));
        }
    }
    let mut warnings = Vec::new();
    let shown = object.or(old).unwrap_or(&Value::Null);
    let proposal = proposal(call, act, operation, shown, old);
    for function in call.core.admission.iter() {
        warnings.extend(function.validate(&proposal, object)?);
    }
    let webhooks = call.core.webhooks();
    if !webhooks.is_empty(WebhookKind::Validating) {
        let equivalents = equivalents(call, act);
        let mut admission =
            admission(call, act, operation, object.cloned(), old, proposal.name, &equivalents);
        admission.options = Some(options);
        let around = Around {
            lookup: &*call.core,
            patch: &|_, _| Err("a validating webhook cannot change the object".to_owned()),
        };
        let asked = call.core.webhook_client.validate(&webhooks, &admission, around, &mut warnings).await;
        asked.inspect_err(|_| told.append(&mut warnings)).map_err(refused)?;
    }
    Ok(warnings)
}

/// Asks about something posted to a subresource: the kind it has, and in which group.
pub(crate) async fn ask(
    call: &Call,
    act: &Act<'_>,
    (subresource, group, kind): (&str, &str, &str),
    sent: &Value,
) -> Result<(), Status> {
    let webhooks = call.core.webhooks();
    if webhooks.is_empty(WebhookKind::Validating) {
        return Ok(());
    }
    let options = options::of_write(call, act, Operation::Create);
    let mut admission = admission(call, act, Operation::Create, Some(sent.clone()), None, act.name, &[]);
    admission.options = Some(&options);
    admission.subresource = subresource;
    admission.kind = Kind { group, version: "v1", kind };
    let around = Around {
        lookup: &*call.core,
        patch: &|_, _| Err("a validating webhook cannot change the object".to_owned()),
    };
    call.core.webhook_client.validate(&webhooks, &admission, around, &mut Vec::new()).await.map_err(refused)
}

/// The other versions an object is served in, by which a webhook may have asked for it.
fn equivalents<'a>(call: &'a Call, act: &Act<'a>) -> Vec<(WebhookResource<'a>, Kind<'a>)> {
    let others = call
        .registry
        .all()
        .iter()
        .filter(|other| other.storage == act.resource.storage && other.version != act.resource.version);
    others
        .filter(|other| other.is_custom())
        .map(|other| {
            (
                WebhookResource { group: &other.group, version: &other.version, resource: &other.plural },
                Kind { group: &other.group, version: &other.version, kind: &other.kind },
            )
        })
        .collect()
}

/// See [`equivalents`].
type Equivalents<'a> = [(WebhookResource<'a>, Kind<'a>)];

/// Nobody gives away rights they do not hold.
fn escalation(
    call: &Call,
    act: &Act<'_>,
    operation: Operation,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<(), Status> {
    let (true, Some(object), Operation::Create | Operation::Update) =
        (&*act.resource.group == RBAC, object, operation)
    else {
        return Ok(());
    };
    let Some(kind) = PolicyKind::from_plural(&act.resource.plural) else { return Ok(()) };
    let write = PolicyWrite {
        user: &call.user,
        kind,
        namespace: act.object_namespace(),
        request_name: act.name,
        object,
        old,
    };
    call.core.with_policy(|policy| policy.check_write(&write)).map_err(refused)
}

fn name<'a>(act: &Act<'a>, object: &'a Value) -> &'a str {
    if act.name.is_empty() { crate::resource::meta::text(object, "name") } else { act.name }
}

fn proposal<'a>(
    call: &'a Call,
    act: &Act<'a>,
    operation: Operation,
    object: &'a Value,
    old: Option<&'a Value>,
) -> Proposal<'a> {
    Proposal {
        user: &call.user,
        operation,
        group: &act.resource.group,
        resource: &act.resource.plural,
        subresource: act.part.subresource().unwrap_or_default(),
        namespace: namespace_of(act),
        name: name(act, object),
        old,
        dry_run: act.dry_run,
    }
}

fn admission<'a>(
    call: &'a Call,
    act: &Act<'a>,
    operation: Operation,
    object: Option<Value>,
    old: Option<&'a Value>,
    name: &'a str,
    equivalents: &'a Equivalents<'a>,
) -> Admission<'a> {
    let resource = act.resource;
    Admission {
        operation,
        kind: Kind { group: &resource.group, version: &resource.version, kind: &resource.kind },
        resource: WebhookResource {
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
        },
        subresource: act.part.subresource().unwrap_or_default(),
        equivalents,
        name,
        namespace: namespace_of(act),
        user: &call.user,
        dry_run: act.dry_run,
        object,
        old_object: old,
        options: None,
    }
}

/// The namespace as admission sees it: a namespace is in itself.
fn namespace_of<'a>(act: &Act<'a>) -> &'a str {
    if crate::resource::lifecycle::is_namespaces(act.resource) { act.name } else { act.namespace }
}

/// Functions in this process, in the order they are asked.
pub type Admitters = Arc<[Arc<dyn Admit>]>;
