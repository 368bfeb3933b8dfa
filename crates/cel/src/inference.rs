//! Finds out types: unification of gradual types with type variables.
//!
//! Owns the bindings of type variables. A failed attempt leaves no trace. Counts its steps, since types
//! that share structure can take exponentially long to walk, and gives up at a limit.

use std::sync::Arc;

use crate::types::Type;

/// Steps of unification and substitution one expression may take.
const STEPS_MAX: u32 = 500_000;

#[derive(Default)]
pub(crate) struct Inference {
    bindings: Vec<Option<Type>>,
    /// Earlier bindings, to return to when an attempt fails.
    trail: Vec<(u32, Option<Type>)>,
    steps: u32,
}

impl Inference {
    /// A type yet to be found out.
    pub(crate) fn fresh(&mut self) -> Type {
        self.bindings.push(None);
        Type::Var(self.bindings.len() as u32 - 1)
    }

    /// Whether the limit was reached; types found since then mean nothing.
    pub(crate) fn exhausted(&self) -> bool {
        self.steps > STEPS_MAX
    }

    fn step(&mut self) -> bool {
        self.steps = self.steps.saturating_add(1);
        !self.exhausted()
    }

    /// Whether values of type `from` may be used where `to` is wanted; binds variables to make it so.
    pub(crate) fn assign(&mut self, to: &Type, from: &Type) -> bool {
        self.attempt(|inference| inference.unify(to, from))
    }

    /// As [`Inference::assign`] for whole argument lists.
    pub(crate) fn assign_all(&mut self, to: &[Type], from: &[Type]) -> bool {
        to.len() == from.len()
            && self.attempt(|inference| to.iter().zip(from).all(|(to, from)| inference.unify(to, from)))
    }

    fn attempt(&mut self, unify: impl FnOnce(&mut Self) -> bool) -> bool {
        let mark = self.trail.len();
        let unified = unify(self);
        if !unified {
            for (var, binding) in self.trail.drain(mark..).rev() {
                self.bindings[var as usize] = binding;
            }
        }
        unified
    }

    fn bind(&mut self, var: u32, to: Type) {
        let old = self.bindings[var as usize].replace(to);
        self.trail.push((var, old));
    }

