//! Locals: named values of a job file, which may refer to variables and to each other.

use std::collections::{BTreeMap, BTreeSet};

use hcl_edit::Span;
use hcl_edit::expr::{Expression, Traversal, TraversalOperator};
use hcl_edit::structure::{Body, Structure};
use hcl_edit::visit::{Visit, visit_traversal};

use super::Session;
use super::error::Issues;
use super::eval::Globals;
use super::eval::scope::Scope;
use super::source::At;

/// One local: where it stands, its value, which other locals it needs.
struct Local<'b> {
    at: At,
    expr: &'b Expression,
    needs: BTreeSet<String>,
}

/// Evaluates all locals of a file into `globals`, each after those that it needs.
pub(super) fn read(session: &Session<'_>, body: &Body, globals: &mut Globals, issues: &mut Issues) {
    let locals = collect(session, body, globals, issues);
    let order = match in_order(&locals) {
        Ok(order) => order,
        Err(circle) => {
            let first = circle.first().and_then(|name| locals.get(*name));
            let at = first.and_then(|local| local.at.clone());
            let names: Vec<String> = circle.iter().map(|name| format!("local.{name}")).collect();
            let message = format!("these locals need each other: {}", names.join(" → "));
            let issue = session.evaluator(globals).fault(&at, message);
            issues.push(issue.help("Write the value of one of them without the others."));
            return;
        }
    };
    for name in order {
        let Some(local) = locals.get(name) else {
            continue;
        };
        match session
            .evaluator(globals)
            .eval(local.expr, &Scope::default())
        {
            Ok(val) => {
                globals.locals.insert(name.to_owned(), val);
            }
            Err(fault) => {
                // Whatever needs this one would only repeat the mistake.
                issues.push(fault);
                return;
            }
        }
    }
}

fn collect<'b>(
    session: &Session<'_>,
    body: &'b Body,
    globals: &Globals,
    issues: &mut Issues,
) -> BTreeMap<String, Local<'b>> {
    let on = session.evaluator(globals);
    let mut locals = BTreeMap::new();
    for block in body
        .blocks()
        .filter(|block| block.ident.as_str() == "locals")
    {
        for structure in &block.body {
            let Structure::Attribute(attribute) = structure else {
                issues.push(on.fault(&structure.span(), "a locals block holds no blocks"));
                continue;
            };
            let mut finder = Finder::default();
            finder.visit_expr(&attribute.value);
            let local = Local {
                at: attribute.key.span(),
                expr: &attribute.value,
                needs: finder.found,
            };
            let name = attribute.key.as_str();
            if locals.insert(name.to_owned(), local).is_some() {
                let message = format!("local.{name} is written twice");
                issues.push(on.fault(&attribute.key.span(), message));
            }
        }
    }
    locals
}

/// Finds `local.<name>` in expressions.
#[derive(Default)]
struct Finder {
    found: BTreeSet<String>,
}

impl Visit for Finder {
    fn visit_traversal(&mut self, node: &Traversal) {
        if let (Expression::Variable(root), Some(first)) = (&node.expr, node.operators.first())
            && root.as_str() == "local"
        {
            match first.value() {
                TraversalOperator::GetAttr(name) => {
                    self.found.insert(name.as_str().to_owned());
                }
                TraversalOperator::Index(Expression::String(name)) => {
                    self.found.insert(name.value().clone());
                }
                _ => {}
            }
        }
        visit_traversal(self, node);
    }
}

/// How far the search is with a local.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Entered,
    Done,
}

/// The names so that each comes after those that it needs, or a circle. A chain may be as long as
/// the file, so this walks with a stack of its own.
fn in_order<'l>(locals: &'l BTreeMap<String, Local<'_>>) -> Result<Vec<&'l str>, Vec<&'l str>> {
    let mut marks: BTreeMap<&str, Mark> = BTreeMap::new();
    let mut order = Vec::new();
    for start in locals.keys() {
        if marks.contains_key(start.as_str()) {
            continue;
        }
        marks.insert(start, Mark::Entered);
        let needs = |name: &str| locals.get(name).map(|local| local.needs.iter());
        let mut stack = vec![(start.as_str(), needs(start))];
        while let Some((name, rest)) = stack.last_mut() {
            let Some(next) = rest.as_mut().and_then(Iterator::next) else {
                marks.insert(name, Mark::Done);
                order.push(*name);
                stack.pop();
                continue;
            };
            match marks.get(next.as_str()) {
                Some(Mark::Done) => {}
                Some(Mark::Entered) => {
                    let path = stack.iter().map(|(name, _)| *name);
                    let mut circle: Vec<&str> = path.skip_while(|name| name != next).collect();
                    circle.push(next);
                    return Err(circle);
                }
                // A name that is no local is reported where it is used.
                None if !locals.contains_key(next) => {}
                None => {
                    marks.insert(next, Mark::Entered);
                    stack.push((next, needs(next)));
                }
            }
        }
    }
    Ok(order)
}
