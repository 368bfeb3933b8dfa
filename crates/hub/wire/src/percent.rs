//! Percent-decoding of paths and queries.

/// Undoes percent-encoding; nothing where an escape is broken. Bytes that are not UTF-8 are replaced, since no name or
/// option can hold them.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    if !text.bytes().any(|b| b == b'%' || (plus_is_space && b == b'+')) {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                out.push((high * 16 + low) as u8);
            }
            b'+' if plus_is_space => out.push(b' '),
            byte => out.push(byte),
        }
    }
    Some(
        String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_two_hexadecimal_digits() {
        assert_eq!(decode("a%2Fb+c", false).as_deref(), Some("a/b+c"));
        assert_eq!(decode("a%2fb+c", true).as_deref(), Some("a/b c"));
        assert_eq!(decode("%C3%A9", false).as_deref(), Some("é"));
        assert_eq!(decode("%ff", false).as_deref(), Some("\u{fffd}"));
        for broken in ["%", "%2", "%zz", "%2é", "%+1"] {
            assert_eq!(decode(broken, false), None, "{broken}");
        }
    }
}
