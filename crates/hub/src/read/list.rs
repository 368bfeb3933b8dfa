//! Lists: which revision, which page, which objects.
//!
//! Owns the rules of `resourceVersion`, `resourceVersionMatch`, `limit` and `continue`. A page after the first comes
//! from the revision of the first, however much was written in between, as long as the history is kept.

use std::sync::Arc;
use std::time::Duration;

use berth_hub_store::{Entry, ListError, ListQuery, Revision};
use berth_hub_wire::options::parse_resource_version;
use berth_hub_wire::{ContinueToken, ListMeta, ListOptions, PageRevision, Status, VersionMatch};
use bytes::Bytes;

use super::{Selection, Shaper};
use crate::core::Core;
use crate::registry::Resource;

/// How long a request waits for a revision that has not come yet, as kube-apiserver's cache does.
const REVISION_WAIT: Duration = Duration::from_secs(3);
/// A list that reads on past objects its selectors leave out.
const CHUNK_MIN: usize = 500;

/// A list in the form the client asked for.
pub(crate) async fn list(
    core: &Core,
    shaper: &Shaper<'_>,
    namespace: Option<&str>,
    selection: &Selection,
    options: &ListOptions,
) -> Result<Bytes, Status> {
    let page = page(core, shaper, namespace, selection, options).await?;
    Ok(shaper.many(&page.meta, &page.entries))
}

/// The objects of a list and what is said about them.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) meta: ListMeta,
    pub(crate) entries: Vec<Arc<Entry>>,
}

/// The objects of one page.
pub(crate) async fn page(
    core: &Core,
    shaper: &Shaper<'_>,
    namespace: Option<&str>,
    selection: &Selection,
    options: &ListOptions,
) -> Result<Page, Status> {
    let limit = usize::try_from(options.limit)
        .ok()
        .filter(|limit| *limit > 0 && !unlimited(shaper.resource, options));
    let token = token(options)?;
    let at = match &token {
        Some(ContinueToken { revision: PageRevision::At(revision), .. }) => Some(Revision(*revision)),
        Some(_) => None,
        None => revision(core, options, limit.is_some()).await?,
    };
    // Tokens name keys relative to their list.
    let mut after: Option<(String, String)> = token.as_ref().map(|token| {
        let (own, name) = namespace.map_or_else(|| token.namespace_and_name(), |own| (own, &token.after));
        (own.to_owned(), name.to_owned())
    });
    let storage = &shaper.resource.storage;
    let across = namespace.is_none();
    let mut found: Vec<Arc<Entry>> = Vec::new();
    let mut listed_at = at;
    loop {
        // Without selectors one look is enough; with them, read on until the page is full.
        let wanted =
            limit.map(
                |limit| if selection.is_everything() { limit } else { (limit - found.len()).max(CHUNK_MIN) },
            );
        let query = ListQuery {
            namespace,
            at: listed_at,
            after: after.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str())),
            limit: wanted,
        };
        let listing =
            core.ledger.list(storage, &query).map_err(|error| refused(error, token.as_ref(), core))?;
        listed_at = Some(listing.revision);
        let (more, remaining) = (listing.more(), listing.remaining);
        let mut taken = 0;
        let total = listing.entries.len();
        for entry in listing.entries {
            taken += 1;
            after = Some((entry.key().namespace.to_string(), entry.key().name.to_string()));
            if selection.matches(&entry) {
                found.push(entry);
                if limit.is_some_and(|limit| found.len() == limit) {
                    break;
                }
            }
        }
        let full = limit.is_some_and(|limit| found.len() == limit);
        let left = remaining + (total - taken);
        if !full && more {
            continue;
        }
        let mut meta = ListMeta { resource_version: listing.revision.to_string(), ..ListMeta::default() };
        if full
            && left > 0
            && let Some((namespace, name)) = &after
        {
            let after =
                if across && !namespace.is_empty() { format!("{namespace}/{name}") } else { name.clone() };
            meta.continue_token =
                ContinueToken { revision: PageRevision::At(listing.revision.0), after }.encode();
            meta.remaining_item_count =
                selection.is_everything().then(|| i64::try_from(left).unwrap_or(i64::MAX));
        }
        return Ok(Page { meta, entries: found });
    }
}

/// Where a list goes on, which says by itself which state it is read from.
fn token(options: &ListOptions) -> Result<Option<ContinueToken>, Status> {
    if options.continue_token.is_empty() {
        return Ok(None);
    }
    let token = ContinueToken::decode(&options.continue_token)?;
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(Some(token))
}

/// Whether a limit does not count. Who takes any state gets it from the real server's cache, which has no pages and which
/// events are not in; clients are written for that.
fn unlimited(resource: &Resource, options: &ListOptions) -> bool {
    options.continue_token.is_empty()
        && options.resource_version == "0"
        && resource.storage.as_str() != "events"
}

/// The revision a first page is read at; `None` is the newest.
async fn revision(core: &Core, options: &ListOptions, limited: bool) -> Result<Option<Revision>, Status> {
    let asked = parse_resource_version(&options.resource_version).map_err(|cause| {
        Status::bad_request(format!("invalid resource version: {}: {}", cause.field, cause.message))
    })?;
    if asked == 0 {
        return Ok(None);
    }
    let exact = match options.resource_version_match {
        Some(kind) => kind == VersionMatch::Exact,
        // The oldest rule: a first page at a revision is exactly that revision.
        None => limited,
    };
    reach(core, Revision(asked)).await?;
    Ok(exact.then_some(Revision(asked)))
}

/// Waits a little until a revision was reached.
pub(crate) async fn reach(core: &Core, asked: Revision) -> Result<(), Status> {
    match tokio::time::timeout(REVISION_WAIT, core.ledger.reach(asked)).await {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(Status::too_large_resource_version(asked.0, core.ledger.revision().0)),
    }
}

fn refused(error: ListError, token: Option<&ContinueToken>, core: &Core) -> Status {
    match error {
        ListError::Compacted { .. } => match token {
            Some(token) => token.expired(),
            None => Status::list_expired(),
        },
        ListError::Future { asked, .. } => {
            Status::too_large_resource_version(asked.0, core.ledger.revision().0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_for_nothing_where_any_state_will_do_except_for_events() {
        let kind = |group: &str, name: &str| {
            Resource::builtin_kind(berth_hub_kinds::Builtins::load().kind(group, "v1", name).unwrap())
        };
        let any = ListOptions { limit: 1, resource_version: "0".to_owned(), ..ListOptions::default() };
        assert!(unlimited(&kind("", "Pod"), &any));
        assert!(!unlimited(&kind("", "Event"), &any));
        assert!(!unlimited(&kind("events.k8s.io", "Event"), &any));
        let newest = ListOptions { resource_version: String::new(), ..any };
        assert!(!unlimited(&kind("", "Pod"), &newest));
    }

    #[test]
    fn a_list_that_goes_on_names_no_revision() {
        let start = ContinueToken { revision: PageRevision::At(5), after: "a".to_owned() };
        let asked = |version: &str| {
            let query = format!("continue={}&resourceVersion={version}", start.encode());
            let options = ListOptions::parse(&berth_hub_wire::Query::parse(Some(&query))).unwrap();
            token(&options).map_err(|status| (status.code(), status.message))
        };
        assert_eq!(asked(""), Ok(Some(start.clone())));
        assert_eq!(asked("0"), Ok(Some(start.clone())));
        let refusal = "specifying resource version is not allowed when using continue".to_owned();
        assert_eq!(asked("7"), Err((400, refusal)));
    }
}
