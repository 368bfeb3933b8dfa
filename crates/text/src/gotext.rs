//! Text as Go's standard library writes it.
//!
//! Kubernetes' messages are made with Go's formatting verbs, and clients compare them. Owns quoting, numbers and the
//! notion of a printable character. Never knows what the text is about.

use std::{
    fmt::{self, Display, Formatter, Write},
    sync::LazyLock,
};

use regex::Regex;
use serde_json::Value;

/// What Go's JSON decoder calls a value in its complaints.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A text in double quotes with Go's escapes, as `%q` and `strconv.Quote` give it.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    // Writing to a String cannot fail.
    let _ = write_quoted(text, &mut out);
    out
}

/// What [`quote`] gives, for a place that displays it.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(self.0, f)
    }
}

fn write_quoted(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\u{7}' => out.write_str("\\a")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{c}' => out.write_str("\\f")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\u{b}' => out.write_str("\\v")?,
            c if is_print(c) => out.write_char(c)?,
            c if c.is_ascii() => write!(out, "\\x{:02x}", c as u32)?,
            c if (c as u32) < 0x1_0000 => write!(out, "\\u{:04x}", c as u32)?,
            c => write!(out, "\\U{:08x}", c as u32)?,
        }
    }
    out.write_char('"')
}

fn quoted_and_joined<S: AsRef<str>>(texts: &[S], separator: &str) -> String {
    texts.iter().map(|text| quote(text.as_ref())).collect::<Vec<_>>().join(separator)
}

/// Texts, each quoted, joined by a comma and a space.
pub fn quote_all<S: AsRef<str>>(texts: &[S]) -> String {
    quoted_and_joined(texts, ", ")
}

/// A list of texts as `%q` writes a `[]string`: `["a" "b"]`.
pub fn quote_list<S: AsRef<str>>(texts: &[S]) -> String {
    format!("[{}]", quoted_and_joined(texts, " "))
}

/// A list of texts as `%#v` writes a `[]string`.
pub fn string_slice<S: AsRef<str>>(texts: &[S]) -> String {
    format!("[]string{{{}}}", quote_all(texts))
}

/// Whether Go counts a character as printable: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_print(c: char) -> bool {
    static PRINTABLE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]$").expect("the expression is a constant"));
    match c {
        ' '..='~' => true,
        c if c.is_ascii() => false,
        c => PRINTABLE.is_match(c.encode_utf8(&mut [0; 4])),
    }
}

/// A character as `%#U` writes it: `U+0041 'A'`, without the quoted part when it is not printable.
pub fn code_point(c: char) -> String {
    if is_print(c) { format!("U+{:04X} '{c}'", c as u32) } else { format!("U+{:04X}", c as u32) }
}

/// A float as `%v`, `%g` and `%#v` write it: the shortest digits that read back as the same number, with an exponent
/// from a million on and below a ten-thousandth.
pub fn float(value: f64) -> String {
    float_within(value, 6)
}

/// A float as Go's JSON writer spells it: an exponent from 10^21 on and below a millionth.
pub fn json_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = float_within(value, 0);
        // One digit of a negative exponent is not padded here.
        return match text.split_once("e-0") {
            Some((mantissa, exponent)) => format!("{mantissa}e-{exponent}"),
            None => text,
        };
    }
    format!("{value}")
}

/// The shortest digits, with an exponent where the decimal one is below -4 or at least `limit`.
fn float_within(value: f64, limit: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= limit {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{value}")
}

/// Appends a text as Go's JSON writer spells it, fit to stand in HTML: `<`, `>` and `&` are escaped.
pub fn push_json_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quoting_escapes_what_go_escapes() {
        for (text, want) in [
            ("plain 'x'", r#""plain 'x'""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("a\nb\t\u{1}\u{7f}", r#""a\nb\t\x01\x7f""#),
            ("\u{7}\u{8}\u{c}\r\u{b}", r#""\a\b\f\r\v""#),
            ("é 日本", "\"é 日本\""),
            ("e\u{301}'\u{17c6}", "\"e\u{301}'\u{17c6}\""),
            ("\u{200b}\u{a0}\u{e000}\u{1f4a9}\u{10ffff}", "\"\\u200b\\u00a0\\ue000\u{1f4a9}\\U0010ffff\""),
        ] {
            assert_eq!(quote(text), want);
            assert_eq!(Quoted(text).to_string(), want);
        }
    }

    #[test]
    fn every_verb_has_its_own_way_with_lists() {
        assert_eq!(quote_all(&["a", "b"]), r#""a", "b""#);
        assert_eq!(quote_list(&["a", "b"]), r#"["a" "b"]"#);
        assert_eq!(quote_list::<&str>(&[]), "[]");
        assert_eq!(string_slice(&["a", "b"]), r#"[]string{"a", "b"}"#);
    }

    #[test]
    fn floats_take_an_exponent_where_go_gives_them_one() {
        for (value, text) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (999_999.0, "999999"),
            (123_456.75, "123456.75"),
            (1e6, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (2_147_483_648.0, "2.147483648e+09"),
            (1e20, "1e+20"),
            (1e21, "1e+21"),
            (1e100, "1e+100"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1.5e-5, "1.5e-05"),
            (0.0, "0"),
            (-0.0, "-0"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn floats_in_json_have_other_limits() {
        for (value, text) in [
            (1e6, "1000000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (0.000_01, "0.00001"),
            (1e-7, "1e-7"),
            (-1.5e-10, "-1.5e-10"),
            (3.0, "3"),
        ] {
            assert_eq!(json_float(value), text);
        }
    }

    #[test]
    fn text_in_json_is_fit_for_html() {
        let mut out = String::new();
        push_json_text("<a&\"\n\u{1}\u{2028}é>", &mut out);
        assert_eq!(out, r#""\u003ca\u0026\"\n\u0001\u2028é\u003e""#);
    }

    #[test]
    fn a_code_point_is_named_with_its_character() {
        assert_eq!(code_point('A'), "U+0041 'A'");
        assert_eq!(code_point('\n'), "U+000A");
    }

    proptest! {
        #[test]
        fn a_float_reads_back_as_the_same_number(value in proptest::num::f64::NORMAL | proptest::num::f64::ZERO) {
            for text in [float(value), json_float(value)] {
                prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
            }
        }

        #[test]
        fn quoted_text_has_nothing_but_printable_characters(text in any::<String>()) {
            prop_assert!(quote(&text).chars().all(is_print));
        }
    }
}
