//! What is wrong with an object.
//!
//! Owns the wording of problems, which is that of Kubernetes' field errors, and the bound on how many are listed.
//! Finding them is others' work.

use std::fmt;

use serde_json::Value;

use crate::{gotext, path::FieldPath};

/// The most problems listed for one object; the rest are counted. An object that is wrong in more places is
/// wrong as a whole, and the answer has to stay readable.
pub const PROBLEMS_MAX: usize = 100;
/// The longest excerpt of an offending value in a message, in bytes. Longer than any name; what is cut ends in `...`.
pub const EXCERPT_BYTES_MAX: usize = 4096;

/// What sort of problem it is, as Kubernetes sorts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// Something that must be there is not.
    Required,
    /// A value that is not one of the allowed ones.
    NotSupported,
    /// A value of the wrong form or size.
    Invalid,
    /// A value of the wrong type.
    TypeInvalid,
    /// A text that is too long.
    TooLong,
    /// A text that is too short.
    TooShort,
    /// A list or map with too many entries.
    TooMany,
    /// A list or map with too few entries.
    TooFew,
    /// An entry that occurs twice where it may occur once.
    Duplicate,
    /// A field that must not be set here.
    Forbidden,
    /// Something that is referred to and does not exist.
    NotFound,
    /// Something went wrong that is not the writer's fault.
    Internal,
    /// Not a problem of its own: how many more there are.
    More,
}

impl ProblemKind {
    /// The machine-readable reason for the `causes` of a Kubernetes `Status`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Invalid | Self::More => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    /// The words a message begins with.
    pub fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::NotSupported => "Unsupported value",
            Self::Invalid | Self::TypeInvalid | Self::More => "Invalid value",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
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
    /// What is wrong and what is allowed, such as `Invalid value: "x": must be y`.
    pub message: String,
}

impl Problem {
    /// A problem in the words that Kubernetes has for its kind, followed by a detail unless that is empty.
    pub fn new(path: &FieldPath, kind: ProblemKind, detail: &str) -> Self {
        Self { path: path.clone(), kind, message: joined(kind.words(), detail) }
    }

    /// A problem that shows the offending value.
    pub fn with_value(path: &FieldPath, kind: ProblemKind, value: &Value, detail: &str) -> Self {
        let message = joined(&format!("{}: {}", kind.words(), excerpt(value)), detail);
        Self { path: path.clone(), kind, message }
    }

    /// A problem that shows the offending value in a form of its own.
    pub(crate) fn with_shown(path: &FieldPath, kind: ProblemKind, shown: &str, detail: &str) -> Self {
        let shown = cut(shown).map_or_else(|| shown.to_owned(), |part| format!("{part}..."));
        Self { path: path.clone(), kind, message: joined(&format!("{}: {shown}", kind.words()), detail) }
    }

    /// `Required value: detail`
    pub fn required(path: &FieldPath, detail: &str) -> Self {
        Self::new(path, ProblemKind::Required, detail)
    }

    /// `Invalid value: value: detail`
    pub fn invalid(path: &FieldPath, value: &Value, detail: &str) -> Self {
        Self::with_value(path, ProblemKind::Invalid, value, detail)
    }

    /// `Invalid value: "text": detail`, for a text at hand.
    pub fn invalid_text(path: &FieldPath, text: &str, detail: &str) -> Self {
        let message = joined(&format!("Invalid value: {}", excerpt_text(text)), detail);
        Self { path: path.clone(), kind: ProblemKind::Invalid, message }
    }

    /// `Unsupported value: value: supported values: "a", "b"`
    pub fn not_supported<S: AsRef<str>>(path: &FieldPath, value: &Value, allowed: &[S]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|word| gotext::quote(word.as_ref())).collect();
        let detail = match allowed.as_slice() {
            [] => String::new(),
            allowed => format!("supported values: {}", allowed.join(", ")),
        };
        Self::with_value(path, ProblemKind::NotSupported, value, &detail)
    }

    /// `Duplicate value: value`
    pub fn duplicate(path: &FieldPath, value: &Value) -> Self {
        Self::with_value(path, ProblemKind::Duplicate, value, "")
    }

    /// `Forbidden: detail`
    pub fn forbidden(path: &FieldPath, detail: &str) -> Self {
        Self::new(path, ProblemKind::Forbidden, detail)
    }

    /// `Not found: value`
    pub fn not_found(path: &FieldPath, value: &Value) -> Self {
        Self::with_value(path, ProblemKind::NotFound, value, "")
    }

    /// `Internal error: detail`
    pub fn internal(path: &FieldPath, detail: &str) -> Self {
        Self::new(path, ProblemKind::Internal, detail)
    }

    /// `Too long: may not be more than 63 bytes`
    pub fn too_long(path: &FieldPath, limit: u64) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::new(path, ProblemKind::TooLong, &format!("may not be more than {limit} {unit}"))
    }

    /// `Too many: 3: must have at most 2 items`
    pub fn too_many(path: &FieldPath, entries: usize, limit: u64) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {unit}");
        Self::with_value(path, ProblemKind::TooMany, &Value::from(entries), &detail)
    }

    /// Where it is, as the `field` of a cause in a `Status` has it.
    pub fn field(&self) -> String {
        self.path.to_string()
    }
}

