//! One request, apart from its body.

use std::sync::Arc;

use berth_hub_guard::User;
use berth_hub_wire::Query;
use berth_hub_wire::options::manager_name;
use http::{HeaderMap, Method, header};
use jiff::Timestamp;

use crate::core::Core;
use crate::registry::Registry;
use crate::write::Author;

/// The facts of a request that every step may need.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) core: Arc<Core>,
    /// The resources served when it came in: the same ones until it is answered.
    pub(crate) registry: Arc<Registry>,
    pub(crate) user: Arc<User>,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    pub(crate) pretty: bool,
    pub(crate) now: Timestamp,
}

impl Call {
    /// Whoever writes what this request asks for.
    pub(crate) fn author(&self) -> Author<'_> {
        Author {
            core: &self.core,
            registry: &self.registry,
            user: &self.user,
            query: &self.query,
            now: self.now,
        }
    }

    /// A header as text.
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Every line of `Accept`, as one.
    pub(crate) fn accept(&self) -> Option<String> {
        let lines: Vec<&str> =
            self.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        (!lines.is_empty()).then(|| lines.join(","))
    }

    /// Who owns the fields this request writes.
    pub(crate) fn manager(&self, named: &str) -> String {
        manager_name(named, self.header(header::USER_AGENT))
    }
}
