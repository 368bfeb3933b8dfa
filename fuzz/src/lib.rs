//! Arbitrary input into everything that reads text written by others.
//!
//! Owns one function a fuzz target. Each takes any bytes, panics if the program breaks one of its promises, and is
//! called by cargo-fuzz (`fuzz_targets/`) as well as by the tests here, which replay the corpora on any toolchain.

mod bodies;
mod cel;
mod fleet;
mod manifest;
mod parts;
mod patches;
mod requests;
mod selectors;

pub use bodies::bodies;
pub use cel::cel;
pub use manifest::manifest;
pub use patches::patches;
pub use requests::requests;
pub use selectors::selectors;

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use proptest::{collection::vec, prelude::*, sample::Index};

    fn corpus(target: &str) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        let mut seeds: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        seeds.sort();
        assert!(!seeds.is_empty(), "{target} has seeds");
        seeds.iter().map(|seed| fs::read(seed).unwrap()).collect()
    }

    /// A seed with a few stretches of it overwritten by stretches of other seeds.
    fn spliced(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
        let seeds = corpus(target);
        let splice = (any::<Index>(), any::<Index>(), any::<Index>(), 0..64_usize, 0..64_usize);
        (any::<Index>(), vec(splice, 0..6)).prop_map(move |(start, splices)| {
            let mut bytes = start.get(&seeds).clone();
            for (seed, from, to, taken, dropped) in splices {
                let seed = seed.get(&seeds);
                let (from, to) = (from.index(seed.len() + 1), to.index(bytes.len() + 1));
                let donated = seed[from..].iter().take(taken).copied();
                let end = bytes.len().min(to + dropped);
                bytes.splice(to..end, donated);
            }
            bytes
        })
    }

    /// What holds for every target: its seeds, and any splice of them.
    macro_rules! replayed {
        ($($target:ident),*) => {$(
            mod $target {
                use super::*;

                #[test]
                fn every_seed_keeps_the_promises() {
                    corpus(stringify!($target)).iter().for_each(|seed| crate::$target(seed));
                }

                proptest! {
                    #[test]
                    fn any_splice_of_seeds_keeps_the_promises(bytes in spliced(stringify!($target))) {
                        crate::$target(&bytes);
                    }
                }
            }
        )*};
    }

    replayed!(bodies, cel, manifest, patches, requests, selectors);

    #[test]
    fn every_corpus_is_replayed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let mut targets: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        targets.sort();
        assert_eq!(targets, ["bodies", "cel", "manifest", "patches", "requests", "selectors"]);
    }
}
