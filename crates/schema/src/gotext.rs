//! JSON values as Go's standard library writes them.
//!
//! Kubernetes' messages are made with Go's formatting verbs and its JSON writer, and clients compare them. Owns those
//! spellings of whole values; quoting and numbers are [`berth_text::gotext`]'s, which is passed on. Never knows what a
//! value is about.

use std::fmt::{self, Display, Formatter, Write};

use berth_text::gotext::push_json_text;
pub use berth_text::gotext::{
    Quoted, code_point, float, is_print, json_float, json_kind, quote, quote_all, quote_list, string_slice,
};
use serde_json::{Number, Value};

/// Values nested deeper are written as `...`; documents are not read to such a depth.
const DEPTH_MAX: usize = 130;

/// A value as Go's JSON writer spells it: keys sorted, `<`, `>` and `&` escaped.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, DEPTH_MAX, &mut out);
    out
}

fn write_json(value: &Value, depth: usize, out: &mut String) {
    if depth == 0 {
        out.push_str("...");
        return;
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => out.push_str(&json_float(float)),
            None => {
                let _ = write!(out, "{number}");
            }
        },
        Value::String(text) => push_json_text(text, out),
        Value::Array(entries) => {
            out.push('[');
            for (index, entry) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(entry, depth - 1, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_json_text(name, out);
                out.push(':');
                write_json(field, depth - 1, out);
            }
            out.push('}');
        }
    }
}

/// A value's type as `%T` names it. Go reads a JSON number that is no 64-bit integer as a double.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as `%v` writes it: `map[a:1 b:[x y]]`.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a>(pub &'a Value);

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_plain(self.0, DEPTH_MAX, f)
    }
}

/// A value as `%#v` writes it, which is how Go's source would.
#[derive(Clone, Copy, Debug)]
pub struct Syntax<'a>(pub &'a Value);

impl Display for Syntax<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_syntax(self.0, DEPTH_MAX, f)
    }
}

fn write_number(number: &Number, f: &mut Formatter<'_>) -> fmt::Result {
    match number.as_i64() {
        Some(whole) => write!(f, "{whole}"),
        None => f.write_str(&float(number.as_f64().unwrap_or(f64::MAX))),
    }
}

fn write_plain(value: &Value, depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
    if depth == 0 {
        return f.write_str("...");
    }
    match value {
        Value::Null => f.write_str("<nil>"),
        Value::Bool(flag) => write!(f, "{flag}"),
        Value::Number(number) => write_number(number, f),
        Value::String(text) => f.write_str(text),
        Value::Array(items) => {
            f.write_char('[')?;
            for (index, item) in items.iter().enumerate() {
                f.write_str(if index > 0 { " " } else { "" })?;
                write_plain(item, depth - 1, f)?;
            }
            f.write_char(']')
        }
        Value::Object(fields) => {
            f.write_str("map[")?;
            for (index, (name, field)) in fields.iter().enumerate() {
                write!(f, "{}{name}:", if index > 0 { " " } else { "" })?;
                write_plain(field, depth - 1, f)?;
            }
            f.write_char(']')
        }
    }
}

fn write_syntax(value: &Value, depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
    if depth == 0 {
        return f.write_str("...");
    }
    match value {
        Value::Null => f.write_str("interface {}(nil)"),
        Value::Bool(flag) => write!(f, "{flag}"),
        Value::Number(number) => write_number(number, f),
        Value::String(text) => Quoted(text).fmt(f),
        Value::Array(items) => {
            f.write_str("[]interface {}{")?;
            for (index, item) in items.iter().enumerate() {
                f.write_str(if index > 0 { ", " } else { "" })?;
                write_syntax(item, depth - 1, f)?;
            }
            f.write_char('}')
        }
        Value::Object(fields) => {
            f.write_str("map[string]interface {}{")?;
            for (index, (name, field)) in fields.iter().enumerate() {
                write!(f, "{}{}:", if index > 0 { ", " } else { "" }, Quoted(name))?;
                write_syntax(field, depth - 1, f)?;
            }
            f.write_char('}')
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_written_the_way_go_does() {
        assert_eq!(
            json(&json!({"b": "<&>", "a": [1, 1.5, 3.0, null, 1e21, 1e-7]})),
            r#"{"a":[1,1.5,3,null,1e+21,1e-7],"b":"\u003c\u0026\u003e"}"#
        );
    }

    #[test]
    fn values_print_as_the_verbs_do() {
        let value = json!({"b": [1, "x", null, true], "a": {"c": 1.5, "d": 1e20, "e": u64::MAX}});
        assert_eq!(
            Plain(&value).to_string(),
            "map[a:map[c:1.5 d:1e+20 e:1.8446744073709552e+19] b:[1 x <nil> true]]"
        );
        assert_eq!(
            Syntax(&value).to_string(),
            r#"map[string]interface {}{"a":map[string]interface {}{"c":1.5, "d":1e+20, "e":1.8446744073709552e+19}, "b":[]interface {}{1, "x", interface {}(nil), true}}"#
        );
        assert_eq!(type_name(&value["b"][0]), "int64");
        assert_eq!(type_name(&value["a"]["e"]), "float64");
    }

    #[test]
    fn a_value_of_any_depth_is_written() {
        let deep = (0..100_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let texts = [json(&deep), Plain(&deep).to_string(), Syntax(&deep).to_string()];
        std::mem::forget(deep);
        assert!(texts.iter().all(|text| text.len() < 4000));
    }
}
