//! The functions every expression can call: CEL's standard library, its extensions for texts and
//! optional values, and Kubernetes' libraries.
//!
//! One file per library. Each declares its overloads in a table and implements them on values; none
//! knows about syntax or about other libraries' internals.

pub(crate) mod arithmetic;
pub(crate) mod conversion;
pub mod format;
pub mod ip;
pub mod json;
pub(crate) mod lists;
pub(crate) mod optional;
pub mod quantity;
pub(crate) mod regex;
pub mod semver;
pub(crate) mod sets;
pub(crate) mod standard;
pub(crate) mod strings;
pub(crate) mod template;
pub(crate) mod time;
pub mod url;

use crate::function::{Functions, declare};

/// Every built-in function.
pub(crate) fn functions() -> Functions {
    let mut functions = Functions::new();
    for rows in [
        standard::ROWS,
        arithmetic::ROWS,
        conversion::ROWS,
        time::ROWS,
        optional::ROWS,
        strings::ROWS,
        lists::ROWS,
        sets::ROWS,
        regex::ROWS,
        url::ROWS,
        quantity::ROWS,
        ip::ROWS,
        semver::ROWS,
        format::ROWS,
    ] {
        declare(&mut functions, rows);
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_overload_has_a_name_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for overloads in functions().values() {
            for overload in overloads {
                assert!(seen.insert(overload.id.clone()), "{} is declared twice", overload.id);
            }
        }
        assert!(seen.len() > 200, "only {} overloads", seen.len());
    }
}
