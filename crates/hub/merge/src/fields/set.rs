//! A set of field paths: a trie whose nodes stand sorted, so that every operation is one pass over both sides.
//!
//! Invariant: siblings are sorted and unique, and a node that is no member has descendants. The empty path is never a
//! member; nobody owns a whole object.

use super::element::Element;

/// A set of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet<'a> {
    pub(crate) nodes: Vec<Node<'a>>,
}

/// A step in the trie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node<'a> {
    pub(crate) element: Element<'a>,
    /// Whether the path that ends here is in the set.
    pub(crate) member: bool,
    /// The paths that go on from here.
    pub(crate) children: FieldSet<'a>,
}

impl Node<'_> {
    fn is_empty(&self) -> bool {
        !self.member && self.children.nodes.is_empty()
    }
}

impl<'a> FieldSet<'a> {
    /// The set without paths.
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Whether there is no path.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many paths there are.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    /// Adds a path; its parents are not added.
    pub fn insert(&mut self, path: impl IntoIterator<Item = Element<'a>>) {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(element) = path.next() {
            let at = match set.nodes.binary_search_by(|node| node.element.cmp(&element)) {
                Ok(at) => at,
                Err(at) => {
                    set.nodes.insert(at, Node { element, member: false, children: FieldSet::new() });
                    at
                }
            };
            let node = &mut set.nodes[at];
            if path.peek().is_none() {
                node.member = true;
                return;
            }
            set = &mut node.children;
        }
    }

    /// Adds a node that sorts after all others.
    pub(crate) fn push(&mut self, node: Node<'a>) {
        debug_assert!(!node.is_empty(), "a node stands for at least one path");
        debug_assert!(
            self.nodes.last().is_none_or(|last| last.element < node.element),
            "nodes are pushed in their order"
        );
        self.nodes.push(node);
    }

    pub(crate) fn get(&self, element: &Element<'_>) -> Option<&Node<'a>> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        Some(&self.nodes[at])
    }

    /// Whether a path is in the set.
    pub fn contains<'e>(&self, path: impl IntoIterator<Item = &'e Element<'e>>) -> bool {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(element) = path.next() {
            let Some(node) = set.get(element) else { return false };
            if path.peek().is_none() {
                return node.member;
            }
            set = &node.children;
        }
        false
    }

    /// The paths of either.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.nodes.is_empty() {
            return other;
        }
        if other.nodes.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let mut left = self.nodes.into_iter().peekable();
        let mut right = other.nodes.into_iter().peekable();
        loop {
            let found = match (left.peek(), right.peek()) {
                (Some(left), Some(right)) => left.element.cmp(&right.element),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => break,
            };
            match found {
                std::cmp::Ordering::Less => nodes.extend(left.next()),
                std::cmp::Ordering::Greater => nodes.extend(right.next()),
                std::cmp::Ordering::Equal => {
                    if let (Some(left), Some(right)) = (left.next(), right.next()) {
                        nodes.push(Node {
                            element: left.element,
                            member: left.member || right.member,
                            children: left.children.union(right.children),
                        });
                    }
                }
            }
        }
        Self { nodes }
    }

    /// The paths of both.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet<'_>) -> Self {
        let mut nodes = Vec::new();
        let mut others = other.nodes.iter().peekable();
        for node in &self.nodes {
            while others.peek().is_some_and(|other| other.element < node.element) {
                others.next();
            }
            let Some(other) = others.peek().filter(|other| other.element == node.element) else { continue };
            let member = node.member && other.member;
            let children = node.children.intersection(&other.children);
            if member || !children.is_empty() {
                nodes.push(Node { element: node.element.clone(), member, children });
            }
        }
        Self { nodes }
    }

    /// Whether any path is in both.
    pub fn intersects(&self, other: &FieldSet<'_>) -> bool {
        let mut others = other.nodes.iter().peekable();
        self.nodes.iter().any(|node| {
            while others.peek().is_some_and(|other| other.element < node.element) {
                others.next();
            }
            others.peek().is_some_and(|other| {
                other.element == node.element
                    && ((node.member && other.member) || node.children.intersects(&other.children))
            })
        })
    }

    /// Takes the other's paths away. A path below one that is taken away stays.
    #[must_use]
    pub fn difference(mut self, other: &FieldSet<'_>) -> Self {
        self.subtract(other, false);
        self
    }

    /// Takes the other's paths away, and all that is below them.
    #[must_use]
    pub fn recursive_difference(mut self, other: &FieldSet<'_>) -> Self {
        self.subtract(other, true);
        self
    }

    fn subtract(&mut self, other: &FieldSet<'_>, recursive: bool) {
        if other.nodes.is_empty() {
            return;
        }
        let mut others = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while others.peek().is_some_and(|other| other.element < node.element) {
                others.next();
            }
            let Some(other) = others.peek().filter(|other| other.element == node.element) else {
                return true;
            };
            if other.member {
                if recursive {
                    return false;
                }
                node.member = false;
            }
            node.children.subtract(&other.children, recursive);
            !node.is_empty()
        });
    }

    /// Every path, a level's own before those below it, as conflicts are listed.
    pub fn paths(&self) -> Vec<Vec<Element<'a>>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Element<'a>>, paths: &mut Vec<Vec<Element<'a>>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            paths.push(path);
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            prefix.push(node.element.clone());
            node.children.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// The set without anything borrowed.
    pub fn into_owned(self) -> FieldSet<'static> {
        let owned = |node: Node<'a>| Node {
            element: node.element.into_owned(),
            member: node.member,
            children: node.children.into_owned(),
        };
        FieldSet { nodes: self.nodes.into_iter().map(owned).collect() }
    }
}
