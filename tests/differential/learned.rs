//! What one server said about each object, for the placeholders of requests.

use std::collections::HashMap;

use http::Method;
use serde_json::Value;

use crate::exchange::{Answer, Request};

/// Revisions, uids and continue tokens by path.
#[derive(Default)]
pub(crate) struct Learned {
    objects: HashMap<String, (String, String)>,
    tokens: HashMap<String, String>,
}

impl Learned {
    pub(crate) fn fill(&self, request: &Request) -> Request {
        let path = Self::object(&request.target);
        let (rv, uid) = self
            .objects
            .get(&path)
            .cloned()
            .unwrap_or_else(|| ("1".into(), "00000000-0000-0000-0000-000000000000".into()));
        let token = self.tokens.get(&path).cloned().unwrap_or_default();
        let mut filled = request.clone();
        filled.target = filled.target.replace("{rv}", &rv).replace("{token}", &token);
        filled.body = filled.body.map(|body| body.replace("{rv}", &rv).replace("{uid}", &uid));
        filled
    }

    pub(crate) fn learn(&mut self, request: &Request, answer: &Answer) {
        let text = |pointer: &str| answer.body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let path = Self::object(&request.target);
        if let (Some(rv), Some(uid)) = (text("/metadata/resourceVersion"), text("/metadata/uid")) {
            let path = match (request.method == Method::POST, text("/metadata/name")) {
                (true, Some(name)) => format!("{path}/{name}"),
                _ => path,
            };
            self.objects.insert(path, (rv, uid));
        } else if let Some(token) = text("/metadata/continue") {
            self.tokens.insert(path, token);
        }
    }

    fn object(target: &str) -> String {
        let target = target.replacen("/v1beta1/", "/v1/", 1);
        target
            .split('?')
            .next()
            .unwrap_or_default()
            .trim_end_matches("/status")
            .trim_end_matches("/scale")
            .to_owned()
    }
}
