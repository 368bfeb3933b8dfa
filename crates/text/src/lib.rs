//! The small grammars that Go and Kubernetes bring along, each written once.
//!
//! Owns how Go spells quoted text and numbers ([`gotext`]), what Kubernetes lets a name look like ([`names`]), how it
//! writes an amount ([`quantity`]), what a regular expression means in RE2's notation ([`pattern`]), and what an unquoted
//! word of YAML stands for ([`yaml`]). The words are
//! exactly theirs, because clients and people compare them. A leaf: every function is pure and total, knows nothing of
//! objects, schemas or requests, and never does I/O.

pub mod gotext;
pub mod names;
pub mod pattern;
pub mod quantity;
pub mod yaml;
