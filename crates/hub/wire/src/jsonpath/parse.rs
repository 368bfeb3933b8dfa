//! Templates into nodes, with the quirks of the original grammar.

use serde_json::{Number, Value};

use super::{Block, JsonPath, Node, Slice, Test};
use crate::gotext::code_point;

/// Bytes of a template; the longest column in use is a few hundred.
pub const PATH_BYTES_MAX: usize = 16 * 1024;

/// Actions within actions: filters and keys in brackets bring one level each.
const DEPTH_MAX: usize = 8;

pub(super) fn template(text: &str) -> Result<JsonPath, String> {
    if text.len() > PATH_BYTES_MAX {
        return Err(format!("a path has at most {PATH_BYTES_MAX} bytes"));
    }
    let mut blocks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        match rest.find('{') {
            None => {
                blocks.push(Block::Text(Value::from(rest)));
                break;
            }
            Some(at) => {
                if at > 0 {
                    blocks.push(Block::Text(Value::from(&rest[..at])));
                }
                let mut parser = Parser { text: &rest[at + 1..], at: 0, depth: 0 };
                blocks.push(Block::Action(parser.action()?));
                rest = &parser.text[parser.at..];
            }
        }
    }
    Ok(JsonPath { blocks })
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

fn is_terminator(c: Option<char>) -> bool {
    matches!(c, None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'))
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Whether the character before the one just taken is a backslash.
    fn is_escaped(&self) -> bool {
        self.at >= 2 && self.text.as_bytes()[self.at - 2] == b'\\'
    }

    /// Everything up to the closing brace, which is taken.
    fn action(&mut self) -> Result<Vec<Node>, String> {
        let mut nodes = Vec::new();
        loop {
            if self.rest().starts_with("[?(") {
                self.at += 3;
                nodes.push(self.filter()?);
                continue;
            }
            if self.rest().starts_with("..") {
                if nodes.last() == Some(&Node::Recursive) {
                    return Err("invalid multiple recursive descent".to_owned());
                }
                self.at += 2;
                nodes.push(Node::Recursive);
                if self.peek().is_some_and(is_word) {
                    nodes.push(self.field());
                }
                continue;
            }
            let start = self.at;
            match self.next() {
                None | Some('\r' | '\n') => return Err("unclosed action".to_owned()),
                Some('}') => return Ok(nodes),
                Some(' ' | '@' | '$') => {}
                Some('[') => self.array(&mut nodes)?,
                Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(start, quote)?),
                Some('.') => nodes.push(self.field()),
                Some(c) if c == '+' || c == '-' || c.is_numeric() => nodes.push(self.number(start)?),
                Some(c) if is_word(c) => {
                    while !is_terminator(self.peek()) {
                        self.next();
                    }
                    nodes.push(match &self.text[start..self.at] {
                        "true" => Node::Literal(Value::Bool(true)),
                        "false" => Node::Literal(Value::Bool(false)),
                        word => Node::Identifier(word.to_owned()),
                    });
                }
                Some(c) => return Err(format!("unrecognized character in action: {}", code_point(c))),
            }
        }
    }

    /// A part of a path, which has its own braces in the original grammar.
    fn nested(&self, text: &str) -> Result<Vec<Node>, String> {
        if self.depth >= DEPTH_MAX {
            return Err(format!("nested deeper than {DEPTH_MAX} levels"));
        }
        let text = format!("{text}}}");
        Parser { text: &text, at: 0, depth: self.depth + 1 }.action()
    }

    /// A field up to the next character that ends it; a backslash protects one character.
    fn field(&mut self) -> Node {
        let start = self.at;
        while !is_terminator(self.peek()) {
            if self.next() == Some('\\') {
                self.next();
            }
        }
        match &self.text[start..self.at] {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        }
    }

    fn number(&mut self, start: usize) -> Result<Node, String> {
        while self.peek().is_some_and(|c| c == '.' || c.is_numeric()) {
            self.next();
        }
        let text = &self.text[start..self.at];
        if let Ok(whole) = text.parse::<i64>() {
            return Ok(Node::Literal(Value::from(whole)));
        }
        let float = text.parse().ok().and_then(Number::from_f64);
        float.map(|n| Node::Literal(Value::Number(n))).ok_or_else(|| format!("cannot parse number {text}"))
    }

    fn quoted(&mut self, start: usize, quote: char) -> Result<Node, String> {
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated quoted string".to_owned()),
                Some(c) if c == quote && !self.is_escaped() => break,
                Some(_) => {}
            }
        }
        let text = &self.text[start..self.at];
        match unquote(&text[1..text.len() - 1], quote) {
            Some(value) => Ok(Node::Literal(Value::String(value))),
            None => Err(format!("unquote string {text} error invalid syntax")),
        }
    }

    /// What stands in brackets, after the opening one.
    fn array(&mut self, nodes: &mut Vec<Node>) -> Result<(), String> {
        let start = self.at;
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated array".to_owned()),
                Some(']') => break,
                Some(_) => {}
            }
        }
        let text = match &self.text[start..self.at - 1] {
            "*" => ":",
            text => text,
        };
        if text.contains(',') {
            let members =
                text.split(',').map(|member| self.nested(&format!("[{}]", member.trim_matches(' '))));
            nodes.push(Node::Union(members.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let key =
            text.strip_prefix('\'').and_then(|key| key.strip_suffix('\'')).filter(|key| !key.contains('\''));
        if let Some(key) = key {
            // A key in quotes is read like a field, dots and all: they need a backslash here too.
            nodes.extend(self.nested(&format!(".{key}"))?);
            return Ok(());
        }
        nodes.push(Node::Slice(slice(text)?));
        Ok(())
    }

    /// A filter after its opening `[?(`.
    fn filter(&mut self) -> Result<Node, String> {
        let start = self.at;
        let (mut begun, mut ended) = (false, false);
        let mut pair = '"';
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated filter".to_owned()),
                Some(c @ ('"' | '\'')) => {
                    if !begun {
                        begun = true;
                        pair = c;
                    } else if c == pair && !self.is_escaped() {
                        ended = true;
                    }
                }
                Some(')') if begun == ended => break,
                Some(_) => {}
            }
        }
        let text = &self.text[start..self.at - 1];
        if self.next() != Some(']') {
            return Err("unclosed array expect ]".to_owned());
        }
        let Some((left, operator, right)) = split_comparison(text) else {
            return Ok(Node::Filter { left: self.nested(text)?, test: Test::Exists, right: Vec::new() });
        };
        let test = match operator {
            "==" => Test::Equal,
            "!=" => Test::NotEqual,
            "<" => Test::Less,
            "<=" => Test::LessOrEqual,
            ">" => Test::Greater,
            ">=" => Test::GreaterOrEqual,
            other => Test::Unknown(other.to_owned()),
        };
        Ok(Node::Filter { left: self.nested(left)?, test, right: self.nested(right)? })
    }
}

