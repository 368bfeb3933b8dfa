//! JSON text into nodes that know their place.
//!
//! YAML readers refuse some valid JSON (escaped surrogate pairs), and read the rest slowly; so what looks like JSON is
//! read as JSON first. Owns that reader, for one object or several in a row. Never reports more than the first
//! syntax error, as nothing after it can be trusted.

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::Value;

use super::node::{Content, Field, Node};
use super::path::FieldPath;
use super::problem::Position;
use super::scalar::whole;
use super::{Budget, DEPTH_MAX, DOCUMENTS_MAX, Fault, NODES_MAX, Read};

/// Whether a text is worth trying as JSON.
pub(super) fn looks_like_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Reads every document of `text`; the error is the first thing that is not JSON.
pub(super) fn read(text: &str, lines_before: usize, budget: &mut Budget) -> Result<Read, Fault> {
    let mut reader = Reader {
        text,
        offset: 0,
        line: lines_before + 1,
        counted: Cell::new((0, 1)),
        path: FieldPath::default(),
        nodes: 0,
        faults: Vec::new(),
    };
    let mut documents = Vec::new();
    reader.blanks();
    while reader.offset < text.len() {
        reader.nodes = 0;
        documents.push(reader.value(0)?);
        if documents.len() > budget.documents {
            return Err(reader.fault(reader.here(), format!("more than {DOCUMENTS_MAX} documents")));
        }
        reader.blanks();
    }
    budget.documents -= documents.len();
    Ok(Read { documents, faults: reader.faults })
}

