//! What an evaluation may cost, and what each step costs.
//!
//! Owns two meters. *Cost* counts the units of the reference implementation, so an expression that
//! fits its limit there fits here. *Work* counts bytes and elements that are copied or visited and
//! that those units do not see (a `replace` may blow a text up, a comparison may walk a large object);
//! it is charged before anything is allocated and bounds memory and time. Never evaluates anything.

use crate::error::EvalError;
use crate::value::Value;

/// The cost one evaluation may have.
pub const PER_CALL_COST_LIMIT: u64 = 1_000_000;

/// The cost all evaluations for one object may have together.
pub const PER_OBJECT_COST_BUDGET: u64 = 10_000_000;

/// Bytes and elements one evaluation may copy or visit beyond what its cost accounts for. About a tenth
/// of a second of copying, and the bound on the memory an evaluation can hold.
pub const WORK_LIMIT: u64 = 64 << 20;

/// The cost of reading a variable or selecting a field.
pub const SELECT_COST: u64 = 1;
/// The base cost of making a list.
pub const LIST_CREATE_COST: u64 = 10;
/// The base cost of making a map.
pub const MAP_CREATE_COST: u64 = 30;

/// The work of taking one step, whatever it does. The reference implementation charges nothing for constants and
/// logic, of which a loop can have thousands in its body.
pub(crate) const STEP_WORK: u64 = 8;
/// Of texts given to a function this many bytes are one unit of work, be it only that their characters are counted.
const BYTES_PER_WORK: u64 = 8;
/// The work of an entry of a map that is made: finding its place is most of it.
pub(crate) const MAP_ENTRY_WORK: u64 = 160;

/// What is left to spend, and what was spent.
#[derive(Clone, Debug)]
pub struct Budget {
    limit: u64,
    spent: u64,
    work_left: u64,
}

impl Budget {
    /// A budget of `limit` cost units.
    pub fn new(limit: u64) -> Self {
        Self { limit, spent: 0, work_left: WORK_LIMIT }
    }

    /// A budget for one evaluation under Kubernetes' limit.
    pub fn per_call() -> Self {
        Self::new(PER_CALL_COST_LIMIT)
    }

    pub(crate) fn unlimited() -> Self {
        Self { limit: u64::MAX, spent: 0, work_left: u64::MAX }
    }

    /// The cost spent so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// The bytes and elements that were copied or visited beyond the cost.
    pub fn worked(&self) -> u64 {
        WORK_LIMIT.saturating_sub(self.work_left)
    }

    /// The cost that may still be spent.
    pub fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.spent)
    }

    /// A budget for one of several evaluations that share this one: no more than `limit`, and no more
    /// than is left. Give what was spent back with [`Budget::settle`].
    #[must_use]
    pub fn slice(&self, limit: u64) -> Self {
        Self { limit: limit.min(self.remaining()), spent: 0, work_left: self.work_left.min(WORK_LIMIT) }
    }

    /// Takes what a slice spent out of this budget.
    pub fn settle(&mut self, slice: &Budget) {
        self.spent = self.spent.saturating_add(slice.spent);
    }

    /// Spends cost, or fails if that would exceed the limit.
    pub fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit { Err(EvalError::BudgetExceeded) } else { Ok(()) }
    }

    /// Accounts for bytes or elements about to be copied or visited. Host functions call it before
    /// they allocate in proportion to their input.
    pub fn work(&mut self, units: u64) -> Result<(), EvalError> {
        let left = self.work_left.checked_sub(units);
        self.work_left = left.unwrap_or(0);
        left.map(|_| ()).ok_or(EvalError::BudgetExceeded)
    }
}

