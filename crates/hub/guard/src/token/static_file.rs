//! The static token file: lines of `token,user,uid[,"group1,group2"]`, read once.
//!
//! Owns the CSV and the lookup. Never keeps a token: only its digest, which is also what is compared, so that the
//! time a comparison takes says nothing about the token.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::jwt::token_digest;
use crate::user::User;

/// A file of people's tokens; larger ones are a wrong path.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It could not be read.
    #[error("cannot read the token file {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said. It is in the message, so it is not a source.
        cause: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{0}")]
    Malformed(String),
}

/// Tokens given by a file.
#[derive(Clone, Debug, Default)]
pub struct StaticTokens {
    users: HashMap<[u8; 32], User>,
}

impl StaticTokens {
    /// Reads a token file.
    pub fn open(path: &Path) -> Result<Self, TokenFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| TokenFileError::Read { path: path.to_owned(), cause })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads the text of a token file; `name` is for messages.
    pub fn parse(text: &str, name: &str) -> Result<Self, TokenFileError> {
        if text.len() > FILE_BYTES_MAX {
            let message = format!("token file '{name}' is larger than {FILE_BYTES_MAX} bytes");
            return Err(TokenFileError::Malformed(message));
        }
        let mut users = HashMap::new();
        for (line, record) in records(text, name)? {
            let mut fields = record.into_iter();
            let (Some(token), Some(user), Some(uid)) = (fields.next(), fields.next(), fields.next()) else {
                let what = "there must be at least 3 columns: token, user name, user uid";
                return Err(malformed(name, line, what));
            };
            if token.is_empty() {
                return Err(malformed(name, line, "the token is empty; remove the line"));
            }
            if user.is_empty() {
                let what = "the user name is empty, so nobody could be granted anything; name the user";
                return Err(malformed(name, line, what));
            }
            let groups =
                fields.next().map_or_else(Vec::new, |list| list.split(',').map(str::to_owned).collect());
            let user = User { name: user, uid, groups, ..User::default() }.authenticated();
            if users.insert(token_digest(&token), user).is_some() {
                return Err(malformed(name, line, "the token is in the file already; remove one of the two"));
            }
        }
        Ok(Self { users })
    }

    /// Whose token this is.
    pub fn find(&self, token: &str) -> Option<&User> {
        self.users.get(&token_digest(token))
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }
}

fn malformed(name: &str, line: usize, what: &str) -> TokenFileError {
    TokenFileError::Malformed(format!("token file '{name}', line {line}: {what}"))
}

/// Records of a CSV text, each with the line it begins in: quoted fields may hold commas, line ends and doubled quotes;
/// empty lines are skipped.
fn records(text: &str, name: &str) -> Result<Vec<(usize, Vec<String>)>, TokenFileError> {
    let bad = |line: usize, what: &str| malformed(name, line, what);
    let mut records = Vec::new();
    let mut begun = 1;
    let mut record: Vec<String> = Vec::new();
    let mut field = String::new();
    let (mut line, mut quoted, mut closed) = (1, false, false);
    let mut characters = text.chars().filter(|c| *c != '\r').peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if quoted => (quoted, closed) = (false, true),
            _ if quoted => {
                line += usize::from(character == '\n');
                field.push(character);
            }
            '"' if field.is_empty() && !closed => quoted = true,
            '"' => return Err(bad(line, "a quote inside an unquoted field")),
            ',' => {
                record.push(std::mem::take(&mut field));
                closed = false;
            }
            '\n' => {
                if !(record.is_empty() && field.is_empty() && !closed) {
                    record.push(std::mem::take(&mut field));
                    records.push((begun, std::mem::take(&mut record)));
                }
                line += 1;
                (begun, closed) = (line, false);
            }
            _ if closed => return Err(bad(line, "text after a closing quote")),
            _ => field.push(character),
        }
    }
    if quoted {
        return Err(bad(line, "a quote is never closed"));
    }
    if !(record.is_empty() && field.is_empty() && !closed) {
        record.push(field);
        records.push((begun, record));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_for_its_user_and_groups() {
        let tokens = StaticTokens::parse("t1,alice,1,\"dev,ops\"\n\nt2,bob,2\n", "f").unwrap();
        let alice = tokens.find("t1").unwrap();
        assert_eq!((alice.name.as_str(), alice.uid.as_str()), ("alice", "1"));
        assert_eq!(alice.groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(tokens.find("t2").unwrap().groups, ["system:authenticated"]);
        assert!(tokens.find("t3").is_none());
        assert!(tokens.find("").is_none());
        assert_eq!(tokens.len(), 2);
    }

    #[test]
    fn quotes_may_hold_commas_quotes_and_line_ends() {
        let read = records("a,\"b,\"\"c\"\"\nd\",\r\n\"\"\n", "f").unwrap();
        assert_eq!(
            read,
            [(1, vec!["a".to_owned(), "b,\"c\"\nd".to_owned(), String::new()]), (3, vec![String::new()])]
        );
    }

    #[test]
    fn malformed_files_are_refused_with_the_place() {
        for (text, says) in [
            ("t,alice", "line 1: there must be at least 3 columns"),
            (",alice,1", "token file 'f', line 1: the token is empty"),
            ("t,,1", "line 1: the user name is empty"),
            ("t,a,1\n\nu,\"\",2", "token file 'f', line 3: the user name is empty"),
            ("t,a,1\nt,b,2", "line 2: the token is in the file already"),
            ("t,\"a,1", "never closed"),
            ("t,\"a\"b,1", "text after a closing quote"),
            ("t,a\"b,1", "line 1: a quote inside"),
        ] {
            let error = StaticTokens::parse(text, "f").unwrap_err().to_string();
            assert!(error.contains(says), "{text:?} gave {error:?}");
        }
    }
}
