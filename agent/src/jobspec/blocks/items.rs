//! The attributes and blocks of a body, with `dynamic` blocks written out.

use std::collections::BTreeMap;

use hcl_edit::Span;
use hcl_edit::expr::Expression;
use hcl_edit::structure::{Block, BlockLabel, Body, Structure};

use super::super::error::Issues;
use super::super::eval::scope::Scope;
use super::super::eval::value::Val;
use super::super::eval::{Evaluator, Fault, convert};
use super::super::source::At;

/// One attribute or block.
pub(super) struct Item<'b> {
    pub(super) name: String,
    pub(super) at: At,
    pub(super) content: Content<'b>,
    /// The names that `dynamic` blocks around it bring.
    pub(super) scope: Scope,
}

/// What an item is.
pub(super) enum Content<'b> {
    Attr(&'b Expression),
    Block(Vec<String>, &'b Body),
}

/// All items of a body in their order; mistakes in `dynamic` blocks go to `faults`.
pub(super) fn items<'b>(
    on: &Evaluator<'_>,
    body: &'b Body,
    scope: &Scope,
    faults: &mut Issues,
) -> Vec<Item<'b>> {
    let mut items = Vec::new();
    for structure in body {
        match structure {
            Structure::Attribute(attribute) => items.push(Item {
                name: attribute.key.as_str().to_owned(),
                at: attribute.key.span().or_else(|| attribute.value.span()),
                content: Content::Attr(&attribute.value),
                scope: scope.clone(),
            }),
            Structure::Block(block) if block.ident.as_str() == "dynamic" => {
                if let Err(fault) = dynamic(on, block, scope, &mut items) {
                    faults.push(fault);
                }
            }
            Structure::Block(block) => items.push(Item {
                name: block.ident.as_str().to_owned(),
                at: block.ident.span(),
                content: Content::Block(labels(block), &block.body),
                scope: scope.clone(),
            }),
        }
    }
    items
}

pub(crate) fn labels(block: &Block) -> Vec<String> {
    let text = |label: &BlockLabel| label.as_str().to_owned();
    block.labels.iter().map(text).collect()
}

/// Writes a `dynamic` block out: one block for each item of `for_each`.
fn dynamic<'b>(
    on: &Evaluator<'_>,
    block: &'b Block,
    scope: &Scope,
    items: &mut Vec<Item<'b>>,
) -> Result<(), Fault> {
    let at = block.ident.span();
    let names = labels(block);
    let [name] = names.as_slice() else {
        let fault = on.fault(&at, "a dynamic block needs one label");
        return Err(fault.help("Write the name of the blocks to make, as in dynamic \"port\"."));
    };
    let parts = parts_of(on, block, &at)?;
    let iterator = match parts.iterator {
        Some(Expression::Variable(name)) => name.as_str(),
        Some(other) => return Err(on.fault(&other.span(), "the iterator must be a name")),
        None => name,
    };
    for (key, value) in on.pairs(parts.for_each, scope, "for_each")? {
        on.spend(&at, 1)?;
        let pair = BTreeMap::from([("key".to_owned(), key), ("value".to_owned(), value)]);
        let inner = scope.with(iterator, on.map(&at, pair)?);
        let labels = match parts.labels {
            Some(labels) => label_texts(on, labels, &inner)?,
            None => Vec::new(),
        };
        items.push(Item {
            name: name.clone(),
            at: at.clone(),
            content: Content::Block(labels, parts.content),
            scope: inner,
        });
    }
    Ok(())
}

/// The parts of a `dynamic` block.
struct Parts<'b> {
    for_each: &'b Expression,
    iterator: Option<&'b Expression>,
    labels: Option<&'b Expression>,
    content: &'b Body,
}

fn parts_of<'b>(on: &Evaluator<'_>, block: &'b Block, at: &At) -> Result<Parts<'b>, Fault> {
    let (mut for_each, mut iterator, mut labels, mut content) = (None, None, None, None);
    for structure in &block.body {
        match structure {
            Structure::Attribute(attribute) => match attribute.key.as_str() {
                "for_each" => for_each = Some(&attribute.value),
                "iterator" => iterator = Some(&attribute.value),
                "labels" => labels = Some(&attribute.value),
                other => {
                    let message = format!("unknown attribute \"{other}\" in a dynamic block");
                    let fault = on.fault(&attribute.key.span(), message);
                    return Err(fault.help("Known are for_each, iterator, labels and content."));
                }
            },
            Structure::Block(inner) if inner.ident.as_str() == "content" && content.is_none() => {
                content = Some(&inner.body);
            }
            Structure::Block(inner) => {
                let fault = on.fault(&inner.ident.span(), "a dynamic block has one content block");
                return Err(fault.help("Put attributes and blocks into content { … }."));
            }
        }
    }
    let missing = |what: &str| on.fault(at, format!("the dynamic block has no {what}"));
    Ok(Parts {
        for_each: for_each.ok_or_else(|| missing("for_each"))?,
        iterator,
        labels,
        content: content.ok_or_else(|| missing("content"))?,
    })
}

fn label_texts(on: &Evaluator<'_>, expr: &Expression, scope: &Scope) -> Result<Vec<String>, Fault> {
    let val = on.eval(expr, scope)?;
    let at = expr.span();
    on.known(&at, &val, "a label")?;
    let Val::List(list) = &val else {
        return Err(on.fault(&at, format!("labels must be a list, not {}", val.kind())));
    };
    let texts = list.items.iter().map(convert::to_text);
    let texts: Result<Vec<_>, String> = texts.map(|text| text.map(|(text, _)| text)).collect();
    texts.map_err(|why| on.fault(&at, format!("as a label {why}")))
}