struct Reader<'t> {
    text: &'t str,
    offset: usize,
    line: usize,
    /// An offset on the current line and its column: columns are counted on from here, so that a file of one long
    /// line is walked once and not once for every value.
    counted: Cell<(usize, usize)>,
    path: FieldPath,
    nodes: usize,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn here(&self) -> Position {
        let (offset, column) = self.counted.get();
        let column = column + self.text.get(offset..self.offset).map_or(0, |run| run.chars().count());
        self.counted.set((self.offset, column));
        Position::new(self.line, column)
    }

    fn fault(&self, at: Position, message: impl Into<String>) -> Fault {
        Fault { at, path: self.path.as_str().to_owned(), message: message.into() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn blanks(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.offset += 1;
            if byte == b'\n' {
                self.line += 1;
                self.counted.set((self.offset, 1));
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.peek() == Some(byte) {
            self.offset += 1;
            Ok(())
        } else {
            Err(self.fault(self.here(), format!("not valid JSON: expected '{}'", char::from(byte))))
        }
    }

    /// Recursion is bounded by [`DEPTH_MAX`].
    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        let at = self.here();
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(self.fault(at, format!("more than {NODES_MAX} values in one document")));
        }
        if depth >= DEPTH_MAX {
            return Err(self.fault(at, format!("nested deeper than {DEPTH_MAX} levels")));
        }
        let content = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Content::Scalar(Value::String(self.string()?)),
            _ => Content::Scalar(self.word()?),
        };
        Ok(Node { at, content })
    }

    fn object(&mut self, depth: usize) -> Result<Content, Fault> {
        self.expect(b'{')?;
        self.blanks();
        let mut fields: Vec<Field> = Vec::new();
        let mut keys: HashMap<String, Position> = HashMap::new();
        if self.peek() == Some(b'}') {
            self.offset += 1;
            return Ok(Content::Mapping(fields));
        }
        loop {
            self.blanks();
            let key_at = self.here();
            let key = self.string()?;
            self.path.push_key(&key);
            self.blanks();
            self.expect(b':')?;
            self.blanks();
            let value = self.value(depth + 1)?;
            if let Some(first) = keys.get(&key) {
                let message = format!("the key is given twice, first on line {}: keep one", first.line);
                let fault = self.fault(key_at, message);
                self.faults.push(fault);
            } else {
                keys.insert(key.clone(), key_at);
                fields.push(Field { key, key_at, value });
            }
            self.path.pop();
            self.blanks();
            if self.peek() == Some(b',') {
                self.offset += 1;
            } else {
                self.expect(b'}')?;
                return Ok(Content::Mapping(fields));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Content, Fault> {
        self.expect(b'[')?;
        self.blanks();
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.offset += 1;
            return Ok(Content::Sequence(items));
        }
        loop {
            self.blanks();
            self.path.push_index(items.len());
            items.push(self.value(depth + 1)?);
            self.path.pop();
            self.blanks();
            if self.peek() == Some(b',') {
                self.offset += 1;
            } else {
                self.expect(b']')?;
                return Ok(Content::Sequence(items));
            }
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let at = self.here();
        let start = self.offset;
        self.expect(b'"')?;
        while let Some(byte) = self.peek() {
            self.offset += 1;
            match byte {
                // The escaped byte cannot end the string; what it means is the decoder's to say.
                b'\\' => self.offset += 1,
                b'"' => break,
                _ => {}
            }
        }
        self.decode(start, at)
    }

    /// `true`, `false`, `null` or a number.
    fn word(&mut self) -> Result<Value, Fault> {
        let at = self.here();
        let start = self.offset;
        while matches!(self.peek(), Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.')) {
            self.offset += 1;
        }
        let value: Value = self.decode(start, at)?;
        Ok(match value.as_f64().filter(|_| value.is_f64()).and_then(whole) {
            Some(integer) => Value::Number(integer),
            None => value,
        })
    }

    fn decode<T: serde::de::DeserializeOwned>(&self, start: usize, at: Position) -> Result<T, Fault> {
        let token = self.text.get(start..self.offset).unwrap_or_default();
        serde_json::from_str(token).map_err(|_| self.fault(at, "not valid JSON: expected a value"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values(text: &str) -> Vec<Value> {
        let read = read(text, 0, &mut Budget::default()).unwrap();
        assert_eq!(read.faults, []);
        read.documents.into_iter().map(|node| node.split().0).collect()
    }

    fn fault(text: &str) -> (u32, u32, String) {
        let fault = read(text, 0, &mut Budget::default()).unwrap_err();
        (fault.at.line, fault.at.column, fault.message)
    }

    #[test]
    fn objects_in_a_row_are_several_documents() {
        assert_eq!(
            values("{\"a\":1}\n{\"a\":[true,null,-1.5e0]}  "),
            [json!({"a": 1}), json!({"a": [true, null, -1.5]})]
        );
    }

    #[test]
    fn surrogate_pairs_and_tabs_are_read() {
        assert_eq!(values("{\n\t\"a\": \"\\ud83d\\ude00 \\/\"\n}"), [json!({"a": "😀 /"})]);
    }

    #[test]
    fn fields_know_their_line_and_column() {
        let text = "{\n  \"é\": 1, \"spec\": {\n    \"x\": [\n      1,\n      {\"y\": 2}]}}";
        let (value, positions) = read(text, 0, &mut Budget::default()).unwrap().documents.remove(0).split();
        let find = |path: &str| {
            let at = positions.find(&value, path);
            (at.line, at.column)
        };
        assert_eq!(find("spec"), (2, 11));
        assert_eq!(find("spec.x[0]"), (4, 7));
        assert_eq!(find("spec.x[1].y"), (5, 8));
    }

    #[test]
    fn syntax_errors_name_their_place() {
        assert_eq!(fault("{\"a\": 1,\n }"), (2, 2, "not valid JSON: expected '\"'".into()));
        assert_eq!(fault("{a: 1}"), (1, 2, "not valid JSON: expected '\"'".into()));
        assert_eq!(fault("{\"a\": tru}"), (1, 7, "not valid JSON: expected a value".into()));
        assert_eq!(fault("{\"a\": \"x"), (1, 7, "not valid JSON: expected a value".into()));
        assert_eq!(fault("{\"a\": \"x\\"), (1, 7, "not valid JSON: expected a value".into()));
    }

    #[test]
    fn duplicate_keys_are_reported() {
        let read = read("{\"a\": {\"b\": 1,\n\"b\": 2}}", 0, &mut Budget::default()).unwrap();
        assert_eq!(read.faults[0].path, "a.b");
        assert_eq!(read.faults[0].at.line, 2);
    }

    #[test]
    fn depth_is_bounded() {
        assert!(fault(&"{\"a\":".repeat(10_000)).2.contains("nested deeper than 100 levels"));
    }
}
