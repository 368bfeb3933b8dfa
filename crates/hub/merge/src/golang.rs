//! Values as the API server's messages print them. The server prints with Go's verbs, and clients and people match on
//! those texts.
//!
//! Owns the one spelling that is no verb, that of path elements; the verbs are the schema crate's.

use std::fmt::{self, Display, Formatter, Write as _};

pub(crate) use berth_schema::gotext::{Plain, Quoted, Syntax, type_name};
use serde_json::Value;

/// A value as a path element names it.
pub(crate) struct Named<'a>(pub &'a Value);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::String(text) => Quoted(text).fmt(f),
            Value::Array(items) => {
                f.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        f.write_char(',')?;
                    }
                    Named(item).fmt(f)?;
                }
                f.write_char(']')
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    write!(f, "{name}={}", Named(field))?;
                }
                Ok(())
            }
            scalar => Plain(scalar).fmt(f),
        }
    }
}
