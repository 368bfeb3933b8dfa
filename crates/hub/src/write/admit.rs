//! Who else has a say in a write: functions in this process, and webhooks.
//!
//! Owns the order: first who may change the object, and after the schema who may only refuse it; each time the functions
//! before the webhooks. What nobody asks for, such as the options that webhooks are shown, is not put together.

use std::borrow::Cow;
use std::time::Duration;

use berth_hub_guard::WebhookKind;
use berth_hub_guard::webhook::{self, Around, Kind, Operation, Resource as Named};
use berth_hub_wire::Status;
use futures::future::join_all;
use serde_json::Value;

use super::view::View;
use super::{Author, options};
use crate::admission::Request;
use crate::refused::refused;
use crate::resource::{Act, Part, Pending, Terms, lifecycle, meta};

/// How long a write waits for advice: no warning is better than a late write.
const ADVICE_WITHIN: Duration = Duration::from_millis(250);

/// A write that others have a say in.
#[derive(Clone, Copy)]
pub(crate) struct Admitting<'a> {
    pub(crate) author: &'a Author<'a>,
    pub(crate) act: &'a Act<'a>,
    pub(crate) operation: Operation,
    /// The object as it is stored, if there is one.
    pub(crate) old: Option<&'a Value>,
}

/// What is posted to a subresource: its name, and the kind of what is posted.
#[derive(Clone, Copy)]
pub(crate) struct Posted {
    pub(crate) subresource: &'static str,
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
}

/// What a client said about a write; webhooks are shown it as an object.
#[derive(Clone, Copy)]
enum Said<'a> {
    /// About a creation or an update.
    Write,
    /// About a deletion.
    Deletion(&'a Terms),
}

/// Lets those who may change the object do so. When one of them refuses, `told` gets what they warned of until then.
pub(crate) async fn mutate(
    admitting: Admitting<'_>,
    mut pending: Pending,
    told: &mut Vec<String>,
) -> Result<Pending, Status> {
    let mut warnings = Vec::new();
    let admitted = mutated(admitting, pending.object(), &mut warnings).await;
    let object = admitted.inspect_err(|_| told.append(&mut warnings))?;
    if let Some(object) = object.filter(|object| object != pending.object()) {
        pending.replace(object);
    }
    pending.warnings.extend(warnings);
    Ok(pending)
}

/// The object as the last of them leaves it, if any was asked.
async fn mutated(
    admitting: Admitting<'_>,
    object: &Value,
    warnings: &mut Vec<String>,
) -> Result<Option<Value>, Status> {
    let Admitting { author, .. } = admitting;
    let request = admitting.request(object);
    let changed = author.core.admission.mutate(&request, &View(author), object, warnings)?;
    let mut object = Some(changed.map_or(Cow::Borrowed(object), Cow::Owned));
    admitting.consult(WebhookKind::Mutating, &request, &mut object, Said::Write, warnings).await?;
    Ok(match object {
        Some(Cow::Owned(object)) => Some(object),
        _ => None,
    })
}

/// Asks those who may only refuse a creation or an update; gives back their warnings, into `told` when they refuse.
pub(crate) async fn validate(
    admitting: Admitting<'_>,
    object: Option<&Value>,
    told: &mut Vec<String>,
) -> Result<Vec<String>, Status> {
    // When nothing changes, nobody needs to be asked.
    let Some(object) = object else { return Ok(Vec::new()) };
    let request = admitting.request(object);
    admitting.review(&request, Some(object), Said::Write, told).await
}

/// Asks those who may refuse a deletion; gives back their warnings, into `told` when they refuse.
pub(crate) async fn validate_deletion(
    author: &Author<'_>,
    act: &Act<'_>,
    old: &Value,
    terms: &Terms,
    told: &mut Vec<String>,
) -> Result<Vec<String>, Status> {
    let admitting = Admitting { author, act, operation: Operation::Delete, old: Some(old) };
    let request = admitting.request(old);
    admitting.review(&request, None, Said::Deletion(terms), told).await
}

/// Asks those who may refuse something that is posted to a subresource.
pub(crate) async fn ask(
    author: &Author<'_>,
    act: &Act<'_>,
    posted: Posted,
    sent: &Value,
) -> Result<(), Status> {
    let admitting = Admitting { author, act, operation: Operation::Create, old: None };
    let kind = Kind { group: posted.group, version: "v1", kind: posted.kind };
    let request = Request { subresource: posted.subresource, kind, ..admitting.request(sent) };
    admitting.review(&request, Some(sent), Said::Write, &mut Vec::new()).await.map(drop)
}

