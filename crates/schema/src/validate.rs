//! Finding what is wrong with an object.
//!
//! Owns the value rules of structural schemas: types, bounds, formats, enumerations and the logical junctors, in the
//! order and the words Kubernetes has for them. All problems are found, not only the first. An update is not blamed for
//! what it left as it was. Uniqueness of list items is `list_type`'s work, expressions are `rules`'.

mod junctor;
mod number;

use serde_json::{Map, Value};

use crate::{
    DEPTH_MAX,
    correlate::{OldItems, unchanged},
    format, gotext,
    node::{Checks, Node, Schema, Shape},
    path::{FieldPath, Place},
    problem::{Problem, ProblemKind, Problems},
};

/// Everything that is wrong with a prepared object, at most a hundred problems and a count of the rest.
pub fn validate(value: &Value, schema: Schema<'_>) -> Vec<Problem> {
    Checker::new(FieldPath::root()).run(value, schema, None)
}

/// As [`validate`], but paths begin below `base`, such as `status`.
pub fn validate_below(base: FieldPath, value: &Value, schema: Schema<'_>) -> Vec<Problem> {
    Checker::new(base).run(value, schema, None)
}

/// As [`validate`], but what is wrong in a part that the update left as it was is not held against it.
pub fn validate_update(value: &Value, old: &Value, schema: Schema<'_>) -> Vec<Problem> {
    validate_update_below(FieldPath::root(), value, Some(old), schema)
}

/// As [`validate_update`], but paths begin below `base`, such as `status`, and there may be nothing old.
pub fn validate_update_below(
    base: FieldPath,
    value: &Value,
    old: Option<&Value>,
    schema: Schema<'_>,
) -> Vec<Problem> {
    let checker = Checker::new(base);
    let problems = checker.run(value, schema, None);
    match old {
        // Only what is wrong has to be compared with what was.
        Some(old) if !problems.is_empty() => checker.run(value, schema, Some(old)),
        _ => problems,
    }
}

/// As [`validate`], without the oddities of Kubernetes' checker that make objects no typed client can read (it lets a
/// list pass for a text that has a format, and takes some texts for times that are none) or hide where a problem is.
pub fn validate_readable(value: &Value, schema: Schema<'_>) -> Vec<Problem> {
    Checker { readable: true, ..Checker::new(FieldPath::root()) }.run(value, schema, None)
}

struct Checker {
    base: FieldPath,
    readable: bool,
}

/// Where a value is, and what it was before.
#[derive(Clone, Copy)]
struct Spot<'a> {
    place: &'a Place<'a>,
    old: Option<&'a Value>,
    depth: usize,
}

impl<'a> Spot<'a> {
    fn below(self, place: &'a Place<'a>, old: Option<&'a Value>) -> Self {
        Self { place, old, depth: self.depth.saturating_sub(1) }
    }
}

impl Checker {
    fn new(base: FieldPath) -> Self {
        Self { base, readable: false }
    }

    fn run(&self, value: &Value, schema: Schema<'_>, old: Option<&Value>) -> Vec<Problem> {
        let mut problems = Problems::default();
        self.check(value, schema, Spot { place: &Place::Root, old, depth: DEPTH_MAX }, &mut problems);
        problems.finish()
    }

    /// Checks a value, and forgives it what was wrong before. Gives the number of checks that were passed, by which
    /// the best among alternatives is found.
    fn check(&self, value: &Value, schema: Schema<'_>, spot: Spot<'_>, problems: &mut Problems) -> u64 {
        let mark = problems.mark();
        let passed = self.apply(value, schema, spot, problems);
        if let Some(old) = spot.old
            && problems.mark() != mark
            && unchanged(value, old, schema)
        {
            problems.rewind(mark);
        }
        passed
    }

