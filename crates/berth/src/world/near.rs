//! Names that were perhaps meant.

/// Names shown in place of one that does not exist.
const SUGGESTIONS_MAX: usize = 3;

/// How far apart two names may be, in edits, to be taken for one another: one, and one more for every four characters.
fn edits_max(wanted: &str) -> usize {
    1 + wanted.chars().count() / 4
}

/// The end of a message about a name that does not exist: the names that come near it, or nothing.
pub fn near<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let last = |name: &'n str| name.rsplit('/').next().unwrap_or(name);
    let mut close: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            // The right name in the wrong namespace is nearer than any slip of the keyboard.
            let elsewhere = name.contains('/') && Some(last(name)) == wanted.rsplit('/').next();
            let edits = if elsewhere { 0 } else { strsim::osa_distance(wanted, name) };
            (edits <= edits_max(wanted)).then_some((edits, name))
        })
        .collect();
    close.sort_unstable();
    close.truncate(SUGGESTIONS_MAX);
    if close.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = close.into_iter().map(|(_, name)| name).collect();
    format!("; did you mean {}?", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_nearest_first_and_far_ones_not_at_all() {
        let names = ["sto-prod-1", "sto-prod-2", "fra-prod-1", "port-kiel"];
        assert_eq!(near("sto-prod-11", names), "; did you mean sto-prod-1, sto-prod-2?");
        assert_eq!(near("xyz", names), "");
    }

    #[test]
    fn the_right_name_in_another_namespace_is_near() {
        assert_eq!(near("default/web", ["booking/web", "a/b"]), "; did you mean booking/web?");
    }
}
