//! Paths: which resource, which object, which document a request is about, and what it wants done.
//!
//! Owns the reading of paths and of the verb, as authorization and dispatch need them. Never knows what is served: a
//! path of the right form for a resource that does not exist is a route all the same.

use crate::percent;
use crate::query::Query;
use crate::selector::FieldSelector;

/// Segments of a path that are read; the deepest path served has nine.
pub const SEGMENTS_MAX: usize = 32;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Follow changes.
    Watch,
    /// Make one.
    Create,
    /// Replace one.
    Update,
    /// Change one.
    Patch,
    /// Delete one.
    Delete,
    /// Delete many.
    DeleteCollection,
    /// A method that stands for nothing here.
    Unknown,
}

impl Verb {
    /// The verb's name, as roles spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Unknown => "",
        }
    }
}

/// A request about a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRoute {
    /// What is asked for.
    pub verb: Verb,
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace; empty at the cluster scope. For one `Namespace` object it is that namespace's name, as
    /// authorization sees it.
    pub namespace: String,
    /// The plural.
    pub resource: String,
    /// The object's name; empty for collections.
    pub name: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// What follows the subresource, as in `proxy/a/b`.
    pub rest: Vec<String>,
    /// Whether the path has the old form `/watch/…`.
    pub is_watch_path: bool,
    /// The one name that a list's or a watch's field selector allows; authorization takes it for the object's name.
    pub selected_name: Option<String>,
}

impl ResourceRoute {
    /// The namespace objects are stored under: empty for `Namespace` objects, which only look as if they had one.
    pub fn object_namespace(&self) -> &str {
        if self.is_namespace_object() { "" } else { &self.namespace }
    }

    /// Whether the request is about the resource `namespaces` of the core group.
    pub fn is_namespace_object(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces"
    }

    /// The name as authorization sees it.
    pub fn attribute_name(&self) -> &str {
        self.selected_name.as_deref().unwrap_or(&self.name)
    }
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// A resource.
    Resource(ResourceRoute),
    /// `/api`
    CoreVersions,
    /// `/api/v1`
    CoreResources {
        /// The version.
        version: String,
    },
    /// `/apis`
    Groups,
    /// `/apis/apps`
    Group {
        /// The group.
        group: String,
    },
    /// `/apis/apps/v1`
    GroupResources {
        /// The group.
        group: String,
        /// The version.
        version: String,
    },
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz`, and one check of theirs
    Health {
        /// `healthz`, `livez` or `readyz`.
        endpoint: String,
        /// The check below it, or empty.
        check: String,
    },
    /// `/metrics`
    Metrics,
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/apis/apps/v1`: the group-version's path
    OpenApiDocument {
        /// `api/v1` or `apis/apps/v1`.
        path: String,
    },
    /// `/openapi/v2`, which is not served
    OpenApiV2,
    /// `/`
    Root,
    /// Anything else.
    Other,
}

/// A path that cannot be read at all: nothing is served there, which is a 404 like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// An escape that is not one.
    #[error("the path has a broken percent escape")]
    Escape,
    /// A segment that no name can be.
    #[error(
        "the path has a segment that is `.`, `..`, or holds a slash, a percent sign or a control character"
    )]
    Segment,
    /// Two slashes in a row.
    #[error("the path has an empty segment")]
    Empty,
    /// More segments than any path has.
    #[error("the path has more than {SEGMENTS_MAX} segments")]
    TooLong,
}

/// Reads a method, a path (still encoded, as it came) and a query.
pub fn parse(method: &str, path: &str, query: &Query) -> Result<Route, BadPath> {
    let segments = segments(path)?;
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    Ok(match parts.as_slice() {
        [] => Route::Root,
        ["api"] => Route::CoreVersions,
        ["api", version] => Route::CoreResources { version: (*version).to_owned() },
        ["api", version, rest @ ..] => resource(method, "", version, rest, query),
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group { group: (*group).to_owned() },
        ["apis", group, version] => {
            Route::GroupResources { group: (*group).to_owned(), version: (*version).to_owned() }
        }
        ["apis", group, version, rest @ ..] => resource(method, group, version, rest, query),
        ["version"] => Route::Version,
        [endpoint @ ("healthz" | "livez" | "readyz"), check @ ..] => {
            Route::Health { endpoint: (*endpoint).to_owned(), check: check.join("/") }
        }
        ["metrics"] => Route::Metrics,
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", document @ ..] => Route::OpenApiDocument { path: document.join("/") },
        _ => Route::Other,
    })
}

