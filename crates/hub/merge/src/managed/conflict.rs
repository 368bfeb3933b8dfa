//! Fields that another manager owns and an apply would change.

use std::fmt::{self, Display, Formatter};

use super::entry::{Identity, Operation};
use crate::fields::FieldSet;
use crate::golang::Quoted;

/// A field that is someone else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Whose it is.
    pub manager: String,
    /// How that manager wrote it.
    pub operation: Operation,
    /// The version it was written in, for updates.
    pub api_version: Option<String>,
    /// The subresource it was written through.
    pub subresource: Option<String>,
    /// The field: `.spec.replicas`.
    pub field: String,
}

impl Conflict {
    /// The manager as messages name it.
    fn who(&self) -> String {
        let through = self.subresource.as_ref();
        let through = through.map(|subresource| format!(" with subresource {}", Quoted(subresource)));
        let version = self.api_version.as_ref().map(|version| format!(" using {version}"));
        format!("{}{}{}", Quoted(&self.manager), through.unwrap_or_default(), version.unwrap_or_default())
    }

    /// The text of a cause in the answer.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.who())
    }
}

/// All conflicts of an apply, by manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

/// The message of the answer.
impl Display for Conflicts {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", only.message(), only.field);
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let same = |left: &Conflict, right: &Conflict| {
            left.manager == right.manager
                && left.operation == right.operation
                && left.api_version == right.api_version
                && left.subresource == right.subresource
        };
        for (index, group) in self.0.chunk_by(same).enumerate() {
            let newline = if index > 0 { "\n" } else { "" };
            write!(f, "{newline}conflicts with {}:", group[0].who())?;
            for conflict in group {
                write!(f, "\n- {}", conflict.field)?;
            }
        }
        Ok(())
    }
}

/// Conflicts with the paths they are about, while it is open whether they count.
pub(super) struct Contested<'a> {
    pub(super) sets: Vec<(Identity<'a>, FieldSet<'a>)>,
}

impl Contested<'_> {
    /// The conflicts as the client reads them, managers in the order messages have.
    pub(super) fn into_conflicts(mut self) -> Conflicts {
        self.sets.sort_by_cached_key(|(identity, _)| identity.sort_key());
        let of = |(identity, set): (Identity<'_>, FieldSet<'_>)| {
            let conflict = |field: String| Conflict {
                manager: identity.manager.clone().into_owned(),
                operation: identity.operation,
                api_version: (identity.operation == Operation::Update)
                    .then(|| identity.api_version.clone().into_owned()),
                subresource: (!identity.subresource.is_empty())
                    .then(|| identity.subresource.clone().into_owned()),
                field,
            };
            let paths = set.paths();
            paths
                .iter()
                .map(|path| conflict(path.iter().map(ToString::to_string).collect()))
                .collect::<Vec<_>>()
        };
        Conflicts(self.sets.into_iter().flat_map(of).collect())
    }
}

/// Why an apply was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Fields belong to others and force was not asked for: 409 `Conflict`, a cause `FieldManagerConflict` each.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The request is wrong: 400 `BadRequest`.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration does not fit the schema, or the stored object cannot be read by it: 500, as the API server
    /// answers.
    #[error("{0}")]
    Failed(String),
}

impl ApplyError {
    /// The HTTP status.
    pub fn code(&self) -> u16 {
        match self {
            Self::Conflicts(_) => 409,
            Self::BadRequest(_) => 400,
            Self::Failed(_) => 500,
        }
    }
}