    fn apply(&self, value: &Value, schema: Schema<'_>, spot: Spot<'_>, problems: &mut Problems) -> u64 {
        let node = schema.node();
        let checks = node.checks.as_deref();
        let format = checks.and_then(|checks| effective_format(node, checks));
        if value.is_null() {
            let passed = u64::from(self.check_type(value, node, format, spot, problems));
            self.check_enum(value, checks, spot, problems);
            return passed;
        }
        // One for the value as a whole, two for the junctors, one for the enumeration.
        let mut passed = 4;
        if node.shape != Shape::Any || format.is_some() {
            let sound = self.check_type(value, node, format, spot, problems);
            passed += 1 + u64::from(sound);
            if self.readable && !sound {
                // Nothing else need be said about a value of the wrong type.
                return passed;
            }
        }
        if let Some(checks) = checks {
            passed += self.check_junctors(value, schema, checks, spot, problems);
        }
        match value {
            Value::String(text) => {
                passed += 1;
                if let Some(checks) = checks {
                    self.check_text(text, checks, spot, problems);
                }
                if let Some(known) = format.and_then(format::known) {
                    passed += 1;
                    if !self.keeps_format(known, text) {
                        let rule = format!("{}: {}", format.unwrap_or_default(), gotext::quote(text));
                        self.wrong_type(value, &rule, spot, problems);
                    }
                }
            }
            Value::Number(number) => {
                passed += 2;
                self.check_number(number, node, checks, format, spot, problems);
            }
            Value::Array(entries) => passed += 2 + self.check_list(entries, schema, checks, spot, problems),
            _ => {}
        }
        self.check_enum(value, checks, spot, problems);
        if let Value::Object(fields) = value {
            passed += 1 + self.check_object(fields, schema, checks, spot, problems);
        }
        passed
    }

    /// The path of a spot, and its name in messages.
    fn name(&self, spot: Spot<'_>) -> (FieldPath, FieldPath) {
        let name = spot.place.path();
        let path = match (self.base.is_root(), name.is_root()) {
            (true, _) => name.clone(),
            (false, true) => self.base.clone(),
            (false, false) => self.base.field(name.as_str()),
        };
        (path, name)
    }

    /// Kubernetes names the field again in the text; people who see the path do not need it twice.
    fn detail(&self, name: &FieldPath, rule: &str) -> String {
        if self.readable { rule.to_owned() } else { format!("{} in body {rule}", name.as_str()) }
    }

    fn invalid(&self, value: &Value, rule: &str, spot: Spot<'_>, problems: &mut Problems) {
        problems.add(|| {
            let (path, name) = self.name(spot);
            Problem::invalid(&path, value, &self.detail(&name, rule))
        });
    }

    fn wrong_type(&self, shown: &Value, rule: &str, spot: Spot<'_>, problems: &mut Problems) {
        problems.add(|| {
            let (path, name) = self.name(spot);
            let detail = self.detail(&name, &format!("must be of type {rule}"));
            Problem::with_value(&path, ProblemKind::TypeInvalid, shown, &detail)
        });
    }

    /// A problem that Kubernetes reports of the whole object, naming the spot in its text only.
    fn of_whole(&self, problems: &mut Problems, spot: Spot<'_>, rule: impl FnOnce(&str) -> String) {
        problems.add(|| {
            let (path, name) = self.name(spot);
            Problem::invalid_text(if self.readable { &path } else { &self.base }, "", &rule(name.as_str()))
        });
    }

    fn check_type(
        &self,
        value: &Value,
        node: &Node,
        format: Option<&str>,
        spot: Spot<'_>,
        problems: &mut Problems,
    ) -> bool {
        let wanted = type_names(node.shape);
        let (actual, actual_format) = match value {
            Value::Null => {
                let sound = wanted.is_empty() || node.nullable;
                if !sound {
                    self.wrong_type(
                        &"null".into(),
                        &format!("{}: \"null\"", wanted.join(",")),
                        spot,
                        problems,
                    );
                }
                return sound;
            }
            Value::Bool(_) => ("boolean", ""),
            Value::String(_) => ("string", ""),
            Value::Number(number) if number.is_i64() => ("integer", "int64"),
            Value::Number(_) => ("number", "float64"),
            Value::Array(_) => ("array", ""),
            Value::Object(_) => ("object", ""),
        };
        let numeric = wanted.contains(&"integer") || wanted.contains(&"number");
        let converts = match value {
            Value::Number(number) if actual == "number" => {
                wanted.contains(&"integer") && number.as_f64().is_some_and(number::is_whole)
            }
            _ => actual == "integer" && wanted.contains(&"number"),
        };
        let listed = wanted.contains(&actual);
        let textual = value.is_string() || (value.is_array() && !self.readable);
        match format {
            Some(format) if !(textual || listed || converts || actual_format == format) => {
                let rule = format!("{format}: \"{actual_format}\"");
                self.wrong_type(self.shown(value, &actual_format.into()), &rule, spot, problems);
                false
            }
            Some(_) if textual && !numeric => true,
            _ if listed || converts => true,
            _ => {
                let rule = format!("{}: \"{actual}\"", wanted.join(","));
                self.wrong_type(self.shown(value, &actual.into()), &rule, spot, problems);
                false
            }
        }
    }