impl<'a> Admitting<'a> {
    /// What is asked for; a name that is not in the path is the object's.
    fn request(&self, object: &'a Value) -> Request<'a> {
        let Admitting { author, act, operation, old } = *self;
        let resource = act.resource;
        Request {
            operation,
            resource: Named {
                group: &resource.group,
                version: &resource.version,
                resource: &resource.plural,
            },
            subresource: act.part.subresource().unwrap_or_default(),
            kind: match act.part {
                Part::Scale => Kind { group: "autoscaling", version: "v1", kind: "Scale" },
                _ => Kind { group: &resource.group, version: &resource.version, kind: &resource.kind },
            },
            namespace: if lifecycle::is_namespaces(resource) { act.name } else { act.namespace },
            name: if act.name.is_empty() { meta::text(object, "name") } else { act.name },
            path_name: act.name,
            user: author.user,
            old,
            dry_run: act.dry_run,
            now: act.now,
        }
    }

    /// Asks the functions and then the webhooks that may only refuse.
    async fn review(
        &self,
        request: &Request<'_>,
        object: Option<&Value>,
        said: Said<'_>,
        told: &mut Vec<String>,
    ) -> Result<Vec<String>, Status> {
        let mut warnings = Vec::new();
        let admitted =
            self.author.core.admission.validate(request, &View(self.author), object, &mut warnings);
        admitted.inspect_err(|_| told.append(&mut warnings))?;
        let mut object = object.map(Cow::Borrowed);
        let asked = self.consult(WebhookKind::Validating, request, &mut object, said, &mut warnings).await;
        asked.inspect_err(|_| told.append(&mut warnings))?;
        let advice = self.author.core.admission.advise(request, object.as_deref());
        if !advice.is_empty()
            && let Ok(advice) = tokio::time::timeout(ADVICE_WITHIN, join_all(advice)).await
        {
            warnings.extend(advice.into_iter().flatten());
        }
        Ok(warnings)
    }

    /// Asks the webhooks of one kind, if there are any. Mutating ones leave the object as they made it.
    async fn consult(
        &self,
        kind: WebhookKind,
        request: &Request<'_>,
        object: &mut Option<Cow<'_, Value>>,
        said: Said<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let core = self.author.core;
        let webhooks = core.webhooks();
        if webhooks.is_empty(kind) {
            return Ok(());
        }
        let equivalents = self.equivalents();
        let options = match said {
            Said::Write => options::of_write(self.author.query, self.act, request.operation),
            Said::Deletion(terms) => options::of_deletion(self.act, terms),
        };
        let mut admission = webhook::Admission {
            operation: request.operation,
            kind: request.kind,
            resource: request.resource,
            subresource: request.subresource,
            equivalents: &equivalents,
            name: request.name,
            namespace: request.namespace,
            user: request.user,
            dry_run: request.dry_run,
            object: object.take().map(Cow::into_owned),
            old_object: request.old,
            options: Some(&options),
        };
        let asked = if kind == WebhookKind::Mutating {
            let patch = |object: &Value, patch: &Value| {
                berth_hub_merge::json_patch(object, patch).map_err(|error| error.to_string())
            };
            let around = Around { lookup: core, patch: &patch };
            core.webhook_client.mutate(&webhooks, &mut admission, around, warnings).await
        } else {
            let patch =
                |_: &Value, _: &Value| Err("a validating webhook cannot change the object".to_owned());
            let around = Around { lookup: core, patch: &patch };
            core.webhook_client.validate(&webhooks, &admission, around, warnings).await
        };
        *object = admission.object.map(Cow::Owned);
        asked.map_err(refused)
    }

    /// The other versions an object is served in, by which a webhook may have asked for it.
    fn equivalents(&self) -> Vec<(Named<'a>, Kind<'a>)> {
        let Admitting { author, act, .. } = *self;
        let others = author.registry.all().iter().filter(|other| {
            other.is_custom()
                && other.storage == act.resource.storage
                && other.version != act.resource.version
        });
        others
            .map(|other| {
                (
                    Named { group: &other.group, version: &other.version, resource: &other.plural },
                    Kind { group: &other.group, version: &other.version, kind: &other.kind },
                )
            })
            .collect()
    }
}
