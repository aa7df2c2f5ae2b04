//! References: names, attributes, indexes, splats.

use hcl_edit::expr::{Expression, Traversal, TraversalOperator};
use hcl_edit::{Decorated, Span};

use super::super::error::did_you_mean;
use super::super::source::At;
use super::convert;
use super::scope::Scope;
use super::value::Val;
use super::{Evaluator, Fault};

type Step = Decorated<TraversalOperator>;

/// First names of references that the node resolves.
const RUNTIME_ROOTS: [&str; 6] = ["attr", "meta", "node", "env", "device", "secret"];

impl Evaluator<'_> {
    /// A name alone.
    pub(crate) fn variable(&self, name: &str, at: &At, scope: &Scope) -> Result<Val, Fault> {
        if let Some(val) = scope.get(name) {
            return Ok(val.clone());
        }
        if matches!(name, "var" | "local") {
            let fault = self.fault(at, format!("\"{name}\" alone is no value"));
            return Err(fault.help(format!("Name one of its values, as in {name}.example.")));
        }
        self.runtime(name, at)
    }

    /// A reference to a name with steps after it.
    pub(crate) fn traversal(
        &self,
        traversal: &Traversal,
        at: &At,
        scope: &Scope,
    ) -> Result<Val, Fault> {
        let steps = traversal.operators.as_slice();
        let Expression::Variable(root) = &traversal.expr else {
            let val = self.eval(&traversal.expr, scope)?;
            return self.steps(val, steps, at, scope);
        };
        let root = root.as_str();
        if let Some(val) = scope.get(root) {
            return self.steps(val.clone(), steps, at, scope);
        }
        if !matches!(root, "var" | "local") {
            if let Some(bad) = steps.iter().find(|step| !is_static(step.value())) {
                let at = bad.span().or_else(|| at.clone());
                let message = format!("a run-time reference to \"{root}\" cannot be computed");
                let fault = self.fault(&at, message);
                return Err(fault.help("Write names, numbers or quoted texts in it."));
            }
            return self.runtime(root, at);
        }
        self.global(root, steps, at, scope)
    }

    /// `var.<name>` and `local.<name>`.
    fn global(&self, root: &str, steps: &[Step], at: &At, scope: &Scope) -> Result<Val, Fault> {
        if let Some(refused) = self.globals.refused {
            return Err(self.fault(at, refused));
        }
        let (known, declare) = match root {
            "var" => (&self.globals.vars, "variable \"{}\" { … }"),
            _ => (&self.globals.locals, "locals { {} = … }"),
        };
        let Some((first, rest)) = steps.split_first() else {
            return self.variable(root, at, scope);
        };
        let name = match first.value() {
            TraversalOperator::GetAttr(name) => name.as_str().to_owned(),
            TraversalOperator::Index(index) => self.index_text(index, scope)?,
            _ => return Err(self.fault(at, format!("a name is needed after \"{root}.\""))),
        };
        let Some(val) = known.get(&name) else {
            let fault = self.fault(at, format!("there is no {root}.{name}"));
            let near = did_you_mean(&name, known.keys().map(String::as_str));
            let declare = || format!("Declare it: {}", declare.replace("{}", &name));
            return Err(fault.help(near.unwrap_or_else(declare)));
        };
        self.steps(val.clone(), rest, at, scope)
    }

    /// Text that the node replaces, put back as it was written.
    fn runtime(&self, root: &str, at: &At) -> Result<Val, Fault> {
        let written = at.as_ref().map_or(root, |range| self.source.slice(range));
        self.spend(at, written.len())?;
        let known = RUNTIME_ROOTS.contains(&root) || root.starts_with("NOMAD_");
        let bare = at
            .as_ref()
            .is_some_and(|range| !self.is_in_template(range.start));
        if bare && !known && written == root {
            let issue = self.fault(
                at,
                format!("\"{root}\" is taken as the text \"${{{root}}}\""),
            );
            self.warn(issue.help(format!(
                "If it is meant as text, write \"{root}\" in quotes."
            )));
        }
        Ok(Val::maybe_runtime(format!("${{{written}}}"), true))
    }

    /// Whether the text before a reference opens a template, as `"${` does.
    fn is_in_template(&self, start: usize) -> bool {
        let before = self.source.text().get(..start).unwrap_or("");
        let before = before.trim_end_matches([' ', '\t', '~']);
        before.ends_with("${") || before.ends_with("%{")
    }

    fn steps(&self, val: Val, steps: &[Step], at: &At, scope: &Scope) -> Result<Val, Fault> {
        let mut val = val;
        for (number, step) in steps.iter().enumerate() {
            self.spend(at, 1)?;
            let rest = steps.get(number + 1..).unwrap_or(&[]);
            match step.value() {
                TraversalOperator::GetAttr(name) => {
                    val = self.entry(&val, name.as_str(), at)?;
                }
                TraversalOperator::LegacyIndex(index) => {
                    let index = i64::try_from(*index.value()).unwrap_or(i64::MAX);
                    val = self.item(&val, &Val::int(index), at)?;
                }
                TraversalOperator::Index(index) => {
                    let key = self.eval(index, scope)?;
                    self.known(&index.span(), &key, "an index")?;
                    val = self.item(&val, &key, at)?;
                }
                TraversalOperator::FullSplat(_) => return self.splat(val, rest, &[], at, scope),
                TraversalOperator::AttrSplat(_) => {
                    let is_attr =
                        |step: &Step| matches!(step.value(), TraversalOperator::GetAttr(_));
                    let end = rest.iter().position(|step| !is_attr(step));
                    let (each, after) = rest.split_at(end.unwrap_or(rest.len()));
                    return self.splat(val, each, after, at, scope);
                }
            }
        }
        Ok(val)
    }

    /// The steps `each` on each item, then the steps `after` on the list of the results.
    fn splat(
        &self,
        val: Val,
        each: &[Step],
        after: &[Step],
        at: &At,
        scope: &Scope,
    ) -> Result<Val, Fault> {
        let items = match val {
            Val::Null => Vec::new(),
            Val::List(list) => list.items.to_vec(),
            other => vec![other],
        };
        let items: Result<Vec<Val>, Fault> = items
            .into_iter()
            .map(|item| self.steps(item, each, at, scope))
            .collect();
        let list = self.list(at, items?)?;
        self.steps(list, after, at, scope)
    }

    fn entry(&self, val: &Val, name: &str, at: &At) -> Result<Val, Fault> {
        let Val::Map(map) = val else {
            self.known(at, val, &format!("\".{name}\""))?;
            let kind = val.kind();
            return Err(self.fault(at, format!("{kind} has no attribute \"{name}\"")));
        };
        map.entries.get(name).cloned().ok_or_else(|| {
            let near = did_you_mean(name, map.entries.keys().map(String::as_str));
            let fault = self.fault(at, format!("the map has no \"{name}\""));
            fault.maybe_help(near)
        })
    }

    fn item(&self, val: &Val, key: &Val, at: &At) -> Result<Val, Fault> {
        let Val::List(list) = val else {
            let (name, _) = convert::to_text(key)
                .map_err(|why| self.fault(at, format!("as an index {why}")))?;
            return self.entry(val, &name, at);
        };
        let index =
            convert::int_of(key).map_err(|why| self.fault(at, format!("as an index {why}")))?;
        let item = usize::try_from(index)
            .ok()
            .and_then(|index| list.items.get(index));
        item.cloned().ok_or_else(|| {
            let len = list.items.len();
            self.fault(at, format!("there is no item {index} in a list of {len}"))
        })
    }

    fn index_text(&self, index: &Expression, scope: &Scope) -> Result<String, Fault> {
        let key = self.eval(index, scope)?;
        self.known(&index.span(), &key, "an index")?;
        let text = convert::to_text(&key);
        text.map(|(text, _)| text)
            .map_err(|why| self.fault(&index.span(), format!("as an index {why}")))
    }
}

/// Whether a step is the same text before and after evaluation.
fn is_static(step: &TraversalOperator) -> bool {
    match step {
        TraversalOperator::GetAttr(_) | TraversalOperator::LegacyIndex(_) => true,
        TraversalOperator::Index(index) => index.is_str() || index.is_number(),
        TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_) => false,
    }
}
