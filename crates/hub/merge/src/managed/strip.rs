//! Fields nobody manages: what the server sets itself, and what names the object.

use std::sync::LazyLock;

use crate::fields::{Element, FieldSet};

static STRIPPED: LazyLock<FieldSet<'static>> = LazyLock::new(|| {
    let mut set = FieldSet::new();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert([Element::field(name)]);
    }
    for name in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        set.insert([Element::field("metadata"), Element::field(name)]);
    }
    set
});

/// A writer's fields without those.
pub(super) fn strip(set: FieldSet<'_>) -> FieldSet<'_> {
    set.difference(&STRIPPED)
}

/// Paths of plain fields as a set.
pub(super) fn reset_set<'a>(paths: &'a [&'a [&'a str]]) -> FieldSet<'a> {
    let mut set = FieldSet::new();
    for path in paths {
        set.insert(path.iter().map(|name| Element::field(name)));
    }
    set
}
