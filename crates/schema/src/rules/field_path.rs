//! Paths that a rule or a selectable field names: `.spec.replicas`, `.spec['a.b'].c`.
//!
//! Owns reading them along a schema. No list is ever entered.

use crate::{node::Schema, path::FieldPath};

/// Why a text is not a path along a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldPathError {
    #[error("does not refer to a valid field")]
    NoField,
    #[error("array notation is not allowed")]
    Brackets,
    #[error("unexpected end of JSON path")]
    End,
    #[error("expected single quoted string but got {0}")]
    NotQuoted(String),
    #[error("invalid string literal: invalid escape char {0}")]
    Escape(String),
    #[error("expected ] but got {0}")]
    NotClosed(String),
    #[error("expected [ or . but got: {0}")]
    Start(String),
}

/// Follows a path along a schema, to its spelling in problems and what is there.
pub(crate) fn resolve_field_path<'s>(
    text: &str,
    schema: Schema<'s>,
    brackets: bool,
) -> Result<(FieldPath, Schema<'s>), FieldPathError> {
    let mut tokens = tokens(text).into_iter();
    let mut path = FieldPath::root();
    let mut schema = schema;
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or(FieldPathError::End)?.to_owned(),
            "[" if !brackets => return Err(FieldPathError::Brackets),
            "[" => {
                let quoted = tokens.next().ok_or(FieldPathError::End)?;
                let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let name = unescape(inner.ok_or_else(|| FieldPathError::NotQuoted(quoted.to_owned()))?)?;
                match tokens.next().ok_or(FieldPathError::End)? {
                    "]" => name,
                    other => return Err(FieldPathError::NotClosed(other.to_owned())),
                }
            }
            other => return Err(FieldPathError::Start(other.to_owned())),
        };
        if schema.node().properties.is_empty() {
            schema = schema.additional().ok_or(FieldPathError::NoField)?;
            path = path.key(&name);
        } else {
            schema = schema.property(&name).ok_or(FieldPathError::NoField)?;
            path.push_field(&name);
        }
    }
    Ok((path, schema))
}

/// Points, brackets, texts in single quotes, and whatever is between them.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = if rest.starts_with('\'') {
            let mut escaped = false;
            let closing = rest.char_indices().skip(1).find(|(_, c)| {
                let closes = *c == '\'' && !escaped;
                escaped = *c == '\\';
                closes
            });
            closing.map_or(rest.len(), |(at, _)| at + 1)
        } else {
            match rest.find(['.', '[', ']']) {
                Some(0) => 1,
                Some(at) => at,
                None => rest.len(),
            }
        };
        let (token, behind) = rest.split_at(end);
        tokens.push(token);
        rest = behind;
    }
    tokens
}

fn unescape(text: &str) -> Result<String, FieldPathError> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match characters.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') | None => '\\',
            Some(other) => return Err(FieldPathError::Escape(format!("\\{other}"))),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{compile, node::Arena};

    #[test]
    fn paths_are_followed_along_the_schema() {
        let mut arena = Arena::default();
        let schema = json!({
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {"a.b": {"type": "string"}, "n": {"type": "integer"}}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        });
        let id = compile(&mut arena, &schema).unwrap();
        let resolve = |text: &str, brackets: bool| {
            resolve_field_path(text, arena.schema(id), brackets).map(|(path, _)| path.to_string())
        };
        assert_eq!(resolve(".spec.n", false).unwrap(), "spec.n");
        assert_eq!(resolve(".spec['a.b']", true).unwrap(), "spec.a.b");
        assert_eq!(resolve(".map['it\\'s']", true).unwrap(), "map[it's]");
        assert_eq!(resolve(".spec.x", true), Err(FieldPathError::NoField));
        assert_eq!(resolve(".spec['n']", false), Err(FieldPathError::Brackets));
        assert_eq!(resolve(".spec[0]", true), Err(FieldPathError::NotQuoted("0".to_owned())));
        assert_eq!(resolve("spec", true), Err(FieldPathError::Start("spec".to_owned())));
        assert_eq!(resolve(".", true), Err(FieldPathError::End));
        assert_eq!(resolve(".spec['n'", true), Err(FieldPathError::End));
    }
}
