//! Semantic versions.
//!
//! Strict by default; `semver(text, true)` forgives a leading `v`, leading zeros and missing parts.
//! Build metadata never counts in comparisons.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use berth_text::gotext::quote;

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("semver", "string_to_semver", "(string) -> kubernetes.Semver", semver),
    ("semver", "string_bool_to_semver", "(string, bool) -> kubernetes.Semver", semver),
    ("isSemver", "is_semver_string", "(string) -> bool", is_semver),
    ("isSemver", "is_semver_string_bool", "(string, bool) -> bool", is_semver),
    ("isGreaterThan", "semver_is_greater_than", "kubernetes.Semver.(kubernetes.Semver) -> bool", is_greater),
    ("isLessThan", "semver_is_less_than", "kubernetes.Semver.(kubernetes.Semver) -> bool", is_less),
    ("compareTo", "semver_compare_to", "kubernetes.Semver.(kubernetes.Semver) -> int", compare_to),
    ("major", "semver_major", "kubernetes.Semver.() -> int", major),
    ("minor", "semver_minor", "kubernetes.Semver.() -> int", minor),
    ("patch", "semver_patch", "kubernetes.Semver.() -> int", patch),
];

/// A semantic version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    numbers: [u64; 3],
    pre_release: Vec<PreRelease>,
    build: Vec<String>,
}

/// A part of a pre-release; numbers come before names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PreRelease {
    Number(u64),
    Name(String),
}

const NAMES: [&str; 3] = ["Major", "Minor", "Patch"];

impl Semver {
    /// Reads a version.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, pre_release) = match rest.split_once('-') {
            Some((patch, pre_release)) => (patch, Some(pre_release)),
            None => (rest, None),
        };
        let mut numbers = [0; 3];
        for (index, part) in [major, minor, patch].into_iter().enumerate() {
            numbers[index] = parse_number(NAMES[index], part)?;
        }
        let pre_release = pre_release
            .into_iter()
            .flat_map(|all| all.split('.'))
            .map(parse_pre_release)
            .collect::<Result<_, _>>()?;
        let build =
            build.into_iter().flat_map(|all| all.split('.')).map(parse_build).collect::<Result<_, _>>()?;
        Ok(Self { numbers, pre_release, build })
    }

    /// Reads a version as people write it: `v1`, `1.2`, `01.2.3`.
    pub fn parse_tolerant(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(strip_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
        Self::parse(&parts.join("."))
    }

    /// Orders versions by precedence.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                // A release comes after its pre-releases.
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                _ => self.pre_release.cmp(&other.pre_release),
            }
        })
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (index, part) in self.pre_release.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match part {
                PreRelease::Number(number) => write!(f, "{number}")?,
                PreRelease::Name(name) => f.write_str(name)?,
            }
        }
        for (index, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if index == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn parse_number(name: &str, text: &str) -> Result<u64, String> {
    if !all_digits(text) {
        return Err(format!(
            "Invalid character(s) found in {} number {}",
            name.to_ascii_lowercase(),
            quote(text)
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {}", quote(text)));
    }
    text.parse().map_err(|_| {
        let what = if text.is_empty() { "invalid syntax" } else { "value out of range" };
        format!("strconv.ParseUint: parsing {}: {what}", quote(text))
    })
}

fn parse_pre_release(text: &str) -> Result<PreRelease, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if !all_digits(text) {
        return if is_name(text) {
            Ok(PreRelease::Name(text.to_owned()))
        } else {
            Err(format!("Invalid character(s) found in prerelease {}", quote(text)))
        };
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)));
    }
    text.parse()
        .map(PreRelease::Number)
        .map_err(|_| format!("strconv.ParseUint: parsing {}: value out of range", quote(text)))
}

fn parse_build(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("Invalid character(s) found in build meta data {}", quote(text)))
    }
}

/// Drops leading zeros of a number, leaving one digit at least.
fn strip_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let stripped = part.trim_start_matches('0');
    if stripped.starts_with(|c: char| c.is_ascii_digit()) {
        stripped.to_owned()
    } else {
        format!("0{stripped}")
    }
}

fn read(args: &[Value]) -> Result<Result<Semver, String>, EvalError> {
    match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Ok(Semver::parse(text)),
        [Value::String(text), Value::Bool(true)] => Ok(Semver::parse_tolerant(text)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn semver(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    context.budget.work(args.first().map_or(0, |text| 4 * text.cost_size()))?;
    read(args)?.map(|version| Value::Semver(Arc::new(version))).map_err(EvalError::invalid)
}

fn is_semver(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    context.budget.work(args.first().map_or(0, |text| 4 * text.cost_size()))?;
    Ok(Value::Bool(read(args)?.is_ok()))
}

fn order(args: &[Value]) -> Result<Ordering, EvalError> {
    match args {
        [Value::Semver(a), Value::Semver(b)] => Ok(a.compare(b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn is_greater(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    order(args).map(|order| Value::Bool(order.is_gt()))
}

fn is_less(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    order(args).map(|order| Value::Bool(order.is_lt()))
}

fn compare_to(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    order(args).map(|order| Value::Int(order as i64))
}

fn number(args: &[Value], index: usize) -> Outcome {
    match args {
        [Value::Semver(version)] => Ok(Value::Int(version.numbers[index] as i64)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn major(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    number(args, 0)
}

fn minor(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    number(args, 1)
}

fn patch(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    number(args, 2)
}
