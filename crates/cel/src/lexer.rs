//! Splits source text into tokens.
//!
//! Owns literals and their escapes. Works in one pass over the bytes, keeps offsets for messages, and
//! never recurses.

use std::sync::Arc;

use crate::error::Issue;

/// A token and the byte offset at which it starts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) offset: usize,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// A name, reserved or not.
    Ident(String),
    /// A name in backticks.
    QuotedIdent(String),
    /// The magnitude of an integer; the sign is the parser's.
    Int(u64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    /// An operator or delimiter.
    Punct(&'static str),
    End,
}

/// Longest first, so that `<=` is not read as `<`.
const PUNCTUATION: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "+", "-", "*", "/", "%", "(", ")", "[", "]", "{", "}",
    ".", ",", ":", "?",
];

/// Reads all tokens. On an issue reading goes on behind the offending token, so that later ones are
/// reported as well.
pub(crate) fn tokenize(source: &str) -> (Vec<Token>, Vec<Issue>) {
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new(), issues: Vec::new() };
    while lexer.next_token() {}
    lexer.push(source.len(), TokenKind::End);
    (lexer.tokens, lexer.issues)
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token>,
    issues: Vec<Issue>,
}

impl Lexer<'_> {
    fn rest(&self) -> &[u8] {
        &self.source.as_bytes()[self.at..]
    }

    fn push(&mut self, offset: usize, kind: TokenKind) {
        self.tokens.push(Token { kind, offset });
    }

    fn issue(&mut self, offset: usize, message: impl Into<String>) {
        self.issues.push(Issue::at(self.source, offset, message));
    }

    /// Reads one token; false at the end.
    fn next_token(&mut self) -> bool {
        loop {
            match self.rest() {
                [b' ' | b'\t' | b'\r' | b'\n' | 0x0c, ..] => self.at += 1,
                [b'/', b'/', ..] => {
                    self.at =
                        self.source[self.at..].find('\n').map_or(self.source.len(), |end| self.at + end);
                }
                _ => break,
            }
        }
        let start = self.at;
        match self.rest() {
            [] => return false,
            [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => self.number(start),
            [b'"' | b'\'', ..] => self.string(start, false, false),
            [b'r' | b'R', b'"' | b'\'', ..] => {
                self.at += 1;
                self.string(start, true, false);
            }
            [b'b' | b'B', b'"' | b'\'', ..] => {
                self.at += 1;
                self.string(start, false, true);
            }
            [b'b' | b'B', b'r' | b'R', b'"' | b'\'', ..] => {
                self.at += 2;
                self.string(start, true, true);
            }
            [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => {
                let length =
                    self.rest().iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
                self.at += length;
                self.push(start, TokenKind::Ident(self.source[start..self.at].to_owned()));
            }
            [b'`', ..] => self.quoted_identifier(start),
            rest => {
                if let Some(punct) = PUNCTUATION.iter().find(|punct| rest.starts_with(punct.as_bytes())) {
                    self.at += punct.len();
                    self.push(start, TokenKind::Punct(punct));
                } else {
                    let bad = self.source[start..].chars().next().expect("not at the end");
                    self.at += bad.len_utf8();
                    self.issue(start, format!("Syntax error: token recognition error at: '{bad}'"));
                }
            }
        }
        true
    }

    fn quoted_identifier(&mut self, start: usize) {
        let body = &self.source[start + 1..];
        let length = body
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' ')))
            .unwrap_or(body.len());
        if length > 0 && body[length..].starts_with('`') {
            self.at = start + length + 2;
            self.push(start, TokenKind::QuotedIdent(body[..length].to_owned()));
        } else {
            self.at = start + 1;
            self.issue(start, "Syntax error: token recognition error at: '`'");
        }
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn number(&mut self, start: usize) {
        if matches!(self.rest(), [b'0', b'x', hex, ..] if hex.is_ascii_hexdigit()) {
            self.at += 2;
            let digits = self.rest().iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let text = &self.source[self.at..self.at + digits];
            let value = u64::from_str_radix(text, 16);
            self.at += digits;
            self.integer(start, value.ok());
            return;
        }
        self.digits();
        let mut double = false;
        if matches!(self.rest(), [b'.', b'0'..=b'9', ..]) {
            self.at += 1;
            self.digits();
            double = true;
        }
        if let [b'e' | b'E', rest @ ..] = self.rest() {
            let sign = usize::from(matches!(rest, [b'+' | b'-', ..]));
            if rest.get(sign).is_some_and(u8::is_ascii_digit) {
                self.at += 1 + sign;
                self.digits();
                double = true;
            }
        }
        let text = &self.source[start..self.at];
        if double {
            match text.parse::<f64>() {
                Ok(value) if value.is_finite() => self.push(start, TokenKind::Double(value)),
                _ => {
                    self.issue(start, "invalid double literal");
                    self.push(start, TokenKind::Double(0.0));
                }
            }
        } else {
            let value = text.parse::<u64>().ok();
            self.integer(start, value);
        }
    }

    fn integer(&mut self, start: usize, value: Option<u64>) {
        let unsigned = matches!(self.rest(), [b'u' | b'U', ..]);
        self.at += usize::from(unsigned);
        match value {
            Some(value) if unsigned => self.push(start, TokenKind::Uint(value)),
            Some(value) => self.push(start, TokenKind::Int(value)),
            None => {
                self.issue(start, if unsigned { "invalid uint literal" } else { "invalid int literal" });
                // Stands in for the literal so that the parser does not report a hole as well.
                self.push(start, TokenKind::Int(0));
            }
        }
    }

    /// Reads a text or bytes literal whose opening quote is at the current position.
    fn string(&mut self, start: usize, raw: bool, bytes: bool) {
        let quote = self.rest()[0];
        let triple = self.rest().starts_with(&[quote; 3]);
        let delimiter = if triple { 3 } else { 1 };
        self.at += delimiter;
        let body_start = self.at;
        loop {
            match self.rest() {
                [] => {
                    self.unterminated(start);
                    return;
                }
                [b'\n' | b'\r', ..] if !triple => {
                    self.unterminated(start);
                    return;
                }
                [b'\\', _, ..] if !raw => self.at += 2,
                rest if rest.len() >= delimiter && rest[..delimiter].iter().all(|byte| *byte == quote) => {
                    break;
                }
                _ => self.at += 1,
            }
        }
        // A backslash may have carried the position into the middle of a character; the delimiter is
        // ASCII, so the position reached here is a character boundary again.
        let body = &self.source[body_start..self.at];
        self.at += delimiter;
        let mut decoded = Decoded { bytes: Vec::with_capacity(body.len()), is_bytes: bytes };
        let result = if raw {
            decoded.raw(body);
            Ok(())
        } else {
            decoded.unescape(body)
        };
        match result {
            Ok(()) if bytes => self.push(start, TokenKind::Bytes(decoded.bytes.into())),
            Ok(()) => {
                let text = String::from_utf8(decoded.bytes).expect("text escapes append whole characters");
                self.push(start, TokenKind::String(text.into()));
            }
            Err(message) => {
                self.issue(start, message);
                self.push(start, TokenKind::String("".into()));
            }
        }
    }

    fn unterminated(&mut self, start: usize) {
        let shown: String = self.source[start..].chars().take(32).collect();
        self.issue(start, format!("Syntax error: token recognition error at: '{shown}'"));
        self.push(start, TokenKind::String("".into()));
        let line_end = self.source[start..].find('\n').map_or(self.source.len(), |end| start + end);
        self.at = line_end.max(start + 1);
        while !self.source.is_char_boundary(self.at) {
            self.at += 1;
        }
    }
}

