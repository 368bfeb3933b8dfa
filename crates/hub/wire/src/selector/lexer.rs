//! Label selectors into tokens.

/// A piece of a label selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    End,
    CloseParenthesis,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    GreaterThan,
    Identifier,
    In,
    LessThan,
    NotEquals,
    NotIn,
    OpenParenthesis,
}

/// A token and the text it was made of.
pub(super) type Item<'t> = (Token, &'t str);

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

const fn is_special(byte: u8) -> bool {
    matches!(byte, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}

/// The real server swallows a zero byte that ends a token.
fn past_zero(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at) == Some(&0) { at + 1 } else { at }
}

/// Cuts a selector into tokens; the last one is always [`Token::End`].
pub(super) fn scan(text: &str) -> Vec<Item<'_>> {
    let bytes = text.as_bytes();
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        match byte {
            byte if is_space(byte) => at += 1,
            // A zero byte ends the text for the real server too.
            0 => break,
            byte if is_special(byte) => {
                let two = text.get(start..start + 2);
                let (token, length) = match (byte, two) {
                    (_, Some("==")) => (Token::DoubleEquals, 2),
                    (_, Some("!=")) => (Token::NotEquals, 2),
                    (b'=', _) => (Token::Equals, 1),
                    (b'!', _) => (Token::Not, 1),
                    (b'(', _) => (Token::OpenParenthesis, 1),
                    (b')', _) => (Token::CloseParenthesis, 1),
                    (b',', _) => (Token::Comma, 1),
                    (b'>', _) => (Token::GreaterThan, 1),
                    _ => (Token::LessThan, 1),
                };
                at += length;
                items.push((token, &text[start..at]));
                at = past_zero(bytes, at);
            }
            _ => {
                while bytes.get(at).is_some_and(|&b| b != 0 && !is_special(b) && !is_space(b)) {
                    at += 1;
                }
                let word = &text[start..at];
                let token = match word {
                    "in" => Token::In,
                    "notin" => Token::NotIn,
                    _ => Token::Identifier,
                };
                items.push((token, word));
                at = past_zero(bytes, at);
            }
        }
    }
    items.push((Token::End, ""));
    items
}
