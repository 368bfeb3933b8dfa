//! JSON text into values, as strictly and as leniently as a Kubernetes server reads it.
//!
//! Owns the grammar with the complaints of Go's scanner, the kinds of numbers (64-bit integers, floats otherwise),
//! duplicate keys (the last one wins, and each is told once), invalid UTF-8 (replaced) and the limit on nesting.
//! Never knows what the value is.

use serde_json::{Map, Number, Value};

use crate::gotext::quote;

/// Levels of nesting that are read. Everything after this crate walks values by recursion and reads stored JSON with
/// `serde_json`, which stops at 128; this leaves room for what is wrapped around an object.
pub const DEPTH_MAX: usize = 120;

/// Duplicate fields that are told; a body can hold hundreds of thousands.
pub const DUPLICATES_MAX: usize = 100;

/// A value and the fields that were given more than once in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value.
    pub value: Value,
    /// The paths of fields given more than once, in order, each once: `spec.containers[0].name`.
    pub duplicates: Vec<String>,
    /// The line of each, for texts that are read by lines: YAML.
    pub duplicate_lines: Vec<usize>,
}

/// Reads one JSON value that fills all of `text`. The error is the sentence a Go server gives.
pub fn read(text: &[u8]) -> Result<Document, String> {
    let mut reader = Reader {
        text,
        at: 0,
        path: String::new(),
        duplicates: Vec::new(),
        told: 0,
        beyond: None,
        scratch: Vec::new(),
    };
    reader.skip_space();
    let value = reader.value(0)?;
    reader.skip_space();
    if let Some(&byte) = reader.text.get(reader.at) {
        return Err(unexpected(byte, "after top-level value"));
    }
    if let Some(error) = reader.beyond {
        return Err(error);
    }
    Ok(Document { value, duplicates: reader.duplicates, duplicate_lines: Vec::new() })
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    /// Where the reader is, as duplicate fields are named.
    path: String,
    duplicates: Vec<String>,
    /// The first number that is none: told only when the text is well-formed to its end.
    beyond: Option<String>,
    /// Every duplicate met, told or not: bounds the search for those told before.
    told: usize,
    scratch: Vec<u8>,
}

fn unexpected(byte: u8, place: &str) -> String {
    format!("invalid character {} {place}", character(byte))
}

