//! `"…".format([…])`: fills the clauses `%s %d %f %e %b %x %X %o` of a text.

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::Outcome;
use crate::library::strings;
use crate::types::Type;
use crate::value::Value;

/// Decimals of `%f` and `%e` where the clause does not say.
const DEFAULT_PRECISION: usize = 6;
/// The most decimals a clause may ask for: a double has no more.
const PRECISION_MAX: usize = 1000;
/// The work of writing a value that is not a text: no number has more digits.
const VALUE_WORK: u64 = 24;

/// How a clause writes its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Text,
    Decimal,
    Fixed,
    Scientific,
    Binary,
    Hexadecimal { upper: bool },
    Octal,
}

impl Verb {
    /// What to say about a value it cannot write.
    fn complaint(self) -> &'static str {
        match self {
            Self::Text => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on ints, uints, and doubles",
            Self::Fixed => "fixed-point clause can only be used on ints, uints, and doubles",
            Self::Scientific => "scientific clause can only be used on ints, uints, and doubles",
            Self::Binary => "only ints, uints, and bools can be formatted as binary",
            Self::Hexadecimal { .. } => "only ints, uints, bytes, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on ints and uints",
        }
    }

    fn admits(self, ty: &Type) -> bool {
        let integer = matches!(ty, Type::Int | Type::Uint);
        ty.is_dyn_or_error()
            || match self {
                Self::Text => !matches!(ty, Type::Optional(_) | Type::Opaque(_)),
                Self::Decimal | Self::Fixed | Self::Scientific => integer || *ty == Type::Double,
                Self::Binary => integer || *ty == Type::Bool,
                Self::Hexadecimal { .. } => integer || matches!(ty, Type::String | Type::Bytes),
                Self::Octal => integer,
            }
    }
}

/// A part of a template.
enum Piece<'t> {
    Literal(&'t str),
    Clause { verb: Verb, precision: usize },
}

/// Takes the first piece off a template.
fn next_piece<'t>(template: &mut &'t str) -> Option<Result<Piece<'t>, String>> {
    if template.is_empty() {
        return None;
    }
    let percent = template.find('%').unwrap_or(template.len());
    if percent > 0 {
        let (literal, rest) = template.split_at(percent);
        *template = rest;
        return Some(Ok(Piece::Literal(literal)));
    }
    let rest = &template[1..];
    if let Some(after) = rest.strip_prefix('%') {
        *template = after;
        return Some(Ok(Piece::Literal("%")));
    }
    if rest.is_empty() {
        return Some(Err("unexpected end of string".to_owned()));
    }
    let clause = parse_clause(rest);
    Some(match clause {
        Ok((verb, precision, rest)) => {
            *template = rest;
            Ok(Piece::Clause { verb, precision })
        }
        Err(what) => Err(format!("could not parse formatting clause: {what}")),
    })
}

fn parse_clause(clause: &str) -> Result<(Verb, usize, &str), String> {
    let mut rest = clause;
    let mut precision = DEFAULT_PRECISION;
    if let Some(after) = clause.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        rest = &after[digits..];
        if rest.is_empty() {
            return Err("error while parsing precision: could not find end of precision specifier".to_owned());
        }
        precision = after[..digits].parse().ok().filter(|precision| *precision <= PRECISION_MAX).ok_or_else(
            || format!("error while parsing precision: it must be a number of at most {PRECISION_MAX}"),
        )?;
    }
    let letter = rest.chars().next().unwrap_or_default();
    let verb = match letter {
        's' => Verb::Text,
        'd' => Verb::Decimal,
        'f' => Verb::Fixed,
        'e' => Verb::Scientific,
        'b' => Verb::Binary,
        'x' | 'X' => Verb::Hexadecimal { upper: letter == 'X' },
        'o' => Verb::Octal,
        other => return Err(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((verb, precision, &rest[1..]))
}

/// What is wrong with a template for values of known types, and which of them it is about.
pub(crate) fn check(mut template: &str, types: &[Type]) -> Result<(), (Option<usize>, String)> {
    let mut used = 0;
    while let Some(piece) = next_piece(&mut template) {
        let Piece::Clause { verb, .. } = piece.map_err(|message| (None, message))? else { continue };
        let ty = types.get(used).ok_or_else(|| (None, format!("index {used} out of range")))?;
        if !verb.admits(ty) {
            let message =
                format!("error during formatting: {}, was given {}", verb.complaint(), ty.runtime_name());
            return Err((Some(used), message));
        }
        used += 1;
    }
    if used < types.len() {
        let message =
            format!("too many arguments supplied to string.format (expected {used}, got {})", types.len());
        return Err((None, message));
    }
    Ok(())
}

pub(crate) fn format(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(template), Value::List(values)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work(template.len() as u64)?;
    let mut text = String::with_capacity(template.len());
    let mut template = template.as_ref();
    let mut used = 0;
    while let Some(piece) = next_piece(&mut template) {
        match piece.map_err(EvalError::invalid)? {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Clause { verb, precision } => {
                let value = values
                    .get(used)
                    .ok_or_else(|| EvalError::invalid(format!("index {used} out of range")))?;
                used += 1;
                write_clause(context, verb, precision, value, &mut text)?;
            }
        }
    }
    Ok(Value::string(text))
}

fn write_clause(
    context: &mut Context<'_>,
    verb: Verb,
    precision: usize,
    value: &Value,
    text: &mut String,
) -> Result<(), EvalError> {
    let formatted = match verb {
        Verb::Text => return write_value(context, value, text),
        Verb::Decimal => decimal(value),
        Verb::Fixed => as_double(value).map(|double| fixed(double, precision)),
        Verb::Scientific => as_double(value).map(|double| scientific(double, precision)),
        Verb::Binary => binary(value),
        Verb::Hexadecimal { upper } => hexadecimal(context, value, upper)?,
        Verb::Octal => octal(value),
    };
    let formatted = formatted.ok_or_else(|| unwritable(verb, value))?;
    context.budget.work(formatted.len() as u64)?;
    text.push_str(&formatted);
    Ok(())
}

fn unwritable(verb: Verb, value: &Value) -> EvalError {
    let ty = value.type_of();
    EvalError::invalid(format!(
        "error during formatting: {}, was given {}",
        verb.complaint(),
        ty.runtime_name()
    ))
}

/// Any value that has a text form. Aggregates are written out, so their size is accounted for as they
/// are walked.
fn write_value(context: &mut Context<'_>, value: &Value, text: &mut String) -> Result<(), EvalError> {
    context.budget.work(VALUE_WORK)?;
    match value {
        Value::Double(double) => text.push_str(&plain_double(*double)),
        Value::String(part) => {
            context.budget.work(part.len() as u64)?;
            text.push_str(part);
        }
        Value::Bytes(bytes) => {
            context.budget.work(bytes.len() as u64)?;
            text.push_str(&String::from_utf8_lossy(bytes));
        }
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Type(_) => text.push_str(&strings::plain_text(value)),
        Value::List(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                write_value(context, element, text)?;
            }
            text.push(']');
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map.iter() {
                let mut written = String::new();
                write_value(context, value, &mut written)?;
                entries.push((key.to_string(), written));
            }
            entries.sort();
            text.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                text.push_str(key);
                text.push_str(": ");
                text.push_str(value);
            }
            text.push('}');
        }
        other => return Err(unwritable(Verb::Text, other)),
    }
    Ok(())
}

