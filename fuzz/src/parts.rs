//! An input of several parts.
//!
//! Owns the line that divides them, so that a seed can be written, and read, as text.

/// The line between two parts.
const LINE: &[u8] = b"\n%%\n";

/// What stands between the dividing lines.
pub(crate) fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let line = bytes.windows(LINE.len()).position(|window| window == LINE);
        rest = line.map(|at| &bytes[at + LINE.len()..]);
        Some(&bytes[..line.unwrap_or(bytes.len())])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_between_lines_of_two_percent_signs() {
        let parts: Vec<&[u8]> = parts(b"a %%\n%%\n\n%%\nb").collect();
        assert_eq!(parts, [&b"a %%"[..], b"", b"b"]);
    }
}
