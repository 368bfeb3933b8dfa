//! Why a patch could not be applied, with the status the API server answers.

/// A patch that does not apply. The text is what the client reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is malformed: 400 `BadRequest`.
    #[error("{0}")]
    BadRequest(String),
    /// The patch is well formed and does not fit this document: 422 without a reason of its own (`Invalid` is for
    /// field errors; the server answers these with an empty group, kind and name).
    #[error("{0}")]
    Unprocessable(String),
    /// The patch asks for more than the server allows: 413 `RequestEntityTooLarge`.
    #[error("{0}")]
    TooLarge(String),
    /// The server's library fails on it: 500.
    #[error("{0}")]
    Internal(String),
}

impl PatchError {
    /// The HTTP status.
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::Unprocessable(_) => 422,
            Self::TooLarge(_) => 413,
            Self::Internal(_) => 500,
        }
    }
}
