//! A refusal, as the API says it.

/// Why a write is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The HTTP status.
    pub code: u16,
    /// The sentence.
    pub message: String,
    /// The fields it is about.
    pub fields: Vec<FieldProblem>,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// Its path, as in `spec.tolerations[0].value`.
    pub path: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl FieldProblem {
    /// Both in a sentence.
    pub(crate) fn sentence(&self) -> String {
        format!("{}: {}", self.path, self.message)
    }
}

/// Refuses what was not wrong before. What was is told again: somebody may label or mend an object from before these rules one
/// field at a time.
pub(crate) fn unless_known(now: Vec<FieldProblem>, before: &[FieldProblem]) -> Result<Vec<String>, Denial> {
    let (old, new): (Vec<FieldProblem>, Vec<FieldProblem>) =
        now.into_iter().partition(|problem| before.contains(problem));
    if new.is_empty() {
        Ok(old.iter().map(FieldProblem::sentence).collect())
    } else {
        Err(Denial::invalid(new))
    }
}

impl Denial {
    /// The one who asks may not do this.
    pub(crate) fn forbidden(message: String) -> Self {
        Self { code: 403, message, fields: Vec::new() }
    }

    /// The request makes no sense.
    pub(crate) fn bad_request(message: String) -> Self {
        Self { code: 400, message, fields: Vec::new() }
    }

    /// The object is well formed and could not work.
    pub(crate) fn invalid(fields: Vec<FieldProblem>) -> Self {
        let message = fields.iter().map(FieldProblem::sentence).collect::<Vec<_>>();
        Self { code: 422, message: message.join("; "), fields }
    }
}