fn joined(words: &str, detail: &str) -> String {
    if detail.is_empty() { words.to_owned() } else { format!("{words}: {detail}") }
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
    more: usize,
}

/// How far problems had been gathered at some point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    listed: usize,
    more: usize,
}

impl Problems {
    /// Adds a problem; its text is only made if it is listed.
    pub(crate) fn add(&mut self, problem: impl FnOnce() -> Problem) {
        if self.listed.len() < PROBLEMS_MAX {
            self.listed.push(problem());
        } else {
            self.more += 1;
        }
    }

    /// Takes over what another has gathered, each text once.
    pub(crate) fn merge(&mut self, other: Self) {
        self.more += other.more;
        for problem in other.listed {
            if !self.listed.contains(&problem) {
                self.add(|| problem);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { listed: self.listed.len(), more: self.more }
    }

    /// Forgets whatever was added since.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.listed.truncate(mark.listed);
        self.more = mark.more;
    }

    /// The problems, with a last entry that counts what was left out.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        if self.more > 0 {
            let message = format!("and {} more problems", self.more);
            self.listed.push(Problem { path: FieldPath::root(), kind: ProblemKind::More, message });
        }
        self.listed
    }
}

/// A value as it is shown in a message.
pub(crate) fn excerpt(value: &Value) -> String {
    match value {
        Value::String(text) => excerpt_text(text),
        Value::Number(number) => match number.as_f64().filter(|_| !number.is_i64()) {
            Some(float) => gotext::float(float),
            None => number.to_string(),
        },
        compound => {
            cut(&gotext::json(compound)).map_or_else(|| gotext::json(compound), |part| format!("{part}..."))
        }
    }
}

fn excerpt_text(text: &str) -> String {
    // Cut before quoting, so that a huge text is never copied whole.
    match cut(text) {
        Some(part) => format!("{}...", gotext::quote(part)),
        None => gotext::quote(text),
    }
}

/// The part of a text that is shown, if that is not all of it.
fn cut(text: &str) -> Option<&str> {
    if text.len() <= EXCERPT_BYTES_MAX {
        return None;
    }
    let mut end = EXCERPT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Some(&text[..end])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn problems_read_like_kubernetes_own() {
        let path = FieldPath::root().field("spec").field("x");
        let texts = [
            Problem::required(&path, "").to_string(),
            Problem::required(&path, "say which").to_string(),
            Problem::invalid(&path, &json!("a\nb"), "must be a word").to_string(),
            Problem::invalid(&path, &json!({"b": 1, "a": [true]}), "").to_string(),
            Problem::not_supported(&path, &json!("x"), &["a", "b"]).to_string(),
            Problem::too_long(&path, 1).to_string(),
            Problem::too_many(&path, 3, 2).to_string(),
            Problem::duplicate(&FieldPath::root(), &json!(1.5e9)).to_string(),
            Problem::forbidden(&path, "not here").to_string(),
        ];
        assert_eq!(
            texts,
            [
                "spec.x: Required value",
                "spec.x: Required value: say which",
                r#"spec.x: Invalid value: "a\nb": must be a word"#,
                r#"spec.x: Invalid value: {"a":[true],"b":1}"#,
                r#"spec.x: Unsupported value: "x": supported values: "a", "b""#,
                "spec.x: Too long: may not be more than 1 byte",
                "spec.x: Too many: 3: must have at most 2 items",
                "<nil>: Duplicate value: 1.5e+09",
                "spec.x: Forbidden: not here",
            ]
        );
    }

    #[test]
    fn problems_beyond_the_limit_are_counted_not_listed() {
        let mut problems = Problems::default();
        for index in 0..PROBLEMS_MAX + 7 {
            problems.add(|| Problem::required(&FieldPath::root().index(index), ""));
        }
        let listed = problems.finish();
        assert_eq!(listed.len(), PROBLEMS_MAX + 1);
        assert_eq!(listed[PROBLEMS_MAX].to_string(), "and 7 more problems");
    }

    #[test]
    fn a_huge_value_is_shown_in_part() {
        let problem =
            Problem::invalid(&FieldPath::from("spec"), &json!("x".repeat(1_000_000)), "must be shorter");
        assert!(problem.message.len() < 2 * EXCERPT_BYTES_MAX, "{}", problem.message.len());
    }
}
