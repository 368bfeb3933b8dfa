//! Functions on texts: searching, cutting, joining, quoting.
//!
//! Positions count characters, not bytes. Whatever builds a text accounts for its size first.

use std::sync::Arc;

use berth_text::gotext;

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::library::{template, time};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("contains", "contains_string", "string.(string) -> bool", contains),
    ("startsWith", "starts_with_string", "string.(string) -> bool", starts_with),
    ("endsWith", "ends_with_string", "string.(string) -> bool", ends_with),
    ("charAt", "string_char_at_int", "string.(int) -> string", char_at),
    ("indexOf", "string_index_of_string", "string.(string) -> int", index_of),
    ("indexOf", "string_index_of_string_int", "string.(string, int) -> int", index_of),
    ("lastIndexOf", "string_last_index_of_string", "string.(string) -> int", last_index_of),
    ("lastIndexOf", "string_last_index_of_string_int", "string.(string, int) -> int", last_index_of),
    ("lowerAscii", "string_lower_ascii", "string.() -> string", lower_ascii),
    ("upperAscii", "string_upper_ascii", "string.() -> string", upper_ascii),
    ("replace", "string_replace_string_string", "string.(string, string) -> string", replace),
    ("replace", "string_replace_string_string_int", "string.(string, string, int) -> string", replace),
    ("split", "string_split_string", "string.(string) -> list(string)", split),
    ("split", "string_split_string_int", "string.(string, int) -> list(string)", split),
    ("substring", "string_substring_int", "string.(int) -> string", substring),
    ("substring", "string_substring_int_int", "string.(int, int) -> string", substring),
    ("trim", "string_trim", "string.() -> string", trim),
    ("reverse", "string_reverse", "string.() -> string", reverse),
    ("join", "list_join", "list(string).() -> string", join),
    ("join", "list_join_string", "list(string).(string) -> string", join),
    ("strings.quote", "strings_quote", "(string) -> string", quote),
    ("format", "string_format", "string.(list(dyn)) -> string", template::format),
];

/// A scalar as `string()` writes it.
pub(crate) fn plain_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Uint(uint) => uint.to_string(),
        Value::Double(double) => gotext::float(*double),
        Value::String(text) => text.to_string(),
        Value::Duration(duration) => time::format_duration(*duration),
        Value::Timestamp(timestamp) => time::format_timestamp(*timestamp),
        Value::Type(ty) => ty.runtime_name().to_owned(),
        Value::Ip(ip) => ip.to_string(),
        Value::Cidr(cidr) => cidr.to_string(),
        other => other.type_of().to_string(),
    }
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::invalid(format!("index out of range: {index}"))
}

/// The byte offset of a character position; the end of the text is a position too.
fn byte_offset(text: &str, position: i64) -> Option<usize> {
    let position = usize::try_from(position).ok()?;
    text.char_indices().map(|(offset, _)| offset).chain([text.len()]).nth(position)
}

fn contains(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.contains(part.as_ref()))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn starts_with(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.starts_with(part.as_ref()))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn ends_with(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.ends_with(part.as_ref()))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn char_at(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text), Value::Int(index)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work(text.len() as u64 / 8)?;
    let offset = byte_offset(text, *index).ok_or_else(|| out_of_range(*index))?;
    Ok(Value::string(text[offset..].chars().next().map(String::from).unwrap_or_default()))
}

fn index_of(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text, part, 0),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, *from),
        _ => return Err(EvalError::NoSuchOverload),
    };
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    context.budget.work(text.len() as u64)?;
    let Some(start) = byte_offset(text, from) else { return Ok(Value::Int(-1)) };
    Ok(Value::Int(match text[start..].find(part.as_ref()) {
        Some(offset) => from + text[start..start + offset].chars().count() as i64,
        None => -1,
    }))
}

