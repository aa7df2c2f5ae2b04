//! The JSON form of HCL: `{"job": {"name": {"group": {…}}}}`.
//!
//! JSON is nearly an expression of HCL, so it is parsed as one: errors then have their places,
//! and texts are templates, as in the native form. [`Block`] tables say which objects are blocks
//! and how many of their levels are labels.

use hcl_edit::expr::{Expression, Object, ObjectKey};
use hcl_edit::structure::{Attribute, Block as HclBlock, BlockLabel, Body};
use hcl_edit::{Decorated, Ident, Span};

use super::blocks::{Block, JOB, Others};
use super::eval::Fault;
use super::source::Source;
use super::syntax;

/// The body of a source in the native form, or in JSON where it begins with a brace. Without a
/// table, everything in JSON is an attribute.
pub(super) fn read_body(source: &Source, table: Option<Level>) -> Result<Body, Fault> {
    if !is_json(source.text()) {
        return hcl_edit::parser::parse_body(source.text())
            .map_err(|error| syntax::issue(source, &error));
    }
    let parsed = hcl_edit::parser::parse_expr(source.text());
    let expr = parsed.map_err(|error| syntax::issue(source, &error))?;
    let Expression::Object(object) = &expr else {
        return Err(source.issue(&expr.span(), "an object is needed"));
    };
    let mut body = Body::new();
    fill(source, &mut body, object, table)?;
    Ok(body)
}

/// Whether a source is JSON.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
        .starts_with('{')
}

