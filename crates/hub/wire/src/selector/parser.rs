//! The grammar of label selectors.

use super::label::{Operator, Requirement, key_cause, sentence};
use super::lexer::{self, Item, Token};

/// The requirements of a selector, in the order they are written.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    Parser { items: lexer::scan(text), at: 0 }.selector()
}

struct Parser<'t> {
    items: Vec<Item<'t>>,
    at: usize,
}

impl<'t> Parser<'t> {
    /// The token here, with words taken for operators.
    fn operator_here(&self) -> Item<'t> {
        self.items.get(self.at).copied().unwrap_or((Token::End, ""))
    }

    /// The token here, with words taken for names.
    fn here(&self) -> Item<'t> {
        match self.operator_here() {
            (Token::In | Token::NotIn, text) => (Token::Identifier, text),
            item => item,
        }
    }

    fn take(&mut self) -> Item<'t> {
        let item = self.here();
        self.at += 1;
        item
    }

    fn selector(mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.here() {
                (Token::Identifier | Token::Not, _) => {
                    let requirement = self
                        .requirement()
                        .map_err(|error| format!("unable to parse requirement: {error}"))?;
                    requirements.push(requirement);
                    match self.take() {
                        (Token::End, _) => return Ok(requirements),
                        (Token::Comma, _) => {
                            let (next, text) = self.here();
                            if next != Token::Identifier && next != Token::Not {
                                return Err(format!("found '{text}', expected: identifier after ','"));
                            }
                        }
                        (_, text) => return Err(format!("found '{text}', expected: ',' or 'end of string'")),
                    }
                }
                (Token::End, _) => return Ok(requirements),
                (_, text) => {
                    return Err(format!("found '{text}', expected: !, identifier, or 'end of string'"));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.take();
        let negated = token == Token::Not;
        if negated {
            (token, key) = self.take();
        }
        if token != Token::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(cause) = key_cause(key, "<nil>") {
            return Err(sentence(&[cause]));
        }
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.here().0, Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let (token, text) = self.operator_here();
        self.at += 1;
        let operator = match token {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::GreaterThan => Operator::GreaterThan,
            Token::LessThan => Operator::LessThan,
            _ => return Err(format!("found '{text}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.value_set()?,
            _ => vec![self.exact_value()?],
        };
        Requirement::new(key, operator, values)
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.here().0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.take() {
            (Token::Identifier, text) => Ok(text.to_owned()),
            (_, text) => Err(format!("found '{text}', expected: identifier")),
        }
    }

    fn value_set(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            (Token::OpenParenthesis, _) => {}
            (_, text) => return Err(format!("found '{text}' expected: '('")),
        }
        match self.here() {
            (Token::Identifier | Token::Comma, _) => self.values(),
            (Token::CloseParenthesis, _) => {
                self.at += 1;
                Ok(vec![String::new()])
            }
            (_, text) => Err(format!("found '{text}', expected: ',', ')' or identifier")),
        }
    }

    /// A list of names, any of which may be empty, up to and with the closing parenthesis.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        loop {
            match self.take() {
                (Token::Identifier, text) => {
                    values.push(text.to_owned());
                    match self.here() {
                        (Token::Comma, _) => {}
                        (Token::CloseParenthesis, _) => break,
                        (_, text) => return Err(format!("found '{text}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.here().0 {
                        Token::CloseParenthesis => {
                            values.push(String::new());
                            break;
                        }
                        Token::Comma => values.push(String::new()),
                        _ => {}
                    }
                }
                (_, text) => return Err(format!("found '{text}', expected: ',', or identifier")),
            }
        }
        self.at += 1;
        Ok(values)
    }
}
