//! The shape every stage reads: one arena of nodes, shared by the built-in kinds and by every definition.
//!
//! Owns the compiled form of a structural schema. A node never holds another node but its number, so definitions that
//! refer to themselves (a `JSONSchemaProps` inside a `JSONSchemaProps`) are ordinary data. Never reads a value.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::pattern::Pattern;

/// The number of a node in its [`Arena`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// The nodes of one or many schemas.
#[derive(Debug, Default)]
pub struct Arena {
    nodes: Vec<Node>,
}

impl Arena {
    /// Adds a node and gives it its number.
    pub fn add(&mut self, node: Node) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("fewer than 2^32 nodes fit in memory"));
        self.nodes.push(node);
        id
    }

    /// Replaces a node, for definitions that are referred to before they are read.
    pub fn set(&mut self, id: NodeId, node: Node) {
        self.nodes[id.0 as usize] = node;
    }

    /// Copies the schema at `from` of another arena into this one, with everything below it.
    pub fn graft(&mut self, from: Schema<'_>) -> NodeId {
        let mut copied = BTreeMap::new();
        self.graft_node(from, &mut copied)
    }

    fn graft_node(&mut self, from: Schema<'_>, copied: &mut BTreeMap<NodeId, NodeId>) -> NodeId {
        if let Some(&known) = copied.get(&from.id) {
            return known;
        }
        let mut node = from.node().clone();
        let id = self.add(Node::default());
        copied.insert(from.id, id);
        let mut follow = |arena: &mut Self, id: &mut NodeId| *id = arena.graft_node(from.at(*id), copied);
        node.properties.values_mut().for_each(|id| follow(self, id));
        node.additional.iter_mut().chain(&mut node.items).for_each(|id| follow(self, id));
        if let Some(checks) = &mut node.checks {
            let Checks { all_of, any_of, one_of, not, .. } = &mut **checks;
            all_of.iter_mut().chain(any_of).chain(one_of).chain(not).for_each(|id| follow(self, id));
        }
        self.set(id, node);
        id
    }

    /// A view of one node.
    pub fn schema(&self, id: NodeId) -> Schema<'_> {
        Schema { arena: self, id }
    }
}

/// One node in its arena: what the functions of this crate, patches and apply walk along a value.
#[derive(Debug, Clone, Copy)]
pub struct Schema<'a> {
    arena: &'a Arena,
    id: NodeId,
}

impl<'a> Schema<'a> {
    /// What is said about a value here.
    pub fn node(self) -> &'a Node {
        &self.arena.nodes[self.id.0 as usize]
    }

    /// The schema of a declared property.
    pub fn property(self, name: &str) -> Option<Schema<'a>> {
        self.node().properties.get(name).map(|&id| self.at(id))
    }

    /// The schema of a field of this name: its property, or else what further properties are.
    pub fn field(self, name: &str) -> Option<Schema<'a>> {
        self.property(name).or_else(|| self.additional())
    }

    /// The schema of properties that are not declared (`additionalProperties`).
    pub fn additional(self) -> Option<Schema<'a>> {
        self.node().additional.map(|id| self.at(id))
    }

    /// The schema of a list's items.
    pub fn items(self) -> Option<Schema<'a>> {
        self.node().items.map(|id| self.at(id))
    }

    /// The schema of another node of the same arena.
    #[must_use]
    pub fn at(self, id: NodeId) -> Schema<'a> {
        Schema { arena: self.arena, id }
    }
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// Anything: no type is given (`x-kubernetes-preserve-unknown-fields` without a type, or JSON).
    #[default]
    Any,
    /// An object, declared or a map.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
}

/// How lists are merged and whose their items are (`x-kubernetes-list-type`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ListType {
    /// One value as a whole. What a list is when nothing is said.
    #[default]
    Atomic,
    /// Each scalar on its own.
    Set,
    /// Each item by the values of these keys.
    Map(Vec<Box<str>>),
}

/// Whether an object's fields have owners of their own (`x-kubernetes-map-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MapType {
    /// Each field has its owner.
    #[default]
    Granular,
    /// One value as a whole.
    Atomic,
}

/// How a strategic merge patch treats a field of a built-in kind (`x-kubernetes-patch-strategy`, `-merge-key`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchRule {
    /// `merge` among the strategies.
    pub merge: bool,
    /// `retainKeys` among the strategies.
    pub retain_keys: bool,
    /// The key by which a list's items are told apart, absent for lists of scalars.
    pub merge_key: Option<Box<str>>,
}

/// A rule of `x-kubernetes-validations`, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// The expression.
    pub rule: String,
    /// What to say when it does not hold.
    pub message: Option<String>,
    /// An expression giving what to say.
    pub message_expression: Option<String>,
    /// `FieldValueInvalid` and its siblings.
    pub reason: Option<String>,
    /// Where to point, relative to the node.
    pub field_path: Option<String>,
    /// Whether `oldSelf` may be absent.
    pub optional_old_self: bool,
}

/// Everything known about the values at one place.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// The type.
    pub shape: Shape,
    /// Declared properties.
    pub properties: BTreeMap<Box<str>, NodeId>,
    /// What undeclared properties are; `None` and not `preserve_unknown` means they are pruned.
    pub additional: Option<NodeId>,
    /// What items are.
    pub items: Option<NodeId>,
    /// Properties that must be there.
    pub required: Vec<Box<str>>,
    /// Filled in where absent.
    pub default: Option<Value>,
    /// Whether null is kept.
    pub nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// How a list is merged.
    pub list: ListType,
    /// How a map is merged.
    pub map: MapType,
    /// How a strategic merge patch treats this field.
    pub patch: Option<PatchRule>,
    /// Bounds, patterns, enumerations and the logical junctors, absent for most nodes.
    pub checks: Option<Box<Checks>>,
    /// CEL rules.
    pub rules: Vec<Rule>,
}

/// The value validations of a node.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    /// `format`.
    pub format: Option<Box<str>>,
    /// `pattern`, as written.
    pub pattern: Option<Box<str>>,
    /// `pattern`, compiled at its first use; leave it at its default.
    pub compiled: Pattern,
    /// `enum`.
    pub one_of_values: Vec<Value>,
    /// `minimum` and whether it is exclusive.
    pub minimum: Option<(serde_json::Number, bool)>,
    /// `maximum` and whether it is exclusive.
    pub maximum: Option<(serde_json::Number, bool)>,
    /// `multipleOf`.
    pub multiple_of: Option<serde_json::Number>,
    /// `minLength`, in characters.
    pub min_length: Option<u64>,
    /// `maxLength`, in characters.
    pub max_length: Option<u64>,
    /// `minItems`.
    pub min_items: Option<u64>,
    /// `maxItems`.
    pub max_items: Option<u64>,
    /// `uniqueItems` (forbidden in definitions of custom resources, present in a few built-in ones).
    pub unique_items: bool,
    /// `minProperties`.
    pub min_properties: Option<u64>,
    /// `maxProperties`.
    pub max_properties: Option<u64>,
    /// `allOf`.
    pub all_of: Vec<NodeId>,
    /// `anyOf`.
    pub any_of: Vec<NodeId>,
    /// `oneOf`.
    pub one_of: Vec<NodeId>,
    /// `not`.
    pub not: Option<NodeId>,
}