/// How the cost of a call follows from its arguments and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostModel {
    /// One unit.
    Unit,
    /// A tenth of the size of the first argument.
    Traverse,
    /// A fifth of the size of the first argument: read and build.
    TraverseTwice,
    /// A fifth of the size of the result.
    BuildResult,
    /// The size of the second argument, which is searched.
    Search,
    /// A tenth of the size of the smaller argument.
    CompareSmaller,
    /// As [`CostModel::CompareSmaller`], but one unit if the first argument is an opaque value.
    Equality,
    /// A tenth of both sizes together.
    Concatenate,
    /// Text times pattern.
    Match,
    /// Text times substring.
    Contains,
    /// Every element reached from the first argument.
    DeepTraverse,
    /// Network containment; the flags say whether the other side is a text that has to be parsed, and
    /// whether it is a network.
    Network { parses: bool, network: bool },
    /// A named format against a text.
    Validate,
    /// Every pair of elements of two lists, as often as said.
    Pairs { times: u64 },
}

impl CostModel {
    /// The model for a function. `overload` is the one overload the checker found, if it found exactly
    /// one: where several remain the reference implementation charges a unit.
    pub(crate) fn of(function: &str, overload: Option<&str>) -> Self {
        match function {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => return Self::DeepTraverse,
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
            | "quantity" | "isQuantity" | "semver" | "isSemver" => return Self::Traverse,
            "ip" if overload != Some("cidr_ip") => return Self::Traverse,
            "replace" | "split" | "ip.isCanonical" => return Self::TraverseTwice,
            "join" => return Self::BuildResult,
            "find" | "findAll" => return Self::Match,
            "containsIP" => {
                return Self::Network { parses: overload == Some("cidr_contains_ip_string"), network: false };
            }
            "containsCIDR" => {
                return Self::Network {
                    parses: overload == Some("cidr_contains_cidr_string"),
                    network: true,
                };
            }
            "validate" => return Self::Validate,
            "sets.contains" | "sets.intersects" => return Self::Pairs { times: 1 },
            "sets.equivalent" => return Self::Pairs { times: 2 },
            _ => {}
        }
        match overload {
            Some(
                "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
                | "strings_quote" | "string_format",
            ) => Self::Traverse,
            Some("in_list") => Self::Search,
            Some("equals") => Self::Equality,
            Some(
                "not_equals"
                | "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes",
            ) => Self::CompareSmaller,
            Some("add_string" | "add_bytes") => Self::Concatenate,
            Some("matches_string") => Self::Match,
            Some("contains_string") => Self::Contains,
            _ => Self::Unit,
        }
    }

    /// Whether the cost can only be told once the result is known.
    pub(crate) fn needs_result(self) -> bool {
        self == Self::BuildResult
    }

    /// Charges for a call with these arguments.
    pub(crate) fn charge(
        self,
        args: &[Value],
        result: Option<&Value>,
        budget: &mut Budget,
    ) -> Result<(), EvalError> {
        let bytes = args.iter().map(|arg| match arg {
            Value::String(text) => text.len() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        });
        budget.work(bytes.sum::<u64>() / BYTES_PER_WORK)?;
        let cost = match (self, args) {
            (Self::DeepTraverse, [first, ..]) => traversal(first, budget)?,
            _ => self.cost(args, result),
        };
        budget.charge(cost)
    }

    fn cost(self, args: &[Value], result: Option<&Value>) -> u64 {
        let size = |index: usize| args.get(index).map_or(0, Value::cost_size);
        match self {
            Self::Unit => 1,
            Self::Traverse => tenth(size(0)),
            Self::TraverseTwice => tenth(2 * size(0)),
            Self::BuildResult => tenth(2 * result.map_or(1, Value::cost_size)),
            Self::Search => size(1),
            Self::Equality if args.first().is_some_and(|value| value.opaque_type_name().is_some()) => 1,
            Self::Equality | Self::CompareSmaller => match args {
                [one, other, ..] => tenth(smaller(one, other)),
                _ => 0,
            },
            Self::Concatenate => tenth(size(0).saturating_add(size(1))),
            Self::Match => tenth(size(0) + 1).saturating_mul(size(1).div_ceil(4)),
            Self::Contains => tenth(size(0)).saturating_mul(tenth(size(1))),
            // With an argument it is charged while it is walked through.
            Self::DeepTraverse => 0,
            Self::Network { parses, network } => {
                let mut cost = tenth(2 * size(0));
                if network {
                    cost += tenth(size(0)) + 1;
                }
                if parses {
                    cost += tenth(size(1));
                }
                cost
            }
            Self::Pairs { times } => size(0).saturating_mul(size(1)).saturating_mul(times).saturating_add(1),
            Self::Validate => match args {
                [Value::Format(format), ..] => {
                    tenth(size(1) + 1).saturating_mul(format.pattern_size.div_ceil(4))
                }
                _ => 1,
            },
        }
    }
}

