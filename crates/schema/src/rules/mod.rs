//! CEL rules (`x-kubernetes-validations`).
//!
//! Owns compiling the rules of a schema and checking values against them: over lists, maps and objects, with what was
//! there before as `oldSelf`, within Kubernetes' budget. The language itself is `berth_cel`'s.

mod declaration;
mod field_path;
mod program;

use std::collections::BTreeMap;

use berth_cel::{Budget, PER_OBJECT_COST_BUDGET};
use serde_json::Value;

use declaration::Declaration;
pub(crate) use field_path::resolve_field_path;
use program::{Failure, Program, compile_rules};

use crate::{
    SCHEMA_DEPTH_MAX,
    correlate::{OldItems, unchanged},
    node::{ListType, Schema},
    path::{FieldPath, Place},
    problem::{Problem, Problems},
};

/// The rules of a schema, compiled.
#[derive(Debug)]
pub struct Rules {
    root: Option<RuleNode>,
}

/// The rules at one place of a schema and below it.
#[derive(Debug)]
struct RuleNode {
    declaration: Declaration,
    programs: Vec<Program>,
    /// The name of the values' type, shown where a rule could not be evaluated.
    kind: &'static str,
    items: Option<Box<RuleNode>>,
    properties: BTreeMap<Box<str>, RuleNode>,
    additional: Option<Box<RuleNode>>,
}

impl Rules {
    /// Compiles every rule of a schema, that of a whole object; the problems say which rules do not compile, with paths
    /// below the schema.
    pub fn compile(schema: Schema<'_>) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let root = RuleNode::of(schema, true, &FieldPath::root(), &mut problems, SCHEMA_DEPTH_MAX);
        if problems.is_empty() { Ok(Self { root }) } else { Err(problems.finish()) }
    }

    /// Compiles the rules of a part of an object.
    pub(crate) fn compile_part(schema: Schema<'_>, root: bool) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let root = RuleNode::of(schema, root, &FieldPath::root(), &mut problems, SCHEMA_DEPTH_MAX);
        if problems.is_empty() { Ok(Self { root }) } else { Err(problems.finish()) }
    }

    /// Whether there are no rules at all.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The rules that a value does not keep. With an old value, rules about the change are checked too, and rules about
    /// the value alone are not held against parts that were left as they were. `schema` is the one the rules were
    /// compiled from.
    pub fn check(&self, schema: Schema<'_>, value: &Value, old: Option<&Value>) -> Vec<Problem> {
        self.check_below(&FieldPath::root(), schema, value, old, old)
    }

    /// As [`Rules::check`], with paths below `base`, and with or without forgiveness for what is `unchanged` from.
    pub(crate) fn check_below(
        &self,
        base: &FieldPath,
        schema: Schema<'_>,
        value: &Value,
        old: Option<&Value>,
        forgiving: Option<&Value>,
    ) -> Vec<Problem> {
        let Some(root) = &self.root else { return Vec::new() };
        let mut check = Check { problems: Problems::default(), budget: Budget::new(PER_OBJECT_COST_BUDGET) };
        let place = if base.is_root() { Place::Root } else { Place::Field(&Place::Root, base.as_str()) };
        let spot = Spot { place: &place, old, pairing: Pairing { current: forgiving, parent: None } };
        let _ = check.visit(root, schema, value, spot, true);
        check.problems.finish()
    }
}

impl RuleNode {
    fn of(
        schema: Schema<'_>,
        root: bool,
        path: &FieldPath,
        problems: &mut Problems,
        depth: usize,
    ) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        let node = schema.node();
        // Most schemas have no rules; what their values look like to expressions need not be known.
        let below = |schema: Option<Schema<'_>>, path: FieldPath, problems: &mut Problems| {
            let schema = schema?;
            Self::of(schema, schema.node().embedded_resource, &path, problems, depth)
        };
        let items = below(schema.items(), path.field("items"), problems).map(Box::new);
        let additional =
            below(schema.additional(), path.field("additionalProperties"), problems).map(Box::new);
        let mut properties = BTreeMap::new();
        for name in node.properties.keys() {
            let path = path.field("properties").key(name);
            if let Some(inner) = below(schema.property(name), path, problems) {
                properties.insert(name.clone(), inner);
            }
        }
        if node.rules.is_empty() && items.is_none() && additional.is_none() && properties.is_empty() {
            return None;
        }
        let declaration = Declaration::of(schema, root, SCHEMA_DEPTH_MAX)?;
        let mut programs = Vec::new();
        for compiled in compile_rules(schema, &declaration) {
            if let Some(failure) = compiled.failure {
                problems.add(|| failure.problem(&path.field("x-kubernetes-validations"), node));
            }
            programs.extend(compiled.program);
        }
        Some(Self { declaration, programs, kind: type_name(schema), items, properties, additional })
    }
}

