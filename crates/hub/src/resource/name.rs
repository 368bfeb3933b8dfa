//! Generated names.
//!
//! Owns the alphabet and the lengths. The randomness comes in as a number.

/// Letters and digits that are hard to mix up and cannot spell anything.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many characters are added.
const SUFFIX_CHARACTERS: usize = 5;
/// What is kept of the base, in bytes: a label's 63 less the suffix.
const BASE_LIMIT_BYTES: usize = 63 - SUFFIX_CHARACTERS;
/// How often a create is tried with fresh names before a collision is reported.
pub(crate) const GENERATE_ATTEMPTS: usize = 8;

/// The name made of `generateName` and a suffix of five characters taken from `random`.
pub(crate) fn generate(base: &str, random: u64) -> String {
    let end =
        (0..=base.len().min(BASE_LIMIT_BYTES)).rev().find(|&end| base.is_char_boundary(end)).unwrap_or(0);
    let mut name = base[..end].to_owned();
    let mut rest = random;
    for _ in 0..SUFFIX_CHARACTERS {
        let index = usize::try_from(rest % ALPHABET.len() as u64).expect("a remainder below 27 fits");
        name.push(char::from(ALPHABET[index]));
        rest /= ALPHABET.len() as u64;
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_base_is_cut_so_that_the_name_fits_a_label() {
        let name = generate(&"a".repeat(100), 0);
        assert_eq!(name, format!("{}bbbbb", "a".repeat(58)));
    }

    #[test]
    fn different_numbers_give_different_names() {
        assert_eq!(generate("gen-", 1), "gen-cbbbb");
        assert_eq!(generate("gen-", 27), "gen-bcbbb");
    }

    proptest! {
        #[test]
        fn every_generated_name_is_the_base_and_five_safe_characters(base in "\\PC{0,80}", random: u64) {
            let name = generate(&base, random);
            let suffix = &name[name.len() - 5..];
            prop_assert!(base.starts_with(&name[..name.len() - 5]));
            prop_assert!(suffix.bytes().all(|byte| ALPHABET.contains(&byte)));
            prop_assert!(name.len() <= 63);
        }
    }
}
