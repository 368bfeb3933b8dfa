//! Which behaviour a subresource has.
//!
//! Owns the table. A subresource is a part of its object, or one of a few behaviours; there is nothing else to it.

use crate::registry::Resource;

use super::act::Part;

/// What happens at a subresource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// It is read and written as a part of the object: [`super::update`], [`super::patch`].
    Part(Part),
    /// It is another shape of the object: [`super::scale`].
    Scale,
    /// What is posted says where a pod runs: [`super::binding`].
    Binding,
    /// What is posted asks a pod to go: [`super::eviction`].
    Eviction,
    /// What is posted asks for a token: the guard's.
    Token,
}

/// Built-in behaviours by group, plural and name. `status` and `scale` are everyone's.
const TABLE: [(&str, &str, &str, Behaviour); 4] = [
    ("", "namespaces", "finalize", Behaviour::Part(Part::Finalize)),
    ("", "pods", "binding", Behaviour::Binding),
    ("", "pods", "eviction", Behaviour::Eviction),
    ("", "serviceaccounts", "token", Behaviour::Token),
];

/// The behaviour of a subresource, if it is served.
pub(crate) fn find(resource: &Resource, name: &str) -> Option<Behaviour> {
    if !resource.has_subresource(name) {
        return None;
    }
    match name {
        "status" => Some(Behaviour::Part(Part::Status)),
        "scale" => Some(Behaviour::Scale),
        _ => TABLE
            .iter()
            .find(|(group, plural, known, _)| {
                *group == &*resource.group && *plural == &*resource.plural && *known == name
            })
            .map(|(.., behaviour)| *behaviour),
    }
}
