//! The kinds of mistakes that make a placement misconfigured.
//!
//! Owns the list of them: what compiling can complain about is here by name, so that whoever must show something for each
//! kind, as tests do, cannot forget one.

/// Lists the kinds once, for the type and for [`Mistake::ALL`].
macro_rules! mistakes {
    ($($(#[$about:meta])+ $name:ident,)+) => {
        /// A kind of mistake in a Placement that cannot work.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mistake {
            $($(#[$about])+ $name,)+
        }

        impl Mistake {
            /// Every kind there is.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }
    };
}

mistakes! {
    /// A label selector of a predicate.
    PredicateLabels,
    /// A claim selector of a predicate.
    PredicateClaims,
    /// An expression that does not compile, or gives no condition.
    PredicateExpression,
    /// Expressions that cost too much across the fleet: found not when compiled, but when clusters are asked.
    PredicateCost,
    /// A toleration of any key that asks for a value.
    TolerationKey,
    /// A toleration of any value that has one.
    TolerationValue,
    /// More spread constraints than there may be.
    SpreadConstraints,
    /// A spread that allows less than a difference of one.
    SpreadSkew,
    /// An unknown word for what to do where a spread cannot be had.
    SpreadAction,
    /// Something else than a label or a claim to tell topologies apart.
    TopologyKeyType,
    /// No name of the label or claim that tells topologies apart.
    TopologyKey,
    /// An unknown mode of a policy.
    PolicyMode,
    /// A weight out of range.
    Weight,
    /// A prioritizer without a name.
    ScoreCoordinate,
    /// A built-in prioritizer that there is not.
    BuiltIn,
    /// An add-on's score without the add-on.
    AddOn,
    /// A prioritizer that is neither built in nor an add-on's.
    ScoreType,
    /// A group size that is neither a number nor a share.
    GroupSize,
    /// A label selector of a group.
    GroupLabels,
    /// A claim selector of a group.
    GroupClaims,
    /// A negative number of clusters.
    NumberOfClusters,
    /// An unknown order.
    SortBy,
    /// An unknown detail of decisions.
    Details,
    /// A name too long for a label.
    Name,
}

impl Mistake {
    /// The stage that upstream would name; empty for policies and groups.
    pub const fn plugin(self) -> &'static str {
        match self {
            Self::PredicateLabels
            | Self::PredicateClaims
            | Self::PredicateExpression
            | Self::PredicateCost => "Predicate",
            Self::TolerationKey | Self::TolerationValue => "TaintToleration",
            _ => "",
        }
    }
}
