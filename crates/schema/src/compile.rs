//! From the `openAPIV3Schema` of a definition to nodes.
//!
//! Owns reading the JSON form. Takes what Kubernetes' own reader takes; whether a definition may have such a schema is
//! `structural`'s question. Never looks at a value.

use serde_json::{Map, Number, Value};

use crate::{
    node::{Arena, Checks, ListType, MapType, Node, NodeId, Rule, Shape},
    path::FieldPath,
    problem::{Problem, Problems},
};

/// How deep a schema may nest. Each level takes two of the JSON reader's 128.
pub const SCHEMA_DEPTH_MAX: usize = 64;

/// Compiles a schema into an arena; the problems say what could not be read, with paths below the schema.
pub fn compile(arena: &mut Arena, schema: &Value) -> Result<NodeId, Vec<Problem>> {
    let mut compiler = Compiler { arena, problems: Problems::default() };
    let id = compiler.node(schema, &FieldPath::root(), SCHEMA_DEPTH_MAX);
    if compiler.problems.is_empty() { Ok(id) } else { Err(compiler.problems.finish()) }
}

struct Compiler<'a> {
    arena: &'a mut Arena,
    problems: Problems,
}

impl Compiler<'_> {
    fn node(&mut self, schema: &Value, path: &FieldPath, depth: usize) -> NodeId {
        let node = match schema {
            Value::Object(_) if depth == 0 => {
                self.wrong(
                    path,
                    &Value::Null,
                    &format!("must not be nested deeper than {SCHEMA_DEPTH_MAX} levels"),
                );
                Node::default()
            }
            Value::Object(fields) => self.read(fields, path, depth - 1),
            other => {
                self.wrong(path, other, "must be an object");
                Node::default()
            }
        };
        self.arena.add(node)
    }

    fn read(&mut self, fields: &Map<String, Value>, path: &FieldPath, depth: usize) -> Node {
        let mut node = Node {
            shape: self.shape(fields, path),
            nullable: self.flag(fields, "nullable", path),
            preserve_unknown: self.flag(fields, "x-kubernetes-preserve-unknown-fields", path),
            embedded_resource: self.flag(fields, "x-kubernetes-embedded-resource", path),
            default: fields.get("default").filter(|default| !default.is_null()).cloned(),
            required: self.texts(fields, "required", path),
            list: self.list_type(fields, path),
            map: match self.text(fields, "x-kubernetes-map-type", path).as_deref() {
                Some("atomic") => MapType::Atomic,
                _ => MapType::Granular,
            },
            rules: self.rules(fields, path),
            ..Node::default()
        };
        for (name, property) in self.object(fields, "properties", path).into_iter().flatten() {
            let id = self.node(property, &path.field("properties").key(name), depth);
            node.properties.insert(name.as_str().into(), id);
        }
        node.additional = match fields.get("additionalProperties") {
            None | Some(Value::Null | Value::Bool(false)) => None,
            // Anything goes, but what is inside is not described and therefore pruned.
            Some(Value::Bool(true)) => Some(self.arena.add(Node { nullable: true, ..Node::default() })),
            Some(schema) => Some(self.node(schema, &path.field("additionalProperties"), depth)),
        };
        node.items = match fields.get("items") {
            None | Some(Value::Null) => None,
            Some(items) => Some(self.node(items, &path.field("items"), depth)),
        };
        node.checks = self.checks(fields, path, depth).map(Box::new);
        node
    }

    fn shape(&mut self, fields: &Map<String, Value>, path: &FieldPath) -> Shape {
        let kind = self.text(fields, "type", path);
        if self.flag(fields, "x-kubernetes-int-or-string", path) {
            return Shape::IntOrString;
        }
        match kind.as_deref() {
            None | Some("") => Shape::Any,
            Some("object") => Shape::Object,
            Some("array") => Shape::Array,
            Some("string") => Shape::String,
            Some("integer") => Shape::Integer,
            Some("number") => Shape::Number,
            Some("boolean") => Shape::Boolean,
            Some(other) => {
                let allowed = ["array", "boolean", "integer", "number", "object", "string"];
                let problem = Problem::not_supported(&path.field("type"), &Value::from(other), &allowed);
                self.problems.add(|| problem);
                Shape::Any
            }
        }
    }

    fn list_type(&mut self, fields: &Map<String, Value>, path: &FieldPath) -> ListType {
        let keys = self.texts(fields, "x-kubernetes-list-map-keys", path);
        match self.text(fields, "x-kubernetes-list-type", path).as_deref() {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(keys),
            _ => ListType::Atomic,
        }
    }

    fn rules(&mut self, fields: &Map<String, Value>, path: &FieldPath) -> Vec<Rule> {
        const NAME: &str = "x-kubernetes-validations";
        let Some(rules) = self.list(fields, NAME, path) else { return Vec::new() };
        let mut read = Vec::with_capacity(rules.len());
        for (index, rule) in rules.iter().enumerate() {
            let path = path.field(NAME).index(index);
            let Value::Object(rule) = rule else {
                self.wrong(&path, rule, "must be an object");
                continue;
            };
            let text = |compiler: &mut Self, name: &str| {
                compiler.text(rule, name, &path).filter(|text| !text.is_empty())
            };
            read.push(Rule {
                rule: text(self, "rule").unwrap_or_default(),
                message: text(self, "message"),
                message_expression: text(self, "messageExpression"),
                reason: text(self, "reason"),
                field_path: text(self, "fieldPath"),
                optional_old_self: self.flag(rule, "optionalOldSelf", &path),
            });
        }
        read
    }

    fn checks(&mut self, fields: &Map<String, Value>, path: &FieldPath, depth: usize) -> Option<Checks> {
        const NAMES: [&str; 17] = [
            "allOf",
            "anyOf",
            "enum",
            "format",
            "maxItems",
            "maxLength",
            "maxProperties",
            "maximum",
            "minItems",
            "minLength",
            "minProperties",
            "minimum",
            "multipleOf",
            "not",
            "oneOf",
            "pattern",
            "uniqueItems",
        ];
        if !NAMES.iter().any(|name| fields.get(*name).is_some_and(|value| !value.is_null())) {
            return None;
        }
        let exclusive_minimum = self.flag(fields, "exclusiveMinimum", path);
        let exclusive_maximum = self.flag(fields, "exclusiveMaximum", path);
        Some(Checks {
            format: self.text(fields, "format", path).filter(|format| !format.is_empty()).map(Into::into),
            pattern: self.text(fields, "pattern", path).filter(|pattern| !pattern.is_empty()).map(Into::into),
            one_of_values: self.list(fields, "enum", path).cloned().unwrap_or_default(),
            minimum: self.number(fields, "minimum", path).map(|limit| (limit, exclusive_minimum)),
            maximum: self.number(fields, "maximum", path).map(|limit| (limit, exclusive_maximum)),
            multiple_of: self.number(fields, "multipleOf", path),
            min_length: self.count(fields, "minLength", path),
            max_length: self.count(fields, "maxLength", path),
            min_items: self.count(fields, "minItems", path),
            max_items: self.count(fields, "maxItems", path),
            unique_items: self.flag(fields, "uniqueItems", path),
            min_properties: self.count(fields, "minProperties", path),
            max_properties: self.count(fields, "maxProperties", path),
            all_of: self.nodes(fields, "allOf", path, depth),
            any_of: self.nodes(fields, "anyOf", path, depth),
            one_of: self.nodes(fields, "oneOf", path, depth),
            not: match fields.get("not") {
                None | Some(Value::Null) => None,
                Some(not) => Some(self.node(not, &path.field("not"), depth)),
            },
            ..Checks::default()
        })
    }

    fn nodes(
        &mut self,
        fields: &Map<String, Value>,
        name: &str,
        path: &FieldPath,
        depth: usize,
    ) -> Vec<NodeId> {
        let Some(schemas) = self.list(fields, name, path) else { return Vec::new() };
        let path = path.field(name);
        schemas
            .iter()
            .enumerate()
            .map(|(index, schema)| self.node(schema, &path.index(index), depth))
            .collect()
    }

    fn wrong(&mut self, path: &FieldPath, value: &Value, rule: &str) {
        self.problems.add(|| Problem::invalid(path, value, rule));
    }

    fn flag(&mut self, fields: &Map<String, Value>, name: &str, path: &FieldPath) -> bool {
        match fields.get(name) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.wrong(&path.field(name), other, "must be true or false");
                false
            }
        }
    }

    fn text(&mut self, fields: &Map<String, Value>, name: &str, path: &FieldPath) -> Option<String> {
        match fields.get(name)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => {
                self.wrong(&path.field(name), other, "must be a string");
                None
            }
        }
    }

    fn texts(&mut self, fields: &Map<String, Value>, name: &str, path: &FieldPath) -> Vec<Box<str>> {
        let Some(entries) = self.list(fields, name, path) else { return Vec::new() };
        let path = path.field(name);
        let mut texts = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            match entry {
                Value::String(text) => texts.push(text.as_str().into()),
                other => self.wrong(&path.index(index), other, "must be a string"),
            }
        }
        texts
    }

    fn list<'v>(
        &mut self,
        fields: &'v Map<String, Value>,
        name: &str,
        path: &FieldPath,
    ) -> Option<&'v Vec<Value>> {
        match fields.get(name)? {
            Value::Null => None,
            Value::Array(entries) => Some(entries),
            other => {
                self.wrong(&path.field(name), other, "must be a list");
                None
            }
        }
    }

    fn object<'v>(
        &mut self,
        fields: &'v Map<String, Value>,
        name: &str,
        path: &FieldPath,
    ) -> Option<&'v Map<String, Value>> {
        match fields.get(name)? {
            Value::Null => None,
            Value::Object(entries) => Some(entries),
            other => {
                self.wrong(&path.field(name), other, "must be an object");
                None
            }
        }
    }

    fn number(&mut self, fields: &Map<String, Value>, name: &str, path: &FieldPath) -> Option<Number> {
        match fields.get(name)? {
            Value::Null => None,
            Value::Number(number) => Some(number.clone()),
            other => {
                self.wrong(&path.field(name), other, "must be a number");
                None
            }
        }
    }

    /// A count; one below nothing is the same as nothing.
    fn count(&mut self, fields: &Map<String, Value>, name: &str, path: &FieldPath) -> Option<u64> {
        let number = self.number(fields, name, path)?;
        match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(count), ..) => Some(count),
            (_, Some(_), _) => Some(0),
            (_, _, Some(float)) if float.fract() == 0.0 && (0.0..1e18).contains(&float) => Some(float as u64),
            _ => {
                self.wrong(&path.field(name), &Value::Number(number), "must be a whole number");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_read_with_everything_it_says() {
        let mut arena = Arena::default();
        let id = compile(
            &mut arena,
            &json!({
                "type": "object",
                "required": ["a"],
                "properties": {
                    "a": {"type": "array", "items": {"type": "string", "maxLength": 3}, "x-kubernetes-list-type": "set"},
                    "b": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "c": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
                },
                "x-kubernetes-validations": [{"rule": "has(self.a)", "message": "no"}],
            }),
        )
        .unwrap();
        let root = arena.schema(id);
        assert_eq!(root.node().required, [Box::from("a")]);
        assert_eq!(root.node().rules[0].rule, "has(self.a)");
        assert_eq!(root.property("a").unwrap().node().list, ListType::Set);
        let item = root.property("a").unwrap().items().unwrap();
        assert_eq!(item.node().checks.as_ref().unwrap().max_length, Some(3));
        assert_eq!(root.property("b").unwrap().node().shape, Shape::IntOrString);
        assert_eq!(root.property("c").unwrap().field("x").unwrap().node().shape, Shape::Integer);
    }

    #[test]
    fn a_schema_that_is_none_is_answered_with_what_is_wrong() {
        let wrong =
            json!({"type": 7, "properties": {"a": [], "b": {"type": "text", "maxLength": "x"}}, "allOf": {}});
        let texts: Vec<String> =
            compile(&mut Arena::default(), &wrong).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "type: Invalid value: 7: must be a string",
                "properties[a]: Invalid value: []: must be an object",
                "properties[b].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
                "properties[b].maxLength: Invalid value: \"x\": must be a number",
                "allOf: Invalid value: {}: must be a list",
            ]
        );
    }

    #[test]
    fn a_schema_of_any_depth_is_refused_not_followed() {
        let deep = (0..10_000)
            .fold(json!({}), |inner, _| Value::Object(Map::from_iter([("items".to_owned(), inner)])));
        let problems = compile(&mut Arena::default(), &deep).unwrap_err();
        std::mem::forget(deep);
        assert!(problems[0].message.contains("nested deeper"), "{problems:?}");
    }
}
