//! What is wrong with an object.
//!
//! Owns the wording of problems and the bound on how many are listed. Finding them is `validate`'s work.

use std::fmt;

use serde_json::Value;

use super::path::FieldPath;

/// The most problems listed for one object; the rest are counted. An object that is wrong in more places is
/// wrong as a whole, and the answer has to stay readable.
pub const PROBLEMS_MAX: usize = 100;
/// The longest excerpt of an offending value in a message, in characters.
const EXCERPT_CHARS_MAX: usize = 80;

/// What sort of problem it is, as Kubernetes sorts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// Something that must be there is not.
    Required,
    /// A value that is not one of the allowed ones.
    Unsupported,
    /// A value of the wrong type, form or size.
    Invalid,
    /// A text that is too long.
    TooLong,
    /// A list or map with too many entries.
    TooMany,
    /// An entry that occurs twice where it may occur once.
    Duplicate,
    /// A field that must not be set here.
    Forbidden,
    /// Not a problem of its own: how many more there are.
    More,
}

impl ProblemKind {
    /// The machine-readable reason for the `causes` of a Kubernetes `Status`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Unsupported => "FieldValueNotSupported",
            Self::Invalid | Self::More => "FieldValueInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
        }
    }
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Where it is.
    pub path: FieldPath,
    /// What sort of problem it is.
    pub kind: ProblemKind,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ProblemKind::More => f.write_str(&self.message),
            _ => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// Gathers problems up to the limit and counts the rest.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    listed: Vec<Problem>,
    total: usize,
}

impl Problems {
    fn add(&mut self, path: &FieldPath, kind: ProblemKind, message: impl FnOnce() -> String) {
        self.total += 1;
        if self.listed.len() < PROBLEMS_MAX {
            self.listed.push(Problem { path: path.clone(), kind, message: message() });
        }
    }

    pub(crate) fn required(&mut self, path: &FieldPath) {
        self.add(path, ProblemKind::Required, || "Required value".to_owned());
    }

    pub(crate) fn unsupported(&mut self, path: &FieldPath, value: &Value, allowed: &[String]) {
        self.add(path, ProblemKind::Unsupported, || {
            format!("Unsupported value: {}: supported values: {}", excerpt(value), allowed.join(", "))
        });
    }

    pub(crate) fn invalid(&mut self, path: &FieldPath, value: &Value, rule: &str) {
        self.add(path, ProblemKind::Invalid, || format!("Invalid value: {}: {rule}", excerpt(value)));
    }

    pub(crate) fn too_long(&mut self, path: &FieldPath, characters: usize, limit: i64) {
        self.add(path, ProblemKind::TooLong, || {
            format!("Too long: {characters} characters: may not be more than {limit}")
        });
    }

    pub(crate) fn too_many(&mut self, path: &FieldPath, entries: usize, limit: i64) {
        self.add(path, ProblemKind::TooMany, || {
            format!("Too many: {entries}: must have at most {limit} items")
        });
    }

    pub(crate) fn duplicate(&mut self, path: &FieldPath, value: &Value) {
        self.add(path, ProblemKind::Duplicate, || format!("Duplicate value: {}", excerpt(value)));
    }

    pub(crate) fn forbidden(&mut self, path: &FieldPath, rule: &str) {
        self.add(path, ProblemKind::Forbidden, || format!("Forbidden: {rule}"));
    }

    /// Takes over what another has gathered.
    pub(crate) fn append(&mut self, other: Self) {
        self.total += other.total;
        let room = PROBLEMS_MAX.saturating_sub(self.listed.len());
        self.listed.extend(other.listed.into_iter().take(room));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The problems, with a last entry that counts what was left out.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        let more = self.total - self.listed.len();
        if more > 0 {
            let message = format!("and {more} more problems");
            self.listed.push(Problem { path: FieldPath::root(), kind: ProblemKind::More, message });
        }
        self.listed
    }
}

/// A value as it is shown in a message: its JSON, cut to a readable length; only the type of a compound.
fn excerpt(value: &Value) -> String {
    match value {
        Value::Array(_) => "\"array\"".to_owned(),
        Value::Object(fields) if fields.values().any(|field| field.is_array() || field.is_object()) => {
            "\"object\"".to_owned()
        }
        Value::String(text) => match text.char_indices().nth(EXCERPT_CHARS_MAX) {
            // Cut before quoting, so that a huge text is never copied whole.
            Some((end, _)) => format!("{}...", Value::from(&text[..end])),
            None => value.to_string(),
        },
        Value::Object(fields) => {
            let parts: Vec<String> = fields
                .iter()
                .take(4)
                .map(|(key, field)| format!("{}:{}", Value::from(key.as_str()), excerpt(field)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn problems_beyond_the_limit_are_counted_not_listed() {
        let mut problems = Problems::default();
        for index in 0..PROBLEMS_MAX + 7 {
            problems.required(&FieldPath::root().index(index));
        }
        let listed = problems.finish();
        assert_eq!(listed.len(), PROBLEMS_MAX + 1);
        assert_eq!(listed[PROBLEMS_MAX].to_string(), "and 7 more problems");
    }

    #[test]
    fn a_huge_value_is_shown_in_part() {
        let mut problems = Problems::default();
        problems.invalid(&FieldPath::root().field("spec"), &json!("x".repeat(1_000_000)), "must be shorter");
        let listed = problems.finish();
        assert!(listed[0].message.len() < 200, "{}", listed[0].message.len());
    }
}