/// Something, then characters of operators, then something.
fn split_comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let from = text.find(is_operator).filter(|from| *from > 0)?;
    let length = text[from..].find(|c| !is_operator(c)).unwrap_or(text.len() - from);
    // Where nothing follows, the last character of the operator is what follows.
    let to = if from + length == text.len() { text.len() - 1 } else { from + length };
    (to > from).then(|| (&text[..from], &text[from..to], &text[to..]))
}

/// `1`, `-1`, `1:3`, `:`, `::2`.
fn slice(text: &str) -> Result<Slice, String> {
    let wrong = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return Err(wrong());
    }
    let number = |part: &str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        match part {
            "" => Ok(None),
            part => part.parse::<i64>().map(Some).map_err(|_| format!("array index {part} is not a number")),
        }
    };
    let start = number(parts[0])?;
    let (end, end_is_derived) = match parts.get(1) {
        Some(part) => (number(part)?, false),
        None => (Some(start.unwrap_or(0).saturating_add(1)), true),
    };
    let step = parts.get(2).map(|part| number(part)).transpose()?.flatten();
    Ok(Slice { start, end, end_is_derived, step })
}

/// Undoes the escapes of a Go string in either kind of quotes; nothing when one is not an escape.
fn unquote(text: &str, quote: char) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == quote {
            return None;
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        match escape(chars.next()?) {
            Escape::Simple(c) => out.push(c),
            Escape::Code(digits) => {
                let text: String = chars.by_ref().take(digits).collect();
                if text.len() != digits || !text.chars().all(|c| c.is_ascii_hexdigit()) {
                    return None;
                }
                out.push(u32::from_str_radix(&text, 16).ok().and_then(char::from_u32)?);
            }
            Escape::Quote(c) if c == quote => out.push(c),
            Escape::Quote(_) | Escape::Unknown => return None,
        }
    }
    Some(out)
}

enum Escape {
    Simple(char),
    Code(usize),
    Quote(char),
    Unknown,
}

fn escape(c: char) -> Escape {
    match c {
        'a' => Escape::Simple('\u{7}'),
        'b' => Escape::Simple('\u{8}'),
        'f' => Escape::Simple('\u{c}'),
        'n' => Escape::Simple('\n'),
        'r' => Escape::Simple('\r'),
        't' => Escape::Simple('\t'),
        'v' => Escape::Simple('\u{b}'),
        '\\' => Escape::Simple('\\'),
        'x' => Escape::Code(2),
        'u' => Escape::Code(4),
        'U' => Escape::Code(8),
        '"' | '\'' => Escape::Quote(c),
        _ => Escape::Unknown,
    }
}
