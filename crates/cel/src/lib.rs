//! A bounded CEL: the Common Expression Language with Kubernetes' libraries and a cost budget.
//!
//! Owns the language: reading expressions, checking them against declared variables and functions, and
//! evaluating them on values. Everything a user can send is limited: the length, depth and size of an
//! expression, the cost of an evaluation, and the memory and time it may take beyond that cost.
//! Never panics on any input, never does I/O, never reads a clock.
//!
//! ```text
//! source ──lexer──▶ tokens ──parser, macros──▶ ast ──check──▶ Program ──eval──▶ Value
//!                                               ▲                        ▲
//!                                              Env                Bindings, Budget
//! ```
//!
//! ```
//! use berth_cel::{Bindings, Budget, Env, Type, Value};
//!
//! let env = Env::builder().variable("managedCluster", Type::map(Type::String, Type::Dyn)).build();
//! let program = env.compile(r#"managedCluster.metadata.labels["region"] == "eu""#)?;
//! let cluster = serde_json::json!({"metadata": {"labels": {"region": "eu"}}});
//! let bindings = Bindings::new().with("managedCluster", cluster);
//! assert_eq!(program.evaluate(&bindings, &mut Budget::per_call())?, Value::Bool(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ast;
mod check;
mod cost;
mod env;
mod error;
mod eval;
mod field_name;
mod function;
mod inference;
mod lexer;
pub mod library;
mod macros;
mod map;
mod parser;
mod program;
mod types;
mod value;

pub use ast::{AST_DEPTH_MAX, AST_NODES_MAX};
pub use cost::{
    Budget, LIST_CREATE_COST, MAP_CREATE_COST, PER_CALL_COST_LIMIT, PER_OBJECT_COST_BUDGET, SELECT_COST,
    WORK_LIMIT,
};
pub use env::{Env, EnvBuilder, SOURCE_BYTES_MAX};
pub use error::{CompileError, EvalError, Issue};
pub use eval::Bindings;
pub use field_name::{escape_field_name, unescape_field_name};
pub use function::{HostCall, HostCost, HostFunction};
pub use library::json::parse_json;
pub use map::{Key, Map};
pub use parser::NESTING_MAX;
pub use program::Program;
pub use types::{StructType, Type};
pub use value::Value;
