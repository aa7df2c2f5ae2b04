//! Reading a body by its table.

use std::collections::BTreeMap;

use drover_core::model::value::Value;
use hcl_edit::structure::Body;

use super::super::error::{Issues, did_you_mean};
use super::super::eval::scope::Scope;
use super::super::eval::value::Val;
use super::super::eval::{Evaluator, Fault};
use super::super::positions::{Positions, entry, labelled, named, numbered};
use super::super::source::At;
use super::items::{Content, Item, items};
use super::{Block, Child, Fields, Finish, Kind, Others, Shape, values};

/// Reads blocks, and collects what is wrong with them and where they stand.
pub(crate) struct Decoder<'a> {
    pub(crate) on: &'a Evaluator<'a>,
    pub(crate) positions: Positions,
    pub(crate) issues: Issues,
}

/// A block to be read.
pub(crate) struct Context<'b> {
    /// What it is, as messages name it.
    pub(crate) what: String,
    pub(crate) path: String,
    pub(crate) at: At,
    pub(crate) body: &'b Body,
    pub(crate) scope: Scope,
}

/// What was seen of a block so far.
#[derive(Default)]
struct Seen {
    fields: Fields,
    /// Where each singleton stood.
    first: BTreeMap<String, At>,
}

impl Decoder<'_> {
    /// Reads a block by its table.
    pub(crate) fn block(&mut self, table: &'static Block, context: &Context<'_>) -> Fields {
        let mut seen = Seen::default();
        for item in items(self.on, context.body, &context.scope, &mut self.issues) {
            if self.issues.is_full() {
                break;
            }
            if let Err(fault) = self.item(table, context, item, &mut seen) {
                self.issues.push(fault);
            }
        }
        (table.finish)(&mut Finish {
            fields: &mut seen.fields,
            on: self.on,
            at: &context.at,
            issues: &mut self.issues,
        });
        seen.fields
    }

    fn item(
        &mut self,
        table: &'static Block,
        context: &Context<'_>,
        item: Item<'_>,
        seen: &mut Seen,
    ) -> Result<(), Fault> {
        let attr = table.attrs.iter().find(|attr| attr.name == item.name);
        let child = table.blocks.iter().find(|child| child.name == item.name);
        match (&item.content, attr, child) {
            (Content::Attr(expr), Some(attr), _) => {
                self.once(&item, seen)?;
                self.position(named(&context.path, &item.name), &item.at);
                if let Kind::Ignored(why) = attr.kind {
                    self.ignored(&item, why);
                }
                let value = values::read(self.on, attr.name, attr.kind, expr, &item.scope)?;
                if let Some(value) = value {
                    seen.fields.insert(attr.key.to_owned(), value);
                }
                Ok(())
            }
            (Content::Block(labels, body), Some(attr), _)
                if matches!(attr.kind, Kind::Pairs | Kind::TextLists) =>
            {
                self.no_labels(&item, labels)?;
                self.once(&item, seen)?;
                let path = named(&context.path, &item.name);
                self.position(path.clone(), &item.at);
                let value = self.pairs(attr.kind, &path, body, &item.scope);
                seen.fields.insert(attr.key.to_owned(), value);
                Ok(())
            }
            (Content::Block(labels, body), None, Some(child)) => {
                self.child(child, context, &item, labels, body, seen)
            }
            (_, None, None) if table.others != Others::Refused => {
                self.other(table.others, context, item, seen)
            }
            _ => Err(self.unknown(table, context, &item)),
        }
    }

    /// A nested block that the table knows.
    fn child(
        &mut self,
        child: &'static Child,
        context: &Context<'_>,
        item: &Item<'_>,
        labels: &[String],
        body: &Body,
        seen: &mut Seen,
    ) -> Result<(), Fault> {
        let label = match child.shape {
            Shape::Labelled(_) | Shape::ByLabel(_) => Some(self.one_label(item, labels)?),
            _ => {
                self.no_labels(item, labels)?;
                None
            }
        };
        if matches!(child.shape, Shape::One | Shape::OneInList) {
            self.once(item, seen)?;
        }
        let what = match label {
            Some(label) => format!("{} \"{label}\"", item.name),
            None => item.name.clone(),
        };
        let path = self.path_of(child, context, item, label, seen);
        self.position(path.clone(), &item.at);
        let fields = self.block(
            child.body,
            &Context {
                what,
                path,
                at: item.at.clone(),
                body,
                scope: item.scope.clone(),
            },
        );
        if child.key.is_empty() {
            self.ignored(item, "it has no effect any more");
            return Ok(());
        }
        let Some(label) = label else {
            let value = Value::Map(fields);
            if matches!(child.shape, Shape::One) {
                seen.fields.insert(child.key.to_owned(), value);
            } else {
                push(&mut seen.fields, child.key.to_owned(), value);
            }
            return Ok(());
        };
        self.keep_labelled(child, item, label, fields, seen)
    }

    fn path_of(
        &mut self,
        child: &Child,
        context: &Context<'_>,
        item: &Item<'_>,
        label: Option<&str>,
        seen: &Seen,
    ) -> String {
        let list_len = |value: &Value| value.as_list().map_or(0, <[Value]>::len);
        match (label, child.shape) {
            (Some(label), _) if child.key == super::job::OWN_TASKS => {
                let group = labelled(&context.path, "group", label);
                self.position(group.clone(), &item.at);
                labelled(&group, &item.name, label)
            }
            (Some(label), _) => labelled(&context.path, &item.name, label),
            (None, Shape::Many) => {
                let number = seen.fields.get(child.key).map_or(0, list_len);
                numbered(&context.path, &item.name, number)
            }
            (None, _) => named(&context.path, &item.name),
        }
    }

    /// Keeps a block with a label, under the key that its shape names.
    fn keep_labelled(
        &self,
        child: &Child,
        item: &Item<'_>,
        label: &str,
        mut fields: Fields,
        seen: &mut Seen,
    ) -> Result<(), Fault> {
        let key = child.key.to_owned();
        match child.shape {
            Shape::ByLabel(label_key) => {
                fields.insert(label_key.to_owned(), Value::from(label));
                let map = seen.fields.entry(key);
                let map = map.or_insert_with(|| Value::Map(Fields::new()));
                if let Value::Map(map) = map
                    && map.insert(label.to_owned(), Value::Map(fields)).is_some()
                {
                    let name = &item.name;
                    let message = format!("there is another {name} \"{label}\" before this one");
                    return Err(self
                        .on
                        .fault(&item.at, message)
                        .help("Give each its own name."));
                }
            }
            Shape::Labelled(label_key) => {
                fields.insert(label_key.to_owned(), Value::from(label));
                push(&mut seen.fields, key, Value::Map(fields));
            }
            Shape::One | Shape::OneInList | Shape::Many => {}
        }
        Ok(())
    }

    /// Names with texts or lists of texts, written as a block.
    fn pairs(&mut self, kind: Kind, path: &str, body: &Body, scope: &Scope) -> Value {
        let inner = if matches!(kind, Kind::TextLists) {
            Kind::Texts
        } else {
            Kind::Text
        };
        let mut entries = BTreeMap::new();
        for item in items(self.on, body, scope, &mut self.issues) {
            let Content::Attr(expr) = item.content else {
                let fault = self.on.fault(&item.at, "blocks are not allowed here");
                self.issues
                    .push(fault.help("Write names with values: name = \"value\"."));
                continue;
            };
            self.position(entry(path, &item.name), &item.at);
            match values::read(self.on, &item.name, inner, expr, &item.scope) {
                Ok(Some(value)) => {
                    entries.insert(item.name, value);
                }
                Ok(None) => {
                    let message = format!("{}: a string is needed, not null", item.name);
                    self.issues.push(self.on.fault(&item.at, message));
                }
                Err(fault) => self.issues.push(fault),
            }
        }
        Value::Map(entries)
    }

    /// An attribute or block of a body that takes any.
    fn other(
        &mut self,
        others: Others,
        context: &Context<'_>,
        item: Item<'_>,
        seen: &mut Seen,
    ) -> Result<(), Fault> {
        let path = named(&context.path, &item.name);
        self.position(path.clone(), &item.at);
        let (labels, body) = match &item.content {
            Content::Attr(expr) => {
                self.once(&item, seen)?;
                let val = self.on.eval(expr, &item.scope)?;
                self.on.spend(&item.at, val.weight())?;
                if !matches!(val, Val::Null) {
                    seen.fields
                        .insert(key_of(others, &item.name), val.to_model());
                }
                return Ok(());
            }
            Content::Block(labels, body) => (labels, body),
        };
        let table = if others == Others::Free {
            &super::FREE
        } else {
            &super::RENAMED
        };
        let mut fields = self.block(
            table,
            &Context {
                what: item.name.clone(),
                path,
                at: item.at.clone(),
                body,
                scope: item.scope.clone(),
            },
        );
        for label in labels.iter().rev() {
            let inner = match others {
                Others::Free => Value::List(vec![Value::Map(fields)]),
                _ => Value::Map(fields),
            };
            fields = Fields::from([(label.clone(), inner)]);
        }
        let key = key_of(others, &item.name);
        if others == Others::Free {
            self.not_an_attribute(&item, seen)?;
            push(&mut seen.fields, key, Value::Map(fields));
            return Ok(());
        }
        // One block is a map; only a second one shows that it is a list.
        match seen.fields.remove(&key) {
            Some(Value::List(mut list)) => {
                list.push(Value::Map(fields));
                seen.fields.insert(key, Value::List(list));
            }
            Some(first) => {
                seen.fields
                    .insert(key, Value::List(vec![first, Value::Map(fields)]));
            }
            None => {
                seen.fields.insert(key, Value::Map(fields));
            }
        }
        Ok(())
    }

    fn position(&mut self, path: String, at: &At) {
        if let Some(range) = at {
            self.positions
                .insert(path, self.on.source.position(range.start));
        }
    }

    /// Refuses a second singleton.
    fn once(&self, item: &Item<'_>, seen: &mut Seen) -> Result<(), Fault> {
        let Some(first) = seen.first.insert(item.name.clone(), item.at.clone()) else {
            return Ok(());
        };
        let message = format!("only one \"{}\" is allowed", item.name);
        let fault = self.on.fault(&item.at, message);
        let position = first.map(|range| self.on.source.position(range.start));
        let help = position.map(|position| format!("The first one is in line {}.", position.line));
        Err(fault.maybe_help(help))
    }

    fn not_an_attribute(&self, item: &Item<'_>, seen: &Seen) -> Result<(), Fault> {
        if !seen.first.contains_key(&item.name) {
            return Ok(());
        }
        let message = format!("\"{}\" is both an attribute and a block", item.name);
        Err(self
            .on
            .fault(&item.at, message)
            .help("Write it one way only."))
    }

    fn no_labels(&self, item: &Item<'_>, labels: &[String]) -> Result<(), Fault> {
        let Some(label) = labels.first() else {
            return Ok(());
        };
        let fault = self
            .on
            .fault(&item.at, format!("\"{}\" takes no label", item.name));
        Err(fault.help(format!("Leave \"{label}\" out.")))
    }

    fn one_label<'l>(&self, item: &Item<'_>, labels: &'l [String]) -> Result<&'l str, Fault> {
        let [label] = labels else {
            let name = &item.name;
            let fault = self
                .on
                .fault(&item.at, format!("a {name} block needs exactly one label"));
            return Err(fault.help(format!("Name it: {name} \"example\" {{ … }}.")));
        };
        Ok(label)
    }

    fn ignored(&self, item: &Item<'_>, why: &str) {
        let issue = self
            .on
            .fault(&item.at, format!("\"{}\" is ignored: {why}", item.name));
        self.on.warn(issue.help("Leave it out."));
    }

    /// The mistake of a name that the table does not know, or not in this form.
    fn unknown(&self, table: &Block, context: &Context<'_>, item: &Item<'_>) -> Fault {
        let (name, what) = (&item.name, &context.what);
        let attr = table.attrs.iter().any(|attr| attr.name == name);
        let child = table.blocks.iter().any(|child| child.name == name);
        let fault = |message: String| self.on.fault(&item.at, message);
        if attr {
            return fault(format!("\"{name}\" is an attribute in {what}, not a block"))
                .help(format!("Write it with an equals sign: {name} = …."));
        }
        if child {
            return fault(format!("\"{name}\" is a block in {what}, not an attribute"))
                .help(format!("Write it without an equals sign: {name} {{ … }}."));
        }
        let kind = match item.content {
            Content::Attr(_) => "attribute",
            Content::Block(..) => "block",
        };
        let attrs = table.attrs.iter().map(|attr| attr.name);
        let known = attrs.chain(table.blocks.iter().map(|child| child.name));
        let near = did_you_mean(name, known.clone());
        let list = || {
            let mut names: Vec<&str> = known.collect();
            names.sort_unstable();
            format!("Known names are {}.", names.join(", "))
        };
        fault(format!("unknown {kind} \"{name}\" in {what}")).help(near.unwrap_or_else(list))
    }
}

fn push(fields: &mut Fields, key: String, value: Value) {
    let list = fields.entry(key).or_insert_with(|| Value::List(Vec::new()));
    if let Value::List(list) = list {
        list.push(value);
    }
}

fn key_of(others: Others, name: &str) -> String {
    if others == Others::Free {
        return name.to_owned();
    }
    let words = name.split('_').map(|word| {
        let mut chars = word.chars();
        let first = chars.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    });
    words.collect()
}
