//! The place in a document that a run of the bench fills.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Fails where a document has no place of that name: better told before the run than after it.
pub(crate) fn check(file: &Path, name: &str) -> anyhow::Result<()> {
    read(file, name, "").map(drop)
}

/// Puts `text` between the two markers of `name`, in place of what is there.
pub(crate) fn fill(file: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let after = read(file, name, text)?;
    fs::write(file, after).with_context(|| format!("cannot write {}", file.display()))
}

fn read(file: &Path, name: &str, text: &str) -> anyhow::Result<String> {
    let before = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    filled(&before, name, text).with_context(|| {
        let (begin, end) = markers(name);
        format!("{} has no place for this run: put the lines {begin} and {end} there", file.display())
    })
}

fn markers(name: &str) -> (String, String) {
    (format!("<!-- begin {name} -->"), format!("<!-- end {name} -->"))
}

fn filled(document: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = markers(name);
    let (head, rest) = document.split_once(&begin)?;
    let (_, tail) = rest.split_once(&end)?;
    Some(format!("{head}{begin}\n\n{}\n\n{end}{tail}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_of_that_name_changes() {
        let document = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n<!-- begin y -->\n<!-- end y -->\n";
        let once = filled(document, "x", "new\n").unwrap();
        assert_eq!(
            once,
            "a\n<!-- begin x -->\n\nnew\n\n<!-- end x -->\nb\n<!-- begin y -->\n<!-- end y -->\n"
        );
        assert_eq!(filled(&once, "x", "new\n").unwrap(), once);
        assert_eq!(filled(document, "z", "new"), None);
    }
}
