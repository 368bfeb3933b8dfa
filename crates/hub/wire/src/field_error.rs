//! Complaints about one field, as Kubernetes words them.
//!
//! Used for the options of requests; objects bring their own complaints through [`crate::status::AsCause`].

use crate::gotext::{quote, quote_all};
use crate::status::Cause;

/// `Required value`.
pub fn required(field: &str, detail: &str) -> Cause {
    Cause::new("FieldValueRequired", with_detail("Required value", detail), field)
}

/// `Forbidden`.
pub fn forbidden(field: &str, detail: &str) -> Cause {
    Cause::new("FieldValueForbidden", with_detail("Forbidden", detail), field)
}

/// `Invalid value` of a string.
pub fn invalid(field: &str, value: &str, detail: &str) -> Cause {
    invalid_raw(field, &quote(value), detail)
}

/// `Invalid value` with the value already rendered.
pub fn invalid_raw(field: &str, rendered: &str, detail: &str) -> Cause {
    Cause::new("FieldValueInvalid", with_detail(&format!("Invalid value: {rendered}"), detail), field)
}

/// `Unsupported value` with the values that would do; the value is already rendered.
pub fn not_supported(field: &str, rendered: &str, supported: &[&str]) -> Cause {
    let message = format!("Unsupported value: {rendered}: supported values: {}", quote_all(supported));
    Cause::new("FieldValueNotSupported", message, field)
}

/// `Too long`.
pub fn too_long(field: &str, limit_bytes: usize) -> Cause {
    Cause::new("FieldValueTooLong", format!("Too long: may not be more than {limit_bytes} bytes"), field)
}

fn with_detail(head: &str, detail: &str) -> String {
    if detail.is_empty() { head.to_owned() } else { format!("{head}: {detail}") }
}