fn last_index_of(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, part, to) = match args {
        [Value::String(text), Value::String(part)] => (text, part, None),
        [Value::String(text), Value::String(part), Value::Int(to)] => (text, part, Some(*to)),
        _ => return Err(EvalError::NoSuchOverload),
    };
    context.budget.work(text.len() as u64)?;
    let length = text.chars().count() as i64;
    if part.is_empty() {
        return Ok(Value::Int(to.unwrap_or(length)));
    }
    let to = match to {
        Some(to) if to < 0 => return Err(out_of_range(to)),
        Some(to) if to >= length => return Ok(Value::Int(-1)),
        Some(to) => to,
        None => length,
    };
    // A match may begin at `to` at the latest, so it ends at most the part's length behind it.
    let part_length = part.chars().count() as i64;
    let end = byte_offset(text, to.saturating_add(part_length)).unwrap_or(text.len());
    Ok(Value::Int(match text[..end].rfind(part.as_ref()) {
        Some(offset) => text[..offset].chars().count() as i64,
        None => -1,
    }))
}

fn lower_ascii(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work(text.len() as u64)?;
    Ok(Value::string(text.to_ascii_lowercase()))
}

fn upper_ascii(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work(text.len() as u64)?;
    Ok(Value::string(text.to_ascii_uppercase()))
}

fn replace(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, old, new, limit) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(limit)] => {
            (text, old, new, *limit)
        }
        _ => return Err(EvalError::NoSuchOverload),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    context.budget.work(text.len() as u64)?;
    let count = text.matches(old.as_ref()).take(limit).count();
    context.budget.work((count as u64).saturating_mul(new.len() as u64))?;
    Ok(Value::string(text.replacen(old.as_ref(), new, limit)))
}

fn split(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, separator, limit) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => (text, separator, *limit),
        _ => return Err(EvalError::NoSuchOverload),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let pieces = if separator.is_empty() {
        text.chars().count()
    } else {
        text.matches(separator.as_ref()).count() + 1
    };
    // Each piece is an allocation of its own.
    context.budget.work(text.len() as u64 + 64 * pieces.min(limit) as u64)?;
    let piece = |part: &str| Value::string(part);
    let pieces: Vec<Value> = if limit == 0 {
        Vec::new()
    } else if separator.is_empty() {
        let mut rest = text.as_ref();
        let mut pieces = Vec::new();
        while let Some(c) = rest.chars().next() {
            if pieces.len() + 1 == limit {
                pieces.push(piece(rest));
                break;
            }
            pieces.push(piece(&rest[..c.len_utf8()]));
            rest = &rest[c.len_utf8()..];
        }
        pieces
    } else {
        text.splitn(limit, separator.as_ref()).map(piece).collect()
    };
    Ok(Value::list(pieces))
}

fn substring(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(EvalError::NoSuchOverload),
    };
    context.budget.work(text.len() as u64)?;
    if let Some(end) = end
        && start > end
    {
        return Err(EvalError::invalid(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let from = byte_offset(text, start).ok_or_else(|| out_of_range(start))?;
    let to = match end {
        Some(end) => byte_offset(text, end).ok_or_else(|| out_of_range(end))?,
        None => text.len(),
    };
    Ok(Value::string(&text[from..to]))
}

fn trim(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work(text.len() as u64)?;
    Ok(Value::string(text.trim()))
}

fn reverse(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work(text.len() as u64)?;
    Ok(Value::string(text.chars().rev().collect::<String>()))
}

fn join(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (elements, separator) = match args {
        [Value::List(elements)] => (elements, ""),
        [Value::List(elements), Value::String(separator)] => (elements, separator.as_ref()),
        _ => return Err(EvalError::NoSuchOverload),
    };
    let mut parts: Vec<&Arc<str>> = Vec::new();
    let mut size = (separator.len() as u64).saturating_mul(elements.len() as u64);
    for element in elements.iter() {
        let Value::String(text) = element else {
            return Err(EvalError::NoSuchOverload);
        };
        size = size.saturating_add(text.len() as u64 + 8);
        parts.push(text);
    }
    context.budget.work(size)?;
    let mut joined = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(part);
    }
    Ok(Value::string(joined))
}

fn quote(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work(2 * text.len() as u64 + 2)?;
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    Ok(Value::string(quoted))
}
