//! How many updaters an object remembers: beyond that, the oldest become one.

use super::entry::{Entry, Identity, Operation};

/// Entries of updaters that are kept apart.
pub const MAX_UPDATE_MANAGERS: usize = 10;

/// The name of those that were merged.
const OLDEST: &str = "ancient-changes";

/// Merges the oldest updaters, by version, until there are few enough.
pub(super) fn cap(entries: &mut Vec<Entry<'_>>) -> Result<(), String> {
    let is_update = |entry: &&Entry<'_>| entry.identity.operation == Operation::Update;
    let mut count = entries.iter().filter(is_update).count();
    if count <= MAX_UPDATE_MANAGERS {
        return Ok(());
    }
    let mut updaters: Vec<(String, String)> = entries
        .iter()
        .filter(is_update)
        .map(|entry| (entry.time.as_deref().unwrap_or_default().to_owned(), entry.identity.sort_key()))
        .collect();
    updaters.sort();
    // The first updater of each version, which becomes the bucket when a second one has to go.
    let mut firsts: Vec<(String, String)> = Vec::new();
    for (_, key) in updaters {
        if count <= MAX_UPDATE_MANAGERS {
            break;
        }
        let at = |entries: &[Entry<'_>], key: &str| {
            entries.iter().position(|entry| entry.identity.sort_key() == key)
        };
        let Some(index) = at(entries, &key) else { continue };
        let version = entries[index].api_version.clone().into_owned();
        let Some((_, first)) = firsts.iter().find(|(known, _)| *known == version) else {
            firsts.push((version, key));
            continue;
        };
        let first = first.clone();
        let mut entry = entries.remove(index);
        entry.open()?;
        let identity = Identity::new(OLDEST, Operation::Update, version, "");
        let bucket_key = identity.sort_key();
        if at(entries, &bucket_key).is_none()
            && let Some(index) = at(entries, &first)
        {
            entries[index].identity = identity;
        }
        if let Some(index) = at(entries, &bucket_key) {
            let bucket = &mut entries[index];
            bucket.open()?;
            bucket.set = std::mem::take(&mut bucket.set).union(entry.set);
            // The later of the two.
            bucket.time = entry.time;
            bucket.source = None;
        }
        count -= 1;
    }
    Ok(())
}