    /// What is shown of a value that has the wrong type: Kubernetes shows the name of the type it has.
    fn shown<'v>(&self, value: &'v Value, name: &'v Value) -> &'v Value {
        let scalar = !(value.is_array() || value.is_object());
        if self.readable && scalar { value } else { name }
    }

    fn keeps_format(&self, known: &str, text: &str) -> bool {
        match known {
            "datetime" if self.readable => format::is_date_time(text),
            known => format::holds(known, text),
        }
    }

    /// Only the first rule of a text that is not kept is told.
    fn check_text(&self, text: &str, checks: &Checks, spot: Spot<'_>, problems: &mut Problems) {
        if checks.max_length.is_some() || checks.min_length.is_some() {
            let characters = text.chars().count() as u64;
            if let Some(limit) = checks.max_length.filter(|&limit| characters > limit) {
                return problems.add(|| Problem::too_long(&self.name(spot).0, limit));
            }
            if let Some(limit) = checks.min_length.filter(|&limit| characters < limit) {
                let rule = format!("should be at least {limit} chars long");
                return self.invalid(&text.into(), &rule, spot, problems);
            }
        }
        let Some(pattern) = &checks.pattern else { return };
        match checks.compiled.is_match(pattern, text) {
            Ok(true) => {}
            Ok(false) => self.invalid(&text.into(), &format!("should match '{pattern}'"), spot, problems),
            Err(reason) => {
                let rule = format!("should match '{pattern}, but pattern is invalid: {reason}'");
                self.invalid(&text.into(), &rule, spot, problems);
            }
        }
    }

    fn check_list(
        &self,
        entries: &[Value],
        schema: Schema<'_>,
        checks: Option<&Checks>,
        spot: Spot<'_>,
        problems: &mut Problems,
    ) -> u64 {
        let mut passed = 0;
        if let Some(items) = schema.items() {
            if spot.depth == 0 {
                self.too_deep(spot, problems);
                return 0;
            }
            let mut old = spot.old.map(|old| OldItems::new(old, schema));
            for (index, entry) in entries.iter().enumerate() {
                let old = old.as_mut().and_then(|old| old.of(entry, index));
                let place = Place::Index(spot.place, index);
                passed += self.check(entry, items, spot.below(&place, old), problems);
            }
        }
        let Some(checks) = checks else { return passed };
        let count = entries.len() as u64;
        if let Some(limit) = checks.min_items.filter(|&limit| count < limit) {
            self.invalid(&count.into(), &format!("should have at least {limit} items"), spot, problems);
        }
        if let Some(limit) = checks.max_items.filter(|&limit| count > limit) {
            problems.add(|| Problem::too_many(&self.name(spot).0, entries.len(), limit));
        }
        if checks.unique_items {
            let mut seen = std::collections::HashSet::with_capacity(entries.len());
            if !entries.iter().all(|entry| seen.insert(gotext::json(entry))) {
                self.invalid(&"".into(), "shouldn't contain duplicates", spot, problems);
            }
        }
        passed
    }

    fn check_enum(&self, value: &Value, checks: Option<&Checks>, spot: Spot<'_>, problems: &mut Problems) {
        let allowed = checks.map_or(&[] as &[Value], |checks| &checks.one_of_values);
        if allowed.is_empty() || allowed.iter().any(|allowed| is_enumerated(value, allowed)) {
            return;
        }
        problems.add(|| {
            let words: Vec<String> = allowed
                .iter()
                .map(|allowed| allowed.as_str().map_or_else(|| gotext::json(allowed), str::to_owned))
                .collect();
            Problem::not_supported(&self.name(spot).0, value, &words)
        });
    }

