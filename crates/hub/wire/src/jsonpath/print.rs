//! Found values as text.

use serde_json::Value;

use crate::gotext;

/// Bytes of one printed value. A real server prints all of it; a table of a thousand rows must not grow to the size of
/// a thousand objects.
pub const PRINTED_BYTES_MAX: usize = 64 * 1024;

/// A value as a column of strings shows it.
pub fn print(value: &Value) -> String {
    let mut text = match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(float)) => gotext::float(float),
            (None, None) => number.to_string(),
        },
        Value::String(text) => text.clone(),
        // Go's encoder makes JSON safe for HTML; the characters stand only within strings.
        Value::Array(_) | Value::Object(_) => {
            value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
        }
    };
    if text.len() > PRINTED_BYTES_MAX {
        let cut = text.floor_char_boundary(PRINTED_BYTES_MAX);
        text.truncate(cut);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_print_as_go_prints_them() {
        for (value, want) in [
            (json!(null), "<no value>"),
            (json!(true), "true"),
            (json!(5), "5"),
            (json!(1e21), "1e+21"),
            (json!(0.5), "0.5"),
            (json!("a<b"), "a<b"),
            (json!({"b": 1, "a": "<&>"}), r#"{"a":"\u003c\u0026\u003e","b":1}"#),
            (json!([1, "x"]), r#"[1,"x"]"#),
        ] {
            assert_eq!(print(&value), want);
        }
    }

    #[test]
    fn what_is_printed_has_a_limit() {
        assert_eq!(print(&json!("é".repeat(PRINTED_BYTES_MAX))).len(), PRINTED_BYTES_MAX);
    }
}
