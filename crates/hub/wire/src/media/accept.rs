//! `Accept` headers into alternatives, best first.

use super::ACCEPT_CLAUSES_MAX;

/// One alternative of an `Accept` header.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clause<'h> {
    kind: &'h str,
    subtype: &'h str,
    quality: f64,
    params: Vec<(&'h str, &'h str)>,
}

impl<'h> Clause<'h> {
    pub(super) fn param(&self, name: &str) -> Option<&'h str> {
        // The last one wins, as in the map a Go server keeps.
        self.params.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    pub(super) fn allows(&self, subtype: &str) -> bool {
        match (self.kind, self.subtype) {
            ("*" | "application", "*") => true,
            ("application", own) => own == subtype,
            _ => false,
        }
    }

    /// The group, version and kind the answer is to be turned into, when any is said.
    pub(super) fn conversion(&self) -> Option<(&'h str, &'h str, &'h str)> {
        let (g, v, kind) = (self.param("g"), self.param("v"), self.param("as"));
        (g.is_some() || v.is_some() || kind.is_some())
            .then(|| (g.unwrap_or_default(), v.unwrap_or_default(), kind.unwrap_or_default()))
    }

    fn goes_before(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// Cuts at the first separator; nothing remains after the last.
pub(super) fn next_part(text: &str, separator: char) -> (&str, &str) {
    text.split_once(separator).unwrap_or((text, ""))
}

/// Reads an `Accept` header into alternatives, best first. Entries that make no sense are left out.
pub(super) fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut list: Vec<Clause<'_>> = Vec::new();
    let mut remaining = header;
    while !remaining.is_empty() && list.len() < ACCEPT_CLAUSES_MAX {
        let part;
        (part, remaining) = next_part(remaining, ',');
        let (range, mut rest) = next_part(part.trim_matches(' '), ';');
        let (kind, subtype) = next_part(range, '/');
        let kind = kind.trim_matches(' ');
        let subtype = match subtype {
            "" if kind == "*" => "*",
            "" => continue,
            subtype if subtype.contains('/') => continue,
            subtype => subtype.trim_matches(' '),
        };
        let mut clause = Clause { kind, subtype, quality: 1.0, params: Vec::new() };
        while !rest.is_empty() {
            let param;
            (param, rest) = next_part(rest, ';');
            let (name, value) = next_part(param, '=');
            if value.is_empty() || value.contains('=') {
                continue;
            }
            match name.trim_matches(' ') {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                name => clause.params.push((name, value.trim_matches(' '))),
            }
        }
        // Insertion keeps the header's order among equals.
        let at = list.iter().rposition(|before| !clause.goes_before(before)).map_or(0, |at| at + 1);
        list.insert(at, clause);
    }
    list
}