struct Decoded {
    bytes: Vec<u8>,
    is_bytes: bool,
}

impl Decoded {
    fn raw(&mut self, body: &str) {
        self.bytes.extend_from_slice(normalize_newlines(body).as_bytes());
    }

    fn character(&mut self, c: char) {
        self.bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn unescape(&mut self, body: &str) -> Result<(), String> {
        let body = normalize_newlines(body);
        let mut chars = body.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                self.character(c);
                continue;
            }
            let escape = chars.next().ok_or("unable to unescape string, found '\\' as last character")?;
            match escape {
                'a' => self.bytes.push(0x07),
                'b' => self.bytes.push(0x08),
                'f' => self.bytes.push(0x0c),
                'n' => self.bytes.push(b'\n'),
                'r' => self.bytes.push(b'\r'),
                't' => self.bytes.push(b'\t'),
                'v' => self.bytes.push(0x0b),
                '\\' | '?' | '"' | '\'' | '`' => self.character(escape),
                'x' | 'X' => {
                    let code = hex(&mut chars, 2)?;
                    self.code(code, true)?;
                }
                'u' => {
                    let code = hex(&mut chars, 4)?;
                    self.code(code, false)?;
                }
                'U' => {
                    let code = hex(&mut chars, 8)?;
                    self.code(code, false)?;
                }
                '0'..='3' => {
                    let mut code = escape.to_digit(8).expect("matched an octal digit");
                    for _ in 0..2 {
                        let digit = chars.next().and_then(|c| c.to_digit(8));
                        code = code * 8 + digit.ok_or("unable to unescape octal sequence in string")?;
                    }
                    self.code(code, true)?;
                }
                _ => return Err("unable to unescape string".to_owned()),
            }
        }
        Ok(())
    }

    /// Appends a code given by number: one byte in a bytes literal, a character in a text.
    fn code(&mut self, code: u32, fits_byte: bool) -> Result<(), String> {
        if self.is_bytes {
            if !fits_byte {
                return Err("unable to unescape string".to_owned());
            }
            self.bytes.push(code as u8);
            return Ok(());
        }
        let c = char::from_u32(code).ok_or("invalid unicode code point")?;
        self.character(c);
        Ok(())
    }
}

fn hex(chars: &mut std::str::Chars<'_>, digits: usize) -> Result<u32, String> {
    let mut code = 0u32;
    for _ in 0..digits {
        let digit = chars.next().and_then(|c| c.to_digit(16)).ok_or("unable to unescape string")?;
        // Eight digits fill the 32 bits exactly.
        code = (code << 4) | digit;
    }
    Ok(code)
}

fn normalize_newlines(body: &str) -> std::borrow::Cow<'_, str> {
    if body.contains('\r') { body.replace("\r\n", "\n").replace('\r', "\n").into() } else { body.into() }
}