/// A byte as Go's scanner quotes it.
fn character(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = quote(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

const END: &str = "unexpected end of JSON input";

impl Reader<'_> {
    fn skip_space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte after spaces, which is not taken.
    fn peek(&mut self) -> Result<u8, String> {
        self.skip_space();
        self.text.get(self.at).copied().ok_or_else(|| END.to_owned())
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        match self.peek()? {
            b'{' => self.object(depth + 1),
            b'[' => self.array(depth + 1),
            b'"' => self.string().map(Value::String),
            b't' => self.literal(b"true", Value::Bool(true)),
            b'f' => self.literal(b"false", Value::Bool(false)),
            b'n' => self.literal(b"null", Value::Null),
            b'-' | b'0'..=b'9' => self.number().map(Value::Number),
            byte => Err(unexpected(byte, "looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err("exceeded max depth".to_owned());
        }
        self.at += 1;
        let mut map = Map::new();
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(Value::Object(map));
        }
        loop {
            let byte = self.peek()?;
            if byte != b'"' {
                return Err(unexpected(byte, "looking for beginning of object key string"));
            }
            let key = self.string()?;
            let byte = self.peek()?;
            if byte != b':' {
                return Err(unexpected(byte, "after object key"));
            }
            self.at += 1;
            let parent = self.path.len();
            if parent > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if map.contains_key(&key) {
                self.tell_duplicate();
            }
            let value = self.value(depth)?;
            self.path.truncate(parent);
            map.insert(key, value);
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(Value::Object(map));
                }
                byte => return Err(unexpected(byte, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err("exceeded max depth".to_owned());
        }
        self.at += 1;
        let mut items = Vec::new();
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            let parent = self.path.len();
            let nested = matches!(self.peek()?, b'{' | b'[');
            if nested {
                use std::fmt::Write as _;
                let _ = write!(self.path, "[{}]", items.len());
            }
            let value = self.value(depth)?;
            self.path.truncate(parent);
            items.push(value);
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                byte => return Err(unexpected(byte, "after array element")),
            }
        }
    }

    fn tell_duplicate(&mut self) {
        self.told += 1;
        if self.told <= DUPLICATES_MAX && !self.duplicates.contains(&self.path) {
            self.duplicates.push(self.path.clone());
        }
    }

    fn literal(&mut self, word: &'static [u8], value: Value) -> Result<Value, String> {
        for (index, &want) in word.iter().enumerate() {
            if self.text.get(self.at) != Some(&want) {
                debug_assert!(index > 0, "the first byte chose the literal");
                let word = String::from_utf8_lossy(word);
                return Err(self.missing(&format!("in literal {word} (expecting {})", character(want))));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.text.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Number, String> {
        let start = self.at;
        let mut is_integer = true;
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => {
                self.digits();
            }
            _ => return Err(self.missing("in numeric literal")),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            is_integer = false;
            if self.digits() == 0 {
                return Err(self.missing("after decimal point in numeric literal"));
            }
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            is_integer = false;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.missing("in exponent of numeric literal"));
            }
        }
        let literal =
            std::str::from_utf8(&self.text[start..self.at]).expect("the bytes of a number are ASCII");
        Ok(number(literal, is_integer).unwrap_or_else(|| {
            let why = format!("json: cannot unmarshal number {literal} into Go value of type float64");
            self.beyond.get_or_insert(why);
            Number::from(0)
        }))
    }

    fn missing(&self, place: &str) -> String {
        // Where the text ends, the scanner complains as if a space followed, unless one is allowed there.
        unexpected(self.text.get(self.at).copied().unwrap_or(b' '), place)
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let start = self.at;
        // Most strings have nothing to undo: find the end first.
        loop {
            match self.text.get(self.at) {
                None => return Err(END.to_owned()),
                Some(b'"') => {
                    let bytes = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(into_text(bytes));
                }
                Some(b'\\') => break,
                Some(&byte) if byte < 0x20 => return Err(unexpected(byte, "in string literal")),
                Some(_) => self.at += 1,
            }
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend_from_slice(&self.text[start..self.at]);
        let result = self.escaped_string(&mut scratch);
        let text = result.map(|()| into_text(&scratch));
        self.scratch = scratch;
        text
    }

    fn escaped_string(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        loop {
            let byte = *self.text.get(self.at).ok_or_else(|| END.to_owned())?;
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => {
                    let escape = self.text.get(self.at).copied().unwrap_or(b' ');
                    self.at += 1;
                    match escape {
                        b'"' | b'\\' | b'/' => out.push(escape),
                        b'b' => out.push(8),
                        b'f' => out.push(12),
                        b'n' => out.push(b'\n'),
                        b'r' => out.push(b'\r'),
                        b't' => out.push(b'\t'),
                        b'u' => {
                            let c = self.unicode_escape()?;
                            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        other => return Err(unexpected(other, "in string escape code")),
                    }
                }
                byte if byte < 0x20 => return Err(unexpected(byte, "in string literal")),
                byte => out.push(byte),
            }
        }
    }

    /// What follows `\u`, with the second half of a pair where one is needed and there.
    fn unicode_escape(&mut self) -> Result<char, String> {
        let first = self.hex4()?;
        if !(0xd800..0xe000).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if self.text.get(self.at..self.at + 2) == Some(b"\\u") {
            let back = self.at;
            self.at += 2;
            let second = self.hex4()?;
            if first < 0xdc00 && (0xdc00..0xe000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // Half a pair stands for nothing; what follows it stands for itself.
            self.at = back;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.text.get(self.at).copied().unwrap_or(b' ');
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(unexpected(byte, "in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

/// Text of bytes that may not be UTF-8: each byte that is not stands for one replacement character, as in Go.
fn into_text(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}

/// A number as Kubernetes keeps it: an `i64` where it is one, also when it is written with a fraction of zero (that is
/// how it would come back from storage), a float otherwise. Nothing when it is beyond every float.
fn number(literal: &str, is_integer: bool) -> Option<Number> {
    if is_integer && let Ok(value) = literal.parse::<i64>() {
        return Some(Number::from(value));
    }
    let value: f64 = literal.parse().ok()?;
    whole(value).or_else(|| Number::from_f64(value))
}

/// The integer a float without a fraction stands for.
fn whole(value: f64) -> Option<Number> {
    // Two to the sixty-third: the first float that no `i64` can hold.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let is_negative_zero = value == 0.0 && value.is_sign_negative();
    (value.fract() == 0.0 && value.abs() < LIMIT && !is_negative_zero).then(|| Number::from(value as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        read(text.as_bytes()).unwrap().value
    }

    fn error(text: &str) -> String {
        read(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn complaints_are_those_of_the_go_scanner() {
        for (text, want) in [
            ("", END),
            ("  ", END),
            ("{", END),
            ("{\"a\"", END),
            ("[1", END),
            ("\"abc", END),
            ("-", "invalid character ' ' in numeric literal"),
            ("1.", "invalid character ' ' after decimal point in numeric literal"),
            ("1e", "invalid character ' ' in exponent of numeric literal"),
            ("tru", "invalid character ' ' in literal true (expecting 'e')"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("nul1", "invalid character '1' in literal null (expecting 'l')"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
            ("[1e400 x", "invalid character 'x' after array element"),
            ("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"),
        ] {
            assert_eq!(error(text), want, "{text}");
        }
        assert_eq!(read(b"\xff").unwrap_err(), "invalid character '\u{ff}' looking for beginning of value");
    }

    #[test]
    fn numbers_are_integers_of_64_bits_or_floats() {
        assert_eq!(value("9223372036854775807"), json!(i64::MAX));
        assert_eq!(value("-9223372036854775808"), json!(i64::MIN));
        assert_eq!(value("9223372036854775808"), json!(9.223_372_036_854_776e18));
        assert_eq!(value("1.0"), json!(1));
        assert_eq!(value("1e3"), json!(1000));
        assert_eq!(value("0.1"), json!(0.1));
        assert_eq!(value("-0"), json!(0));
        assert_eq!(value("-0.0").to_string(), "-0.0");
    }

    #[test]
    fn duplicates_are_named_by_path_once_and_the_last_value_stays() {
        let text = br#"{"a":1,"spec":{"x":1,"x":2,"x":3,"list":[{"y":1},{"y":1,"y":2}],"m":[[{"z":0,"z":1}]]},"a":2}"#;
        let document = read(text).unwrap();
        assert_eq!(document.duplicates, ["spec.x", "spec.list[1].y", "spec.m[0][0].z", "a"]);
        assert_eq!(document.value["spec"]["x"], 3);
        assert_eq!(document.value["a"], 2);
    }

    #[test]
    fn strings_undo_their_escapes_and_mend_what_is_not_text() {
        assert_eq!(value(r#""a\"\\\/\b\f\n\r\té😀""#), json!("a\"\\/\u{8}\u{c}\n\r\té😀"));
        assert_eq!(value(r#""\ud83d\u0041""#), json!("\u{fffd}A"));
        assert_eq!(value(r#""\udc00x""#), json!("\u{fffd}x"));
        assert_eq!(read(b"\"a\xff\xc3\"").unwrap().value, json!("a\u{fffd}\u{fffd}"));
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert_eq!(error(&nested(DEPTH_MAX + 1)), "exceeded max depth");
        assert_eq!(error(&"{\"a\":".repeat(1_000_000)), "exceeded max depth");
        let deepest = read(nested(DEPTH_MAX).as_bytes()).unwrap().value;
        assert!(serde_json::from_str::<Value>(&deepest.to_string()).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn what_is_valid_json_is_the_same_set_as_for_serde(text in "[\\[\\]{}:,\"a0-9.eE\\-+\\\\u tfn ]{0,24}") {
            // serde also refuses lone surrogates, which Go mends.
            prop_assume!(!text.contains("\\u"));
            let ours = read(text.as_bytes());
            let theirs = serde_json::from_str::<Value>(&text);
            prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs);
        }
    }
}
