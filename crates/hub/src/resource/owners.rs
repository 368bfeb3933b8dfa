//! Owner references said twice.
//!
//! Owns the removal of exact duplicates and the warning about them. Whether a reference is sound is judged by validation.

use std::collections::BTreeSet;

use serde_json::Value;

/// When duplicates were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// As the caller sent them.
    Sent,
    /// After mutating admission, and in patches always.
    Admitted,
}

/// Removes references that say the same thing twice; a warning names their uids.
pub(super) fn dedup(object: &mut Value, moment: Moment) -> Option<String> {
    let references = object.get_mut("metadata")?.get_mut("ownerReferences")?.as_array_mut()?;
    let mut kept: Vec<Value> = Vec::with_capacity(references.len());
    let mut seen = BTreeSet::new();
    let mut repeated = Vec::new();
    for reference in references.drain(..) {
        let uid = reference.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        if seen.contains(&uid) && kept.contains(&reference) {
            repeated.push(uid);
        } else {
            seen.insert(uid);
            kept.push(reference);
        }
    }
    *references = kept;
    if repeated.is_empty() {
        return None;
    }
    let place = match moment {
        Moment::Sent => "",
        Moment::Admitted => " after mutating admission happens",
    };
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries{place}; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        repeated.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned(uids: &[(&str, &str)]) -> Value {
        let references: Vec<Value> =
            uids.iter().map(|(uid, name)| json!({"uid": uid, "name": name})).collect();
        json!({"metadata": {"ownerReferences": references}})
    }

    #[test]
    fn exact_duplicates_go_and_are_named() {
        let mut object = owned(&[("u1", "a"), ("u1", "a"), ("u2", "b"), ("u1", "a")]);
        let warning = dedup(&mut object, Moment::Sent).unwrap();
        assert_eq!(object, owned(&[("u1", "a"), ("u2", "b")]));
        assert!(
            warning.starts_with(".metadata.ownerReferences contains duplicate entries; API server dedups")
        );
        assert!(warning.ends_with("duplicate UID(s) observed: u1, u1"));
    }

    #[test]
    fn references_with_one_uid_and_different_fields_stay() {
        let mut object = owned(&[("u1", "a"), ("u1", "b")]);
        assert_eq!(dedup(&mut object, Moment::Admitted), None);
        assert_eq!(object, owned(&[("u1", "a"), ("u1", "b")]));
    }
}