/// What stands at one level of a file.
#[derive(Clone, Copy)]
pub(super) enum Level {
    /// The outermost: variables, locals and the job.
    File,
    /// Inside of a block with this table.
    Table(&'static Block),
}

impl Level {
    /// The level within a nested block, and how many labels that has.
    fn within(self, name: &str) -> Option<(Option<Level>, usize)> {
        match (self, name) {
            (Level::File, "job") => Some((Some(Level::Table(&JOB)), 1)),
            (Level::File, "variable") => Some((None, 1)),
            (Level::File, _) => Some((None, 0)),
            (Level::Table(table), name) => {
                let child = table.blocks.iter().find(|child| child.name == name)?;
                Some((
                    Some(Level::Table(child.body)),
                    table.labels_of(name).unwrap_or(0),
                ))
            }
        }
    }
}

fn fill(
    source: &Source,
    body: &mut Body,
    object: &Object,
    level: Option<Level>,
) -> Result<(), Fault> {
    for (key, value) in object {
        let (name, at) = match key {
            ObjectKey::Ident(name) => (name.as_str(), name.span()),
            ObjectKey::Expression(Expression::String(name)) => (name.as_str(), name.span()),
            ObjectKey::Expression(other) => {
                return Err(source.issue(&other.span(), "a key cannot be computed"));
            }
        };
        // Keys that begin so are comments in JSON.
        if name.starts_with("//") {
            continue;
        }
        let ident = match key {
            ObjectKey::Ident(name) => name.clone(),
            ObjectKey::Expression(_) => Decorated::new(Ident::new_sanitized(name)),
        };
        if ident.as_str() != name {
            let issue = source.issue(&at, format!("\"{name}\" is no name"));
            return Err(issue.help("Names are made of letters, digits, _ and -."));
        }
        let dynamic = name == "dynamic";
        match (level, level.and_then(|level| level.within(name))) {
            (Some(level), _) if dynamic => {
                blocks(
                    source,
                    body,
                    &ident,
                    Vec::new(),
                    value.expr(),
                    &|kind| (level.within(kind).and_then(|(inner, _)| inner), true),
                    1,
                )?;
            }
            (Some(_), Some((inner, labels))) if !is_open(inner) => {
                blocks(
                    source,
                    body,
                    &ident,
                    Vec::new(),
                    value.expr(),
                    &|_| (inner, false),
                    labels,
                )?;
            }
            (Some(_), Some((_, 0))) => {
                open_block(source, body, &ident, value.expr())?;
            }
            _ => {
                let attribute = Attribute::new(ident.clone(), value.expr().clone());
                if body.try_push(attribute).is_err() {
                    return Err(source.issue(&ident.span(), format!("\"{name}\" is given twice")));
                }
            }
        }
    }
    Ok(())
}

fn is_open(level: Option<Level>) -> bool {
    matches!(level, Some(Level::Table(table)) if table.others != Others::Refused)
}

/// A block whose content is passed on: all of it are attributes.
fn open_block(
    source: &Source,
    body: &mut Body,
    ident: &Decorated<Ident>,
    value: &Expression,
) -> Result<(), Fault> {
    blocks(
        source,
        body,
        ident,
        Vec::new(),
        value,
        &|_| (None, false),
        0,
    )
}

/// What is within a block of the given first label, and whether it is a `dynamic` one.
type Inner<'f> = &'f dyn Fn(&str) -> (Option<Level>, bool);

/// The blocks of one name: levels of labels first, then an object or a list of them for each.
fn blocks(
    source: &Source,
    body: &mut Body,
    ident: &Decorated<Ident>,
    labels: Vec<String>,
    value: &Expression,
    inner: Inner<'_>,
    missing: usize,
) -> Result<(), Fault> {
    match value {
        Expression::Array(items) => {
            for item in items {
                blocks(source, body, ident, labels.clone(), item, inner, missing)?;
            }
            Ok(())
        }
        Expression::Object(object) if missing > 0 => {
            for (key, value) in object {
                let label = match key {
                    ObjectKey::Ident(label) => label.as_str().to_owned(),
                    ObjectKey::Expression(Expression::String(label)) => label.value().clone(),
                    ObjectKey::Expression(other) => {
                        return Err(source.issue(&other.span(), "a label cannot be computed"));
                    }
                };
                let mut labels = labels.clone();
                labels.push(label);
                blocks(
                    source,
                    body,
                    ident,
                    labels,
                    value.expr(),
                    inner,
                    missing - 1,
                )?;
            }
            Ok(())
        }
        Expression::Object(object) => {
            let mut block = HclBlock::new(ident.clone());
            let (level, dynamic) = inner(labels.first().map_or("", String::as_str));
            block.labels = labels.into_iter().map(BlockLabel::from).collect();
            if dynamic {
                fill_dynamic(source, &mut block.body, object, level)?;
            } else {
                fill(source, &mut block.body, object, level)?;
            }
            body.push(block);
            Ok(())
        }
        Expression::Null(_) => Ok(()),
        other => {
            let name = ident.as_str();
            let issue = source.issue(&other.span(), format!("\"{name}\" is a block"));
            Err(issue.help(format!("Write an object: \"{name}\": {{ … }}.")))
        }
    }
}

/// The parts of a `dynamic` block, of which `content` is a block.
fn fill_dynamic(
    source: &Source,
    body: &mut Body,
    object: &Object,
    level: Option<Level>,
) -> Result<(), Fault> {
    for (key, value) in object {
        let name = match key {
            ObjectKey::Ident(name) => name.as_str(),
            ObjectKey::Expression(Expression::String(name)) => name.as_str(),
            ObjectKey::Expression(_) => "",
        };
        let ident = Decorated::new(Ident::new_sanitized(name));
        match (name, value.expr()) {
            ("content", Expression::Object(content)) => {
                let mut block = HclBlock::new(ident);
                fill(source, &mut block.body, content, level)?;
                body.push(block);
            }
            // A name is text in JSON.
            ("iterator", Expression::String(name)) => {
                let name = Expression::from(Ident::new_sanitized(name.as_str()));
                body.push(Attribute::new(ident, name));
            }
            (_, value) => body.push(Attribute::new(ident, value.clone())),
        }
    }
    Ok(())
}
