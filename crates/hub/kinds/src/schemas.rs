//! The table as structural schemas, for the stages that walk an object whatever its kind.
//!
//! Owns how a kind of the table is told in the words of [`berth_schema`]. Never reads an object and holds no facts of its own.

use std::collections::HashMap;

use berth_schema::{Arena, Checks, ListType, MapType, Node, NodeId, PatchRule, Shape};

use crate::types::{Field, Kind, Type, TypeId, Types};

/// The schemas of all types.
#[derive(Debug)]
pub(crate) struct Schemas {
    pub(crate) arena: Arena,
    roots: Vec<NodeId>,
}

impl Schemas {
    /// The schema of a type.
    pub(crate) fn root(&self, id: TypeId) -> NodeId {
        self.roots[id.0 as usize]
    }

    pub(crate) fn build(types: &Types) -> Schemas {
        let mut arena = Arena::default();
        // Numbers first: types refer to each other, some to themselves.
        let roots = types.iter().map(|_| arena.add(Node::default())).collect();
        let mut builder = Builder { types, arena, roots, plain: HashMap::new(), overridden: Vec::new() };
        for (id, found) in types.iter() {
            let node = builder.record(found);
            builder.arena.set(builder.roots[id.0 as usize], node);
        }
        builder.settle();
        Schemas { arena: builder.arena, roots: builder.roots }
    }
}

struct Builder<'a> {
    types: &'a Types,
    arena: Arena,
    roots: Vec<NodeId>,
    /// Nodes without a fact of their field are shared.
    plain: HashMap<String, NodeId>,
    /// Records that a field says more about, copied from their type when all types are built.
    overridden: Vec<(NodeId, TypeId, Option<PatchRule>, bool)>,
}

impl Builder<'_> {
    fn record(&mut self, found: &Type) -> Node {
        Node {
            shape: Shape::Object,
            properties: found.fields.iter().map(|field| (field.name.clone(), self.property(field))).collect(),
            required: found
                .fields
                .iter()
                .filter(|field| field.required)
                .map(|field| field.name.clone())
                .collect(),
            map: if found.atomic { MapType::Atomic } else { MapType::Granular },
            // A record without fields is a free-form object to everyone who reads the published schema.
            preserve_unknown: found.fields.is_empty(),
            ..Node::default()
        }
    }

    fn property(&mut self, field: &Field) -> NodeId {
        let special =
            field.list.is_some() || field.atomic || field.patch.is_some() || field.default.is_some();
        if !special {
            return self.plain(&field.kind);
        }
        if let Kind::Struct(id) = field.kind {
            let node = self.arena.add(Node::default());
            self.overridden.push((node, id, field.patch.clone(), field.atomic));
            return node;
        }
        let mut node = self.node(&field.kind);
        node.patch.clone_from(&field.patch);
        node.default.clone_from(&field.default);
        if field.atomic {
            node.map = MapType::Atomic;
        }
        if let Kind::List(item) = &field.kind {
            node.list = field.list.clone().unwrap_or_else(|| implied(field.patch.as_ref(), item));
        }
        self.arena.add(node)
    }

    fn plain(&mut self, kind: &Kind) -> NodeId {
        if let Kind::Struct(id) = kind {
            return self.roots[id.0 as usize];
        }
        let name = format!("{kind:?}");
        if let Some(&node) = self.plain.get(&name) {
            return node;
        }
        let node = self.node(kind);
        let node = self.arena.add(node);
        self.plain.insert(name, node);
        node
    }

    fn node(&mut self, kind: &Kind) -> Node {
        let shaped = |shape| Node { shape, ..Node::default() };
        let formatted = |shape, format: &str| Node {
            shape,
            checks: Some(Box::new(Checks { format: Some(format.into()), ..Checks::default() })),
            ..Node::default()
        };
        match kind {
            Kind::Bool => shaped(Shape::Boolean),
            Kind::Int32 => formatted(Shape::Integer, "int32"),
            Kind::Int64 => formatted(Shape::Integer, "int64"),
            Kind::Double => formatted(Shape::Number, "double"),
            Kind::String => shaped(Shape::String),
            Kind::Bytes => formatted(Shape::String, "byte"),
            Kind::Time | Kind::MicroTime => formatted(Shape::String, "date-time"),
            Kind::Quantity | Kind::IntOrString => shaped(Shape::IntOrString),
            Kind::Raw | Kind::Fields => Node { preserve_unknown: true, ..shaped(Shape::Object) },
            Kind::Any | Kind::SchemaOrList | Kind::SchemaOrBool | Kind::SchemaOrStrings => {
                Node { preserve_unknown: true, ..shaped(Shape::Any) }
            }
            // A field that is a record goes through `plain` or `overridden`, which know the shared node.
            Kind::Struct(id) => {
                let found = self.types.get(*id);
                self.record(found)
            }
            Kind::List(item) => Node { items: Some(self.plain(item)), ..shaped(Shape::Array) },
            Kind::Map(value) => Node { additional: Some(self.plain(value)), ..shaped(Shape::Object) },
        }
    }

    fn settle(&mut self) {
        for (node, id, patch, atomic) in std::mem::take(&mut self.overridden) {
            let mut copy = self.arena.schema(self.roots[id.0 as usize]).node().clone();
            copy.patch = patch;
            if atomic {
                copy.map = MapType::Atomic;
            }
            self.arena.set(node, copy);
        }
    }
}

/// A list with a merge rule and no list type is merged by that rule when applied, too.
fn implied(patch: Option<&PatchRule>, item: &Kind) -> ListType {
    match patch {
        Some(PatchRule { merge: true, merge_key: Some(key), .. }) => ListType::Map(vec![key.clone()]),
        Some(PatchRule { merge: true, .. }) if !matches!(item, Kind::Struct(_)) => ListType::Set,
        _ => ListType::Atomic,
    }
}