/// The decoded segments of a path, without those of the slashes at its ends.
fn segments(path: &str) -> Result<Vec<String>, BadPath> {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let mut segments = Vec::new();
    for encoded in path.split('/') {
        if segments.len() >= SEGMENTS_MAX {
            return Err(BadPath::TooLong);
        }
        let segment = percent::decode(encoded, false).ok_or(BadPath::Escape)?;
        if segment.is_empty() {
            return Err(BadPath::Empty);
        }
        // Names with these could not be told apart from paths once they are put together again.
        let is_bad = matches!(segment.as_str(), "." | "..")
            || segment.chars().any(|c| matches!(c, '/' | '%' | '\\') || c.is_control());
        if is_bad {
            return Err(BadPath::Segment);
        }
        segments.push(segment);
    }
    Ok(segments)
}

fn resource(method: &str, group: &str, version: &str, mut parts: &[&str], query: &Query) -> Route {
    let is_watch_path = matches!(parts, ["watch", _, ..]);
    if is_watch_path {
        parts = &parts[1..];
    }
    let mut verb = match method {
        _ if is_watch_path => Verb::Watch,
        "POST" => Verb::Create,
        "GET" | "HEAD" => Verb::Get,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" => Verb::Delete,
        _ => Verb::Unknown,
    };
    let mut namespace = "";
    if let ["namespaces", name, below @ ..] = parts {
        namespace = name;
        // `/namespaces/x/status` is about the namespace, `/namespaces/x/pods` about pods in it.
        if matches!(below, [first, ..] if !matches!(*first, "status" | "finalize")) {
            parts = below;
        }
    }
    let name = parts.get(1).copied().unwrap_or_default();
    let mut selected_name = None;
    if name.is_empty() {
        if verb == Verb::Get {
            verb = if query.boolean("watch").unwrap_or(false) { Verb::Watch } else { Verb::List };
        } else if verb == Verb::Delete {
            verb = Verb::DeleteCollection;
        }
        if matches!(verb, Verb::List | Verb::Watch)
            && let Ok(selector) = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default())
        {
            selected_name =
                selector.exact("metadata.name").filter(|name| is_path_segment(name)).map(str::to_owned);
        }
    }
    Route::Resource(ResourceRoute {
        verb,
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        resource: parts.first().copied().unwrap_or_default().to_owned(),
        name: name.to_owned(),
        subresource: parts.get(2).copied().unwrap_or_default().to_owned(),
        rest: parts.iter().skip(3).map(|part| (*part).to_owned()).collect(),
        is_watch_path,
        selected_name,
    })
}

