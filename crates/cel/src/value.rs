//! The values an expression computes with.
//!
//! Owns the representation, conversion from JSON, and CEL's equality and ordering. Aggregates are
//! shared, so cloning a value never copies its contents. Never evaluates anything.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::cost::Budget;
use crate::error::EvalError;
use crate::library::format::NamedFormat;
use crate::library::ip::Cidr;
use crate::library::quantity::Quantity;
use crate::library::semver::Semver;
use crate::library::url::Url;
use crate::map::{Key, Map};
use crate::types::Type;

/// A CEL value. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A text.
    String(Arc<str>),
    /// A sequence of bytes.
    Bytes(Arc<[u8]>),
    /// A list.
    List(Arc<Vec<Value>>),
    /// A map, or a record.
    Map(Arc<Map>),
    /// A span of time, within the 292 years that 64 bits of nanoseconds hold.
    Duration(SignedDuration),
    /// A point in time.
    Timestamp(Timestamp),
    /// A type as a value.
    Type(Type),
    /// A value that may be absent.
    Optional(Option<Arc<Value>>),
    /// A Kubernetes resource quantity.
    Quantity(Arc<Quantity>),
    /// A parsed URL.
    Url(Arc<Url>),
    /// An IP address.
    Ip(std::net::IpAddr),
    /// A network in CIDR notation.
    Cidr(Cidr),
    /// A semantic version.
    Semver(Arc<Semver>),
    /// A named string format.
    Format(&'static NamedFormat),
}

impl Value {
    /// A text value.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// A list of the given values.
    pub fn list(elements: Vec<Value>) -> Self {
        Self::List(Arc::new(elements))
    }

