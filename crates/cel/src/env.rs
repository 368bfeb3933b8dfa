//! The environment an expression is compiled in: its variables and functions.
//!
//! Owns the limits on source text and the order of the passes. Building one is cheap; the standard
//! libraries are declared once per process.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::check;
use crate::error::{CompileError, Issue};
use crate::function::{Functions, HostFunction, Overload};
use crate::library;
use crate::parser;
use crate::program::Program;
use crate::types::Type;

/// The longest expression accepted, in bytes. Kubernetes allows no more in a validation rule.
pub const SOURCE_BYTES_MAX: usize = 16 * 1024;

/// How the names of comparisons between different types of numbers end.
const CROSS_TYPE: [&str; 6] =
    ["int64_double", "int64_uint64", "uint64_double", "uint64_int64", "double_int64", "double_uint64"];

/// Declares variables and functions on top of the standard libraries.
#[derive(Clone, Debug)]
pub struct EnvBuilder {
    env: Env,
}

impl EnvBuilder {
    /// Declares a variable. Declaring a name again replaces its type.
    #[must_use]
    pub fn variable(mut self, name: &str, ty: Type) -> Self {
        self.env.variables.insert(Arc::from(name), ty);
        self
    }

    /// Adds a function of the host, as a further overload if the name is known.
    #[must_use]
    pub fn function(mut self, function: HostFunction) -> Self {
        let known = self.env.function(&function.name).unwrap_or_default().to_vec();
        let overloads = self.env.host_functions.entry(function.name).or_insert(known);
        overloads.push(Arc::new(function.overload));
        self
    }

    /// Whether the elements of a list or map literal must agree in type, as Kubernetes asks of the
    /// rules in custom resource definitions. Off unless set.
    #[must_use]
    pub fn homogeneous_literals(mut self, homogeneous: bool) -> Self {
        self.env.homogeneous_literals = homogeneous;
        self
    }

    /// Whether `has()` costs a unit. On unless set; Kubernetes turns it off for its own rules.
    #[must_use]
    pub fn presence_test_costs(mut self, costs: bool) -> Self {
        self.env.presence_test_costs = costs;
        self
    }

    /// Whether `<` and its kin compare numbers of different types, as in `1 < 1.5`. On unless set; what
    /// is `dyn` compares in any case.
    #[must_use]
    pub fn cross_type_comparisons(mut self, compare: bool) -> Self {
        self.env.cross_type_comparisons = compare;
        self
    }

    /// The finished environment.
    pub fn build(self) -> Env {
        self.env
    }
}

/// What expressions may refer to.
#[derive(Clone, Debug)]
pub struct Env {
    variables: HashMap<Arc<str>, Type>,
    host_functions: Functions,
    pub(crate) homogeneous_literals: bool,
    pub(crate) presence_test_costs: bool,
    pub(crate) cross_type_comparisons: bool,
}

impl Env {
    /// Begins an environment that has the standard libraries and no variables.
    pub fn builder() -> EnvBuilder {
        EnvBuilder {
            env: Self {
                variables: HashMap::new(),
                host_functions: Functions::new(),
                homogeneous_literals: false,
                presence_test_costs: true,
                cross_type_comparisons: true,
            },
        }
    }

    /// Parses and checks an expression.
    pub fn compile(&self, source: &str) -> Result<Program, CompileError> {
        if source.len() > SOURCE_BYTES_MAX {
            let message = format!(
                "expression is {} bytes long, no more than {SOURCE_BYTES_MAX} are allowed: split it up",
                source.len()
            );
            return Err(CompileError::new(vec![Issue::at("", 0, message)]));
        }
        let expr = parser::parse(source).map_err(CompileError::new)?;
        check::check(self, source, &expr).map_err(CompileError::new)
    }

    pub(crate) fn variable(&self, name: &str) -> Option<(&Arc<str>, &Type)> {
        self.variables.get_key_value(name)
    }

    pub(crate) fn function(&self, name: &str) -> Option<&[Arc<Overload>]> {
        static STANDARD: OnceLock<Functions> = OnceLock::new();
        self.host_functions
            .get(name)
            .or_else(|| STANDARD.get_or_init(library::functions).get(name))
            .map(Vec::as_slice)
    }

    /// Whether an overload is open to expressions here.
    pub(crate) fn allows(&self, overload: &Overload) -> bool {
        self.cross_type_comparisons || !CROSS_TYPE.iter().any(|suffix| overload.id.ends_with(suffix))
    }

    /// The type that a name stands for.
    pub(crate) fn named_type(name: &str) -> Option<Type> {
        Some(match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "dyn" => Type::Dyn,
            "int" => Type::Int,
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "null_type" => Type::Null,
            "string" => Type::String,
            "type" => Type::of(Type::Dyn),
            "uint" => Type::Uint,
            "optional_type" => Type::optional(Type::Dyn),
            "google.protobuf.Duration" => Type::Duration,
            "google.protobuf.Timestamp" => Type::Timestamp,
            "net.IP" | "net.CIDR" => Type::opaque(name),
            _ => return None,
        })
    }
}
