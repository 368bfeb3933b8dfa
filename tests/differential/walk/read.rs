//! Requests that read: one object, many, a page of many.

use super::{PARTIAL, PARTIAL_LIST, TABLE, Walk};
use crate::exchange::{Request, get};
use crate::vocabulary::Kind;

impl Walk {
    pub(super) fn get(&mut self, kind: &Kind) -> Request {
        let mut request = get(self.path(kind));
        request.accept = *self.random.pick(&[None, None, Some(TABLE), Some(PARTIAL)]);
        if request.accept == Some(TABLE) && self.random.chance(50) {
            request.target.push_str(*self.random.pick(&[
                "?includeObject=None",
                "?includeObject=Object",
                "?includeObject=Metadata",
            ]));
            return request;
        }
        if self.random.chance(10) && kind.status {
            request.target.push_str("/status");
        }
        if self.random.chance(4) {
            request.target.push_str(*self.random.pick(&["/nothing", "/status", "/scale"]));
        }
        request
    }

    pub(super) fn list(&mut self, kind: &Kind) -> Request {
        let collection = kind.collection(&self.namespace);
        let own = kind.own(self.number);
        let query = match self.random.below(12) {
            0 if kind.namespaced && own.is_empty() => "limit=1".to_owned(),
            1 if kind.namespaced && own.is_empty() => "limit=1&continue={token}".to_owned(),
            2 => format!("labelSelector=colour%3Dred{own}"),
            3 => format!("labelSelector=colour+in+(red,blue),colour!%3Dgreen{own}"),
            4 => "labelSelector=colour+is+red".to_owned(),
            5 => format!(
                "fieldSelector=metadata.name%3D{}",
                if kind.namespaced { "a".into() } else { format!("a-s{}", self.number) }
            ),
            6 => "fieldSelector=spec.nothing%3Da".to_owned(),
            7 => format!("resourceVersion=0{own}"),
            8 => "resourceVersionMatch=Exact".to_owned(),
            9 => "limit=1&continue=garbage".to_owned(),
            10 if kind.kind == "Widget" => "fieldSelector=spec.colour%3Dred".to_owned(),
            _ => own.trim_start_matches('&').to_owned(),
        };
        let mut request = get(format!("{collection}?{query}"));
        request.accept = *self.random.pick(&[None, None, None, Some(PARTIAL_LIST), Some(TABLE)]);
        request
    }

    /// A page of a list, in one namespace or over all of them, and the pages after it.
    pub(super) fn page(&mut self, kind: &Kind) -> Request {
        let collection = if kind.namespaced && self.random.chance(60) {
            format!("{}/{}", kind.root, kind.plural)
        } else {
            kind.collection(&self.namespace)
        };
        let limit = 1 + self.random.below(3);
        let query = match self.random.below(16) {
            0..4 => format!("limit={limit}"),
            4..9 => format!("limit={limit}&continue={{token}}"),
            9 => "continue={token}".to_owned(),
            10 => format!("limit={limit}&labelSelector=colour%3Dred"),
            11 => format!("limit={limit}&labelSelector=colour%3Dred&continue={{token}}"),
            12 => format!("limit={limit}&continue={{token:latest}}"),
            13 => {
                let token =
                    *self.random.pick(&["{token:version}", "{token:start}", "{token:zero}", "{token:cut}"]);
                format!("limit={limit}&continue={token}")
            }
            14 => {
                let revision = *self.random.pick(&[
                    "resourceVersion=0",
                    "resourceVersion=0&resourceVersionMatch=NotOlderThan",
                    "resourceVersion={seen}&resourceVersionMatch=NotOlderThan",
                    "resourceVersion={seen}&resourceVersionMatch=Exact",
                    "resourceVersion={seen}",
                    "resourceVersion=0&resourceVersionMatch=Exact",
                    "resourceVersion=abc",
                    "resourceVersionMatch=Sometimes",
                ]);
                format!("limit={limit}&{revision}")
            }
            _ => (*self.random.pick(&[
                "limit=-1",
                "limit=many",
                "resourceVersion={seen}&resourceVersionMatch=Exact",
                "resourceVersion={seen}&resourceVersionMatch=NotOlderThan",
                "continue={token}&resourceVersion={seen}",
                "continue={token}&resourceVersion=0",
                "continue={token}&resourceVersionMatch=Exact",
                "sendInitialEvents=true",
                "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
                "timeoutSeconds=soon",
            ]))
            .to_owned(),
        };
        let mut request = get(format!("{collection}?{query}"));
        request.accept = *self.random.pick(&[None, None, None, Some(PARTIAL_LIST), Some(TABLE)]);
        request
    }

    /// A watch that says something it may not say. Should it begin all the same, it soon ends.
    pub(super) fn refused_watch(&mut self, kind: &Kind) -> Request {
        let query = *self.random.pick(&[
            "sendInitialEvents=true",
            "sendInitialEvents=false",
            "sendInitialEvents=true&resourceVersionMatch=Exact",
            "resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch=Exact&resourceVersion=5",
            "resourceVersion=abc",
            "fieldSelector=spec.nothing%3Da",
            "labelSelector=colour+is+red",
            "continue=abc",
        ]);
        get(format!("{}?watch=true&timeoutSeconds=1&{query}", kind.collection(&self.namespace)))
    }
}