/// What is known about one rule of a node before any value is.
pub(crate) struct RuleReport {
    pub(crate) index: usize,
    pub(crate) failure: Option<Failure>,
    pub(crate) uses_old: bool,
}

/// Looks at the rules of one node alone; none if expressions see nothing of its values.
pub(crate) fn report_rules(schema: Schema<'_>, root: bool) -> Option<Vec<RuleReport>> {
    let declaration = Declaration::of(schema, root, SCHEMA_DEPTH_MAX)?;
    let reports = compile_rules(schema, &declaration).into_iter().map(|compiled| RuleReport {
        index: compiled.index,
        failure: compiled.failure,
        uses_old: compiled.uses_old,
    });
    Some(reports.collect())
}

/// The name of a schema's type, as a definition writes it.
fn type_name(schema: Schema<'_>) -> &'static str {
    use crate::node::Shape;
    match schema.node().shape {
        Shape::Object => "object",
        Shape::Array => "array",
        Shape::String => "string",
        Shape::Integer => "integer",
        Shape::Number => "number",
        Shape::Boolean => "boolean",
        Shape::Any | Shape::IntOrString => "",
    }
}

/// What a part corresponds to in the old object: for a part without a counterpart its nearest parent counts.
#[derive(Clone, Copy)]
struct Pairing<'a> {
    current: Option<&'a Value>,
    parent: Option<Parent<'a>>,
}

/// A part of the new object, what it was, and what describes both.
#[derive(Clone, Copy)]
struct Parent<'a> {
    value: &'a Value,
    old: &'a Value,
    schema: Schema<'a>,
}

impl<'a> Pairing<'a> {
    fn below(self, value: &'a Value, schema: Schema<'a>, old: Option<&'a Value>) -> Self {
        match self.current {
            None => self,
            Some(current) => Self { current: old, parent: Some(Parent { value, old: current, schema }) },
        }
    }

    /// Whether what is at hand, or else its nearest parent that has a counterpart, was left as it was.
    fn unchanged(self, value: &Value, schema: Schema<'_>) -> bool {
        match (self.current, self.parent) {
            (Some(old), _) => unchanged(value, old, schema),
            (None, Some(parent)) => unchanged(parent.value, parent.old, parent.schema),
            (None, None) => false,
        }
    }
}

#[derive(Clone, Copy)]
struct Spot<'a> {
    place: &'a Place<'a>,
    /// What `oldSelf` is.
    old: Option<&'a Value>,
    pairing: Pairing<'a>,
}

struct Check {
    problems: Problems,
    budget: Budget,
}

/// The budget is spent: no further rule is looked at.
struct Spent;

impl Check {
    fn visit<'a>(
        &mut self,
        rules: &RuleNode,
        schema: Schema<'a>,
        value: &'a Value,
        spot: Spot<'a>,
        root: bool,
    ) -> Result<(), Spent> {
        if value.is_null() {
            return Ok(());
        }
        let old = spot.old.filter(|old| !old.is_null());
        program::run(rules, schema, value, Spot { old, ..spot }, self)?;
        match value {
            Value::Array(entries) => {
                let (Some(inner), Some(schema_inner)) = (&rules.items, schema.items()) else { return Ok(()) };
                let keyed = matches!(schema.node().list, ListType::Map(_));
                let mut old_items = old.filter(|_| keyed).map(|old| OldItems::new(old, schema));
                let mut pairs = spot.pairing.current.filter(|_| keyed).map(|old| OldItems::new(old, schema));
                for (index, entry) in entries.iter().enumerate() {
                    let old = old_items.as_mut().and_then(|old| old.of(entry, index));
                    let pair = pairs.as_mut().and_then(|old| old.of(entry, index));
                    let place = Place::Index(spot.place, index);
                    let pairing = spot.pairing.below(value, schema, pair);
                    self.visit(inner, schema_inner, entry, Spot { place: &place, old, pairing }, false)?;
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let declared = schema.property(name);
                    let (inner, schema_inner) = match (declared, rules.properties.get(name.as_str())) {
                        (Some(property), Some(inner)) => (inner, property),
                        (None, _) => match (&rules.additional, schema.additional()) {
                            (Some(inner), Some(additional)) => (&**inner, additional),
                            _ => continue,
                        },
                        _ => continue,
                    };
                    let old = old.and_then(|old| old.get(name));
                    let place = match declared {
                        Some(_) => Place::Field(spot.place, name),
                        None => Place::Key(spot.place, name),
                    };
                    // Both sides carry the version of the request, so no change of these can be seen.
                    let pairing = if root && matches!(name.as_str(), "apiVersion" | "kind") {
                        Pairing { current: None, parent: None }
                    } else {
                        let pair = spot.pairing.current.and_then(|old| old.get(name));
                        spot.pairing.below(value, schema, pair)
                    };
                    self.visit(inner, schema_inner, field, Spot { place: &place, old, pairing }, false)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