fn is_path_segment(name: &str) -> bool {
    !name.is_empty() && !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn route(method: &str, target: &str) -> Route {
        let (path, query) = target.split_once('?').map_or((target, None), |(p, q)| (p, Some(q)));
        parse(method, path, &Query::parse(query)).unwrap()
    }

    /// verb, group, version, namespace, resource, name, subresource
    fn shown(method: &str, target: &str) -> String {
        match route(method, target) {
            Route::Resource(r) => {
                [r.verb.as_str(), &r.group, &r.version, &r.namespace, &r.resource, &r.name, &r.subresource]
                    .join(" ")
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn resources_are_found_in_every_scope() {
        for (method, target, want) in [
            ("GET", "/api/v1/namespaces/x/pods/y/status", "get  v1 x pods y status"),
            ("GET", "/api/v1/namespaces/x/pods", "list  v1 x pods  "),
            ("GET", "/api/v1/pods?watch=true", "watch  v1  pods  "),
            ("GET", "/api/v1/pods?watch=0", "list  v1  pods  "),
            ("GET", "/api/v1/pods?watch", "watch  v1  pods  "),
            ("HEAD", "/api/v1/nodes/n", "get  v1  nodes n "),
            ("POST", "/api/v1/namespaces", "create  v1  namespaces  "),
            ("GET", "/api/v1/namespaces/x", "get  v1 x namespaces x "),
            ("PUT", "/api/v1/namespaces/x/finalize", "update  v1 x namespaces x finalize"),
            ("GET", "/api/v1/namespaces/x/status", "get  v1 x namespaces x status"),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/x/deployments/d/scale",
                "patch apps v1 x deployments d scale",
            ),
            ("DELETE", "/apis/apps/v1/namespaces/x/deployments", "deletecollection apps v1 x deployments  "),
            ("DELETE", "/apis/apps/v1/namespaces/x/deployments/d", "delete apps v1 x deployments d "),
            ("GET", "/api/v1/watch/namespaces/x/pods", "watch  v1 x pods  "),
            ("GET", "/api/v1/watch/pods/y", "watch  v1  pods y "),
            ("OPTIONS", "/api/v1/pods", "  v1  pods  "),
            ("GET", "/api/v1/namespaces/x/pods/y/", "get  v1 x pods y "),
            ("GET", "/api/v1/namespaces/x/services/s%3A80/proxy/a/b", "get  v1 x services s:80 proxy"),
        ] {
            assert_eq!(shown(method, target), want, "{method} {target}");
        }
    }

    #[test]
    fn documents_have_routes_of_their_own() {
        for (target, want) in [
            ("/", Route::Root),
            ("/api", Route::CoreVersions),
            ("/api/", Route::CoreVersions),
            ("/api/v1", Route::CoreResources { version: "v1".into() }),
            ("/apis", Route::Groups),
            ("/apis/apps", Route::Group { group: "apps".into() }),
            ("/apis/apps/v1", Route::GroupResources { group: "apps".into(), version: "v1".into() }),
            ("/version", Route::Version),
            ("/readyz", Route::Health { endpoint: "readyz".into(), check: String::new() }),
            ("/livez/ping", Route::Health { endpoint: "livez".into(), check: "ping".into() }),
            ("/metrics", Route::Metrics),
            ("/openapi/v2", Route::OpenApiV2),
            ("/openapi/v3", Route::OpenApiIndex),
            ("/openapi/v3/apis/apps/v1", Route::OpenApiDocument { path: "apis/apps/v1".into() }),
            ("/logs", Route::Other),
        ] {
            assert_eq!(route("GET", target), want, "{target}");
        }
    }

    #[test]
    fn a_selected_name_is_known_to_authorization_only() {
        let Route::Resource(found) = route("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx") else {
            panic!()
        };
        assert_eq!((found.verb, found.name.as_str(), found.attribute_name()), (Verb::List, "", "x"));
    }

    #[test]
    fn a_namespace_object_is_stored_without_a_namespace() {
        let Route::Resource(found) = route("GET", "/api/v1/namespaces/x") else { panic!() };
        assert_eq!((found.namespace.as_str(), found.object_namespace()), ("x", ""));
        let Route::Resource(found) = route("GET", "/api/v1/namespaces/x/pods") else { panic!() };
        assert_eq!(found.object_namespace(), "x");
    }

    #[test]
    fn bad_segments_are_refused() {
        for (path, want) in [
            ("/api/v1//pods", BadPath::Empty),
            ("/api/v1/namespaces/../pods", BadPath::Segment),
            ("/api/v1/namespaces/%2e%2e/pods", BadPath::Segment),
            ("/api/v1/pods/a%2Fb", BadPath::Segment),
            ("/api/v1/pods/a%00", BadPath::Segment),
            ("/api/v1/pods/%zz", BadPath::Escape),
        ] {
            assert_eq!(parse("GET", path, &Query::default()), Err(want), "{path}");
        }
        assert_eq!(parse("GET", &"/a".repeat(SEGMENTS_MAX + 1), &Query::default()), Err(BadPath::TooLong));
    }

    proptest! {
        #[test]
        fn any_path_is_a_route_or_refused(path in "[/a-z.%0-9]{0,60}") {
            let _ = parse("GET", &path, &Query::default());
        }
    }
}
