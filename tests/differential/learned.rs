//! What one server said about each object, for the placeholders of requests.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use serde_json::{Value, json};

use crate::exchange::{Answer, Request};

/// Revisions, uids and continue tokens by path.
#[derive(Default)]
pub(crate) struct Learned {
    objects: HashMap<String, (String, String)>,
    tokens: HashMap<String, String>,
    /// The newest revision of any object.
    seen: u64,
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
        filled.target = filled.target.replace("{seen}", &self.seen.max(1).to_string());
        for (placeholder, change) in TOKENS {
            if filled.target.contains(placeholder) {
                filled.target = filled.target.replace(placeholder, &changed(&token, *change));
            }
        }
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
            self.seen = self.seen.max(rv.parse().unwrap_or(0));
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

type Change = fn(&mut Value);

/// What else may be made of a continue token: the latest state, and what no server gives out.
const TOKENS: &[(&str, Change)] = &[
    ("{token:latest}", |token| token["rv"] = (-1).into()),
    ("{token:zero}", |token| token["rv"] = 0.into()),
    ("{token:version}", |token| token["v"] = "meta.k8s.io/v9".into()),
    ("{token:start}", |token| token["start"] = "../x".into()),
    ("{token:cut}", |token| token["start"] = "".into()),
];

fn changed(token: &str, change: Change) -> String {
    let known = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut token = known.unwrap_or_else(|| json!({"v": "meta.k8s.io/v1", "rv": 1, "start": "a\u{0}"}));
    change(&mut token);
    URL_SAFE_NO_PAD.encode(token.to_string())
}
