//! `"…".parseJSON()`: reads a JSON document out of a text.
//!
//! Not among the functions every environment has; a host adds it with [`parse_json`].

use crate::cost::{LIST_CREATE_COST, MAP_CREATE_COST};
use crate::error::EvalError;
use crate::function::HostFunction;
use crate::types::Type;
use crate::value::Value;

/// The function `parseJSON` on texts. Every number becomes a `double`, as in a reader without schema.
/// Its cost is that of reading the text and building the lists and maps in it.
pub fn parse_json() -> HostFunction {
    HostFunction::member("parseJSON", vec![Type::String], Type::Dyn, |args, _, budget| {
        let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
        // Two bytes of text, such as `1,`, can become a value.
        budget.work(16 * text.len() as u64)?;
        let json: serde_json::Value = serde_json::from_str(text)
            .map_err(|error| EvalError::host(format!("failed to parse json: {error}")))?;
        Ok(Value::from_json_with_doubles(&json))
    })
    .with_cost(|args, result| {
        let size = args.first().map_or(0, Value::cost_size);
        size.div_ceil(10) + structure_cost(result)
    })
}

fn structure_cost(value: &Value) -> u64 {
    match value {
        Value::List(elements) => LIST_CREATE_COST + elements.iter().map(structure_cost).sum::<u64>(),
        Value::Map(map) => MAP_CREATE_COST + map.iter().map(|(_, value)| structure_cost(value)).sum::<u64>(),
        _ => 0,
    }
}