    /// A map with text keys. The last of several entries under one key stays.
    pub fn map<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::Map(Arc::new(
            entries.into_iter().map(|(key, value)| (Key::String(key.into()), value)).collect(),
        ))
    }

    /// The absent optional.
    pub fn none() -> Self {
        Self::Optional(None)
    }

    /// A present optional.
    pub fn some(value: Value) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// Converts a JSON document; numbers without a fraction become `int` (or `uint` beyond its range).
    /// Recurses as deep as the document nests, which JSON readers bound.
    pub fn from_json(json: &serde_json::Value) -> Self {
        Self::convert_json(json, &|number| {
            if let Some(int) = number.as_i64() {
                Self::Int(int)
            } else if let Some(uint) = number.as_u64() {
                Self::Uint(uint)
            } else {
                Self::Double(number.as_f64().unwrap_or(f64::NAN))
            }
        })
    }

    /// Converts a JSON document; every number becomes `double`, as a reader without a schema does.
    pub fn from_json_with_doubles(json: &serde_json::Value) -> Self {
        Self::convert_json(json, &|number| Self::Double(number.as_f64().unwrap_or(f64::NAN)))
    }

    fn convert_json(json: &serde_json::Value, number: &dyn Fn(&serde_json::Number) -> Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(flag) => Self::Bool(*flag),
            serde_json::Value::Number(n) => number(n),
            serde_json::Value::String(text) => Self::string(text.as_str()),
            serde_json::Value::Array(items) => {
                Self::list(items.iter().map(|item| Self::convert_json(item, number)).collect())
            }
            serde_json::Value::Object(fields) => {
                Self::map(fields.iter().map(|(key, value)| (key.as_str(), Self::convert_json(value, number))))
            }
        }
    }

    /// The type of the value, as `type()` gives it: element types are not tracked.
    pub fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Self::Duration(_) => Type::Duration,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Type(inner) => Type::of(inner.clone()),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Quantity(_)
            | Self::Url(_)
            | Self::Ip(_)
            | Self::Cidr(_)
            | Self::Semver(_)
            | Self::Format(_) => Type::opaque(self.opaque_type_name().expect("these are the opaque values")),
        }
    }

    pub(crate) fn opaque_type_name(&self) -> Option<&'static str> {
        Some(match self {
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            _ => return None,
        })
    }

    /// The size by which operations on the value are charged: characters of a text, bytes, elements,
    /// entries; 1 for everything else.
    pub(crate) fn cost_size(&self) -> u64 {
        match self {
            Self::String(text) => text.chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(elements) => elements.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Ip(ip) => {
                if ip.is_ipv4() {
                    4
                } else {
                    16
                }
            }
            Self::Cidr(cidr) => u64::from(cidr.prefix_length().div_ceil(8)),
            Self::Optional(Some(inner)) => inner.cost_size(),
            _ => 1,
        }
    }

    /// Whether two values are equal as `==` sees it: numbers compare across their types, values of
    /// different kinds are unequal. Charges the elements it looks at.
    pub(crate) fn equals(&self, other: &Value, budget: &mut Budget) -> Result<bool, EvalError> {
        match (self, other) {
            (Self::String(a), Self::String(b)) => {
                budget.work(a.len().min(b.len()) as u64 / 8)?;
                return Ok(a == b);
            }
            (Self::List(a), Self::List(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                budget.work(a.len() as u64)?;
                for (left, right) in a.iter().zip(b.iter()) {
                    if !left.equals(right, budget)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            (Self::Map(a), Self::Map(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                budget.work(a.len() as u64)?;
                for (key, left) in a.iter() {
                    let Some(right) = b.get(key) else { return Ok(false) };
                    if !left.equals(right, budget)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            (Self::Optional(Some(a)), Self::Optional(Some(b))) => return a.equals(b, budget),
            _ => {}
        }
        Ok(match (self, other) {
            (Self::Null, Self::Null) | (Self::Optional(None), Self::Optional(None)) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => {
                budget.work(a.len().min(b.len()) as u64 / 8)?;
                a == b
            }
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Type(a), Self::Type(b)) => a.runtime_name() == b.runtime_name(),
            (Self::Quantity(a), Self::Quantity(b)) => a.compare(b) == Ordering::Equal,
            (Self::Url(a), Self::Url(b)) => a.to_string() == b.to_string(),
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a), Self::Cidr(b)) => a == b,
            (Self::Semver(a), Self::Semver(b)) => a.compare(b) == Ordering::Equal,
            (Self::Format(a), Self::Format(b)) => a.name == b.name,
            _ => compare_numbers(self, other) == Ok(Some(Ordering::Equal)),
        })
    }

    /// Orders two values as `<` and its kin do; `None` if one of them is not a number, an error if
    /// values of their types have no order.
    pub(crate) fn order(&self, other: &Value) -> Result<Option<Ordering>, EvalError> {
        Ok(match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            _ => return compare_numbers(self, other),
        })
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other, &mut Budget::unlimited()).unwrap_or(false)
    }
}

/// Compares numbers by their mathematical value, whatever their types.
fn compare_numbers(a: &Value, b: &Value) -> Result<Option<Ordering>, EvalError> {
    use Value::{Double, Int, Uint};
    Ok(match (a, b) {
        (Int(a), Int(b)) => Some(a.cmp(b)),
        (Uint(a), Uint(b)) => Some(a.cmp(b)),
        (Double(a), Double(b)) => a.partial_cmp(b),
        (Int(a), Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Uint(a), Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Int(a), Double(b)) => compare_integer_with_double(i128::from(*a), *b),
        (Uint(a), Double(b)) => compare_integer_with_double(i128::from(*a), *b),
        (Double(a), Int(b)) => compare_integer_with_double(i128::from(*b), *a).map(Ordering::reverse),
        (Double(a), Uint(b)) => compare_integer_with_double(i128::from(*b), *a).map(Ordering::reverse),
        _ => return Err(EvalError::NoSuchOverload),
    })
}

/// Exact: going through `f64` would make neighbouring large integers equal.
fn compare_integer_with_double(integer: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double >= 2f64.powi(100) {
        return Some(Ordering::Less);
    }
    if double <= -(2f64.powi(100)) {
        return Some(Ordering::Greater);
    }
    let floor = double.floor();
    // `floor` lies within ±2^100, so the conversion to i128 is exact.
    match integer.cmp(&(floor as i128)) {
        Ordering::Equal if double > floor => Some(Ordering::Less),
        order => Some(order),
    }
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        Self::from_json(&json)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::string(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::string(text)
    }
}