/// A tenth, rounded up.
fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

/// The size of the smaller of two values, without counting through a large one that is compared with a small one.
fn smaller(one: &Value, other: &Value) -> u64 {
    /// A character has no more bytes.
    const CHARACTER_BYTES_MAX: u64 = 4;
    let at_most = |value: &Value| match value {
        Value::String(text) => text.len() as u64,
        other => other.cost_size(),
    };
    let (small, large) = if at_most(one) <= at_most(other) { (one, other) } else { (other, one) };
    let size = small.cost_size();
    match large {
        Value::String(text) if text.len() as u64 / CHARACTER_BYTES_MAX >= size => size,
        large => size.min(large.cost_size()),
    }
}

/// The cost of walking through a value: one per scalar, a tenth of a text's bytes rounded down. Short texts cost
/// nothing and lists may share what is in them, so each step is accounted for as it is taken.
fn traversal(value: &Value, budget: &mut Budget) -> Result<u64, EvalError> {
    budget.work(1)?;
    let mut cost: u64 = 0;
    match value {
        Value::String(text) => cost = text.len() as u64 / 10,
        Value::Bytes(bytes) => cost = bytes.len() as u64 / 10,
        Value::List(elements) => {
            for element in elements.iter() {
                cost = cost.saturating_add(traversal(element, budget)?);
            }
        }
        Value::Map(map) => {
            for (key, value) in map.iter() {
                cost = cost.saturating_add(traversal(&key.to_value(), budget)?);
                cost = cost.saturating_add(traversal(value, budget)?);
            }
        }
        _ => cost = 1,
    }
    Ok(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_beyond_the_limit_fails_and_stays_spent() {
        let mut budget = Budget::new(10);
        assert_eq!(budget.charge(10), Ok(()));
        assert_eq!(budget.charge(1), Err(EvalError::BudgetExceeded));
        assert_eq!(budget.remaining(), 0);
    }

    #[test]
    fn a_slice_never_exceeds_what_its_budget_has_left() {
        let mut budget = Budget::new(100);
        budget.charge(70).unwrap();
        let mut slice = budget.slice(50);
        assert_eq!(slice.remaining(), 30);
        slice.charge(20).unwrap();
        budget.settle(&slice);
        assert_eq!(budget.remaining(), 10);
    }

    #[test]
    fn work_is_refused_before_it_is_done() {
        let mut budget = Budget::new(1);
        assert_eq!(budget.work(WORK_LIMIT), Ok(()));
        assert_eq!(budget.work(1), Err(EvalError::BudgetExceeded));
    }

    #[test]
    fn the_smaller_of_two_values_is_found_whichever_comes_first() {
        let texts = ["", "a", "é", "ééééé", "aaaaaaaaaaaaaaaaaaaa", "🚢", "🚢🚢🚢🚢🚢"];
        let mut values: Vec<Value> = texts.iter().map(|text| Value::from(*text)).collect();
        values.extend([Value::Int(7), Value::list(vec![Value::Null; 3]), Value::list(Vec::new())]);
        for one in &values {
            for other in &values {
                let wanted = one.cost_size().min(other.cost_size());
                assert_eq!(smaller(one, other), wanted, "{one:?} {other:?}");
            }
        }
    }
}