    fn unify(&mut self, to: &Type, from: &Type) -> bool {
        if !self.step() {
            return false;
        }
        match (to, from) {
            (Type::Var(one), Type::Var(other)) if one == other => true,
            (_, Type::Var(var)) => self.unify_variable(*var, to),
            (Type::Var(var), _) => self.unify_variable(*var, from),
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) | (Type::Type(_), Type::Type(_)) => {
                true
            }
            (Type::List(to), Type::List(from)) | (Type::Optional(to), Type::Optional(from)) => {
                self.unify(to, from)
            }
            (Type::Map(to_key, to_value), Type::Map(from_key, from_value)) => {
                self.unify(to_key, from_key) && self.unify(to_value, from_value)
            }
            (Type::Struct(to), Type::Struct(from)) => to.name == from.name,
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null | Type::Duration | Type::Timestamp | Type::Opaque(_) | Type::Struct(_)
            ),
            _ => to == from,
        }
    }

    fn unify_variable(&mut self, var: u32, other: &Type) -> bool {
        let Some(bound) = self.bindings[var as usize].clone() else {
            if self.occurs(var, other) {
                return matches!(self.resolve(other), Type::Var(same) if same == var);
            }
            self.bind(var, other.clone());
            return true;
        };
        if !self.unify(&bound, other) {
            return false;
        }
        let general = if less_specific(other, &bound) { other.clone() } else { bound };
        if !self.occurs(var, &general) {
            self.bind(var, general);
        }
        true
    }

    /// Follows the bindings of a variable to a type that is not a bound variable.
    fn resolve(&self, ty: &Type) -> Type {
        let mut ty = ty;
        while let Type::Var(var) = ty {
            match &self.bindings[*var as usize] {
                Some(bound) => ty = bound,
                None => break,
            }
        }
        ty.clone()
    }

    /// Whether a variable occurs in a type: binding it to that type would make it infinite.
    fn occurs(&mut self, var: u32, ty: &Type) -> bool {
        if !self.step() {
            return true;
        }
        match ty {
            Type::Var(other) if *other == var => true,
            Type::Var(other) => match self.bindings[*other as usize].clone() {
                Some(bound) => self.occurs(var, &bound),
                None => false,
            },
            Type::List(inner) | Type::Optional(inner) | Type::Type(inner) => self.occurs(var, inner),
            Type::Map(key, value) => self.occurs(var, key) || self.occurs(var, value),
            _ => false,
        }
    }

    /// The type with its variables replaced by what they are bound to. Free variables stay, or become
    /// `Dyn` if `close` is set.
    pub(crate) fn substitute(&mut self, ty: &Type, close: bool) -> Type {
        if !self.step() {
            return Type::Dyn;
        }
        match ty {
            Type::Var(var) => match self.bindings[*var as usize].clone() {
                Some(bound) => self.substitute(&bound, close),
                None if close => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(inner) => Type::list(self.substitute(inner, close)),
            Type::Optional(inner) => Type::optional(self.substitute(inner, close)),
            Type::Type(inner) => Type::of(self.substitute(inner, close)),
            Type::Map(key, value) => Type::map(self.substitute(key, close), self.substitute(value, close)),
            other => other.clone(),
        }
    }

    /// The types of an overload with fresh variables in place of its parameters.
    pub(crate) fn instantiate(&mut self, params: &[Type], result: &Type) -> (Vec<Type>, Type) {
        let mut fresh: Vec<(char, Type)> = Vec::new();
        let params = params.iter().map(|param| self.instantiate_type(param, &mut fresh)).collect();
        let result = self.instantiate_type(result, &mut fresh);
        (params, result)
    }

    fn instantiate_type(&mut self, ty: &Type, fresh: &mut Vec<(char, Type)>) -> Type {
        match ty {
            Type::Param(name) => {
                if let Some((_, var)) = fresh.iter().find(|(known, _)| known == name) {
                    return var.clone();
                }
                let var = self.fresh();
                fresh.push((*name, var.clone()));
                var
            }
            Type::List(inner) => Type::List(Arc::new(self.instantiate_type(inner, fresh))),
            Type::Optional(inner) => Type::optional(self.instantiate_type(inner, fresh)),
            Type::Type(inner) => Type::of(self.instantiate_type(inner, fresh)),
            Type::Map(key, value) => {
                Type::map(self.instantiate_type(key, fresh), self.instantiate_type(value, fresh))
            }
            other => other.clone(),
        }
    }

    /// The more general of two types that agree.
    pub(crate) fn most_general(a: &Type, b: &Type) -> Type {
        if less_specific(a, b) { a.clone() } else { b.clone() }
    }
}

/// Whether `a` says as much as `b` or less.
fn less_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Error | Type::Var(_), _) => true,
        (_, Type::Dyn | Type::Error | Type::Var(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => less_specific(a, b),
        (Type::Map(key, value), Type::Map(other_key, other_value)) => {
            less_specific(key, other_key) && less_specific(value, other_value)
        }
        (Type::Null, other) => matches!(other, Type::Null),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_assignment_leaves_variables_unbound() {
        let mut inference = Inference::default();
        let var = inference.fresh();
        assert!(!inference.assign_all(&[var.clone(), Type::Int], &[Type::String, Type::Bool]));
        assert_eq!(inference.substitute(&var, false), var);
    }

    #[test]
    fn a_variable_is_never_bound_to_a_type_that_contains_it() {
        let mut inference = Inference::default();
        let var = inference.fresh();
        assert!(!inference.assign(&var, &Type::list(var.clone())));
    }

    #[test]
    fn dyn_widens_a_bound_variable() {
        let mut inference = Inference::default();
        let var = inference.fresh();
        assert!(inference.assign(&var, &Type::Int));
        assert!(inference.assign(&var, &Type::Dyn));
        assert_eq!(inference.substitute(&var, true), Type::Dyn);
    }

    #[test]
    fn shared_structure_does_not_make_unification_run_for_ever() {
        let mut inference = Inference::default();
        let mut ty = Type::Int;
        for _ in 0..100 {
            let shared = Arc::new(ty);
            ty = Type::Map(Arc::clone(&shared), shared);
        }
        assert!(!inference.assign(&ty, &ty.clone()) || inference.exhausted());
        assert!(ty.to_string().len() < 4096);
    }
}
