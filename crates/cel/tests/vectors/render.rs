//! Writes values and types the way the vectors do.

use berth_cel::{Key, Type, Value};

pub(crate) fn render(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Uint(uint) => format!("{uint}u"),
        Value::Double(double) if double.is_nan() => "NaN".to_owned(),
        Value::Double(double) if double.is_infinite() => double.to_string(),
        Value::Double(double) => format!("{double:e}"),
        Value::String(text) => serde_json::Value::from(text.as_ref()).to_string(),
        Value::Bytes(bytes) => {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("b{}", hex.concat())
        }
        Value::List(elements) => {
            format!("[{}]", elements.iter().map(render).collect::<Vec<_>>().join(", "))
        }
        Value::Map(map) => {
            let key = |key: &Key| render(&key.to_value());
            let mut entries: Vec<String> =
                map.iter().map(|(k, value)| format!("{}: {}", key(k), render(value))).collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Duration(duration) => format!("duration({})", duration.as_nanos()),
        Value::Timestamp(timestamp) => format!("timestamp({timestamp})"),
        Value::Type(ty) => format!("type({})", ty.runtime_name()),
        Value::Optional(None) => "optional.none".to_owned(),
        Value::Optional(Some(inner)) => format!("optional({})", render(inner)),
        Value::Quantity(quantity) => format!("quantity({quantity})"),
        Value::Url(url) => format!("url({url})"),
        Value::Ip(ip) => format!("ip({ip})"),
        Value::Cidr(cidr) => format!("cidr({cidr})"),
        Value::Semver(version) => format!("semver({version})"),
        Value::Format(format) => format!("format({})", format.name),
    }
}

/// The reference implementation writes some types differently here than in its messages.
pub(crate) fn type_name(ty: &Type) -> String {
    match ty {
        Type::Null | Type::Duration | Type::Timestamp => ty.runtime_name().to_owned(),
        Type::List(element) => format!("list({})", type_name(element)),
        Type::Map(key, value) => format!("map({}, {})", type_name(key), type_name(value)),
        Type::Type(inner) => format!("type({})", type_name(inner)),
        Type::Optional(inner) => format!("optional_type({})", type_name(inner)),
        other => other.to_string(),
    }
}