    fn check_object(
        &self,
        fields: &Map<String, Value>,
        schema: Schema<'_>,
        checks: Option<&Checks>,
        spot: Spot<'_>,
        problems: &mut Problems,
    ) -> u64 {
        let node = schema.node();
        if let Some(checks) = checks {
            let count = fields.len() as u64;
            if let Some(limit) = checks.min_properties.filter(|&limit| count < limit) {
                self.invalid(
                    &count.into(),
                    &format!("should have at least {limit} properties"),
                    spot,
                    problems,
                );
            }
            if let Some(limit) = checks.max_properties.filter(|&limit| count > limit) {
                problems.add(|| Problem::too_many(&self.name(spot).0, fields.len(), limit));
            }
        }
        let mut passed = 0;
        if spot.depth == 0 && (node.additional.is_some() || !node.properties.is_empty()) {
            self.too_deep(spot, problems);
            return 0;
        }
        if let Some(additional) = schema.additional() {
            let entries = fields.iter().filter(|(name, _)| !node.properties.contains_key(name.as_str()));
            for (name, field) in entries {
                passed += self.check_field(name, field, additional, spot, problems);
            }
        }
        if !node.properties.is_empty() {
            for (name, field) in fields {
                if let Some(property) = schema.property(name) {
                    passed += self.check_field(name, field, property, spot, problems);
                }
            }
        }
        for name in node.required.iter().filter(|name| !fields.contains_key(&***name)) {
            let place = Place::Field(spot.place, name);
            problems.add(|| Problem::required(&self.name(spot.below(&place, None)).0, ""));
        }
        passed
    }

    fn check_field(
        &self,
        name: &str,
        field: &Value,
        schema: Schema<'_>,
        spot: Spot<'_>,
        problems: &mut Problems,
    ) -> u64 {
        // Both sides carry the version of the request, so no change of these can be seen.
        let hidden =
            matches!(spot.place, Place::Root) && self.base.is_root() && matches!(name, "apiVersion" | "kind");
        let old = spot.old.filter(|_| !hidden).and_then(|old| old.get(name));
        let place = Place::Field(spot.place, name);
        self.check(field, schema, spot.below(&place, old), problems)
    }

    fn too_deep(&self, spot: Spot<'_>, problems: &mut Problems) {
        problems.add(|| {
            Problem::invalid_text(
                &self.name(spot).0,
                "",
                &format!("must not be nested deeper than {DEPTH_MAX} levels"),
            )
        });
    }
}

/// The types a shape admits, by name.
fn type_names(shape: Shape) -> &'static [&'static str] {
    match shape {
        Shape::Any => &[],
        Shape::Object => &["object"],
        Shape::Array => &["array"],
        Shape::String => &["string"],
        Shape::Integer => &["integer"],
        Shape::Number => &["number"],
        Shape::Boolean => &["boolean"],
        Shape::IntOrString => &["integer", "string"],
    }
}

/// The format, if it is one that is checked for values of the node's type.
fn effective_format<'a>(node: &Node, checks: &'a Checks) -> Option<&'a str> {
    let format = checks.format.as_deref()?;
    let sound = match node.shape {
        Shape::Any | Shape::String | Shape::IntOrString => format::known(format).is_some(),
        Shape::Integer => matches!(format, "int32" | "int64"),
        Shape::Number => matches!(format, "float" | "double"),
        Shape::Object | Shape::Array | Shape::Boolean => false,
    };
    sound.then_some(format)
}

/// Whether a value is the allowed one; numbers are compared in the allowed one's type.
fn is_enumerated(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        // Null is never found, not even where it is listed.
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(allowed)) if value != allowed => {
            match (allowed.as_i64(), value.as_i64()) {
                (Some(allowed), None) => value.as_f64().is_some_and(|value| value as i64 == allowed),
                (Some(_), Some(_)) => false,
                (None, _) => value.as_f64() == allowed.as_f64(),
            }
        }
        _ => value == allowed,
    }
}

#[cfg(test)]
mod tests;