/// Without exponent, however large.
fn plain_double(double: f64) -> String {
    non_finite(double).map_or_else(|| double.to_string(), str::to_owned)
}

fn non_finite(double: f64) -> Option<&'static str> {
    if double.is_nan() {
        Some("NaN")
    } else if double.is_infinite() {
        Some(if double > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

fn decimal(value: &Value) -> Option<String> {
    match value {
        Value::Int(int) => Some(int.to_string()),
        Value::Uint(uint) => Some(uint.to_string()),
        Value::Double(double) => Some(plain_double(*double)),
        _ => None,
    }
}

fn fixed(double: f64, precision: usize) -> String {
    non_finite(double).map_or_else(|| format!("{double:.precision$}"), str::to_owned)
}

fn scientific(double: f64, precision: usize) -> String {
    if let Some(name) = non_finite(double) {
        return name.to_owned();
    }
    let text = format!("{double:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').expect("the format has an exponent");
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

fn as_double(value: &Value) -> Option<f64> {
    match value {
        Value::Int(int) => Some(*int as f64),
        Value::Uint(uint) => Some(*uint as f64),
        Value::Double(double) => Some(*double),
        _ => None,
    }
}

fn signed(int: i64, magnitude: String) -> String {
    if int < 0 { format!("-{magnitude}") } else { magnitude }
}

fn binary(value: &Value) -> Option<String> {
    match value {
        Value::Bool(flag) => Some(u8::from(*flag).to_string()),
        Value::Int(int) => Some(signed(*int, format!("{:b}", int.unsigned_abs()))),
        Value::Uint(uint) => Some(format!("{uint:b}")),
        _ => None,
    }
}

fn octal(value: &Value) -> Option<String> {
    match value {
        Value::Int(int) => Some(signed(*int, format!("{:o}", int.unsigned_abs()))),
        Value::Uint(uint) => Some(format!("{uint:o}")),
        _ => None,
    }
}

fn hexadecimal(context: &mut Context<'_>, value: &Value, upper: bool) -> Result<Option<String>, EvalError> {
    let mut digits = |bytes: &[u8]| -> Result<String, EvalError> {
        context.budget.work(2 * bytes.len() as u64)?;
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(nibble), 16).expect("a nibble is one digit"));
            }
        }
        Ok(text)
    };
    let text = match value {
        Value::Int(int) => signed(*int, format!("{:x}", int.unsigned_abs())),
        Value::Uint(uint) => format!("{uint:x}"),
        Value::String(text) => digits(text.as_bytes())?,
        Value::Bytes(bytes) => digits(bytes)?,
        _ => return Ok(None),
    };
    Ok(Some(if upper { text.to_ascii_uppercase() } else { text }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::time;

    #[test]
    fn scientific_exponents_have_a_sign_and_two_digits() {
        assert_eq!(scientific(1234.5, 3), "1.234e+03");
        assert_eq!(scientific(0.00012, 1), "1.2e-04");
    }

    #[test]
    fn durations_are_written_in_seconds() {
        assert_eq!(time::format_duration(jiff::SignedDuration::from_millis(1500)), "1.5s");
    }
}
