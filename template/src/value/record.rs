//! What has named fields: variables and services.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{List, Map, Of, Text, UintType, Value};
use crate::need::{Instance, Service, Variable, VariableMeta};

/// Fields in their order.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) type_name: &'static str,
    pub(crate) fields: Vec<(&'static str, Value)>,
    /// What is seen where it is shown.
    pub(crate) shown: Shown,
}

/// How a record is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// All its fields.
    Fields,
    /// As a text, but with its fields as JSON.
    Text(Text),
    /// As a text, and used as one.
    Item(Text),
    /// As a text, and as a number in JSON.
    Time(Text, i64),
}

impl Record {
    pub(crate) fn field(&self, name: &[u8]) -> Option<&Value> {
        let mut fields = self.fields.iter();
        fields.find_map(|(known, value)| (known.as_bytes() == name).then_some(value))
    }

    fn plain(type_name: &'static str, fields: Vec<(&'static str, Value)>) -> Self {
        Self {
            type_name,
            fields,
            shown: Shown::Fields,
        }
    }

    /// An instance of a service.
    pub(crate) fn instance(of: &Instance) -> Self {
        let fields = vec![
            ("ID", Value::text(&of.id)),
            ("Name", Value::text(&of.name)),
            ("Node", Value::text(&of.node)),
            ("Address", Value::text(&of.address)),
            ("Port", Value::int(of.port)),
            ("Datacenter", Value::text(&of.datacenter)),
            ("Tags", tags(&of.tags)),
            ("JobID", Value::text(&of.job_id)),
            ("AllocID", Value::text(&of.alloc_id)),
        ];
        Self::plain("NomadService", fields)
    }

    /// The name of a service.
    pub(crate) fn service(of: &Service) -> Self {
        let fields = vec![("Name", Value::text(&of.name)), ("Tags", tags(&of.tags))];
        Self::plain("NomadServicesSnippet", fields)
    }

    /// What is known of a variable without its items.
    pub(crate) fn meta(of: &VariableMeta) -> Self {
        Self {
            type_name: "NomadVarMeta",
            fields: meta_fields(of),
            shown: Shown::Text(of.path.as_bytes().into()),
        }
    }

    /// A whole variable: `.Items` are texts.
    fn variable(of: &Variable, items: Rc<Map>) -> Self {
        let mut fields = meta_fields(&of.meta);
        fields.push(("Items", Value::Map(items)));
        Self::plain("NomadVariable", fields)
    }

    /// The items of a variable, each of which knows the variable, and the plain map of them.
    pub(crate) fn items(of: &Variable) -> (Map, Rc<Map>) {
        let texts = (of.items.iter())
            .map(|(key, value)| (Text::from(key.as_bytes()), Value::text(value)))
            .collect();
        let texts = Rc::new(Map::new(texts, Of::Texts));
        let whole = Rc::new(Self::variable(of, texts.clone()));
        let mut items = BTreeMap::new();
        for (key, value) in &of.items {
            let mut item = Self::item(key, value);
            item.fields.push(("Parent", Value::Record(whole.clone())));
            let meta = Value::Record(Rc::new(Self::meta(&of.meta)));
            item.fields.push(("Metadata", meta));
            items.insert(key.as_bytes().into(), Value::Record(Rc::new(item)));
        }
        (Map::items_of(whole, items), texts)
    }

    /// An item of a variable, without the variable.
    pub(crate) fn item(key: &str, value: &str) -> Self {
        Self {
            type_name: "NomadVarItem",
            fields: vec![("Key", Value::text(key)), ("Value", Value::text(value))],
            shown: Shown::Item(value.as_bytes().into()),
        }
    }

    /// A key and a value.
    pub(crate) fn pair(key: Text, value: Text) -> Self {
        let fields = vec![("K", Value::Text(key)), ("V", Value::Text(value))];
        Self::plain("struct", fields)
    }

    /// The metadata of a whole variable.
    pub(crate) fn metadata(&self) -> Self {
        let known = |(name, _): &&(&str, Value)| *name != "Items";
        let path = match self.field(b"Path") {
            Some(Value::Text(path)) => path.clone(),
            _ => Text::default(),
        };
        Self {
            type_name: "NomadVarMeta",
            fields: self.fields.iter().filter(known).cloned().collect(),
            shown: Shown::Text(path),
        }
    }
}

fn meta_fields(of: &VariableMeta) -> Vec<(&'static str, Value)> {
    vec![
        ("Namespace", Value::text(&of.namespace)),
        ("Path", Value::text(&of.path)),
        (
            "CreateIndex",
            Value::Uint(of.create_index, UintType::Uint64),
        ),
        (
            "ModifyIndex",
            Value::Uint(of.modify_index, UintType::Uint64),
        ),
        ("CreateTime", time(of.create_time)),
        ("ModifyTime", time(of.modify_time)),
    ]
}

fn time(nanos: i64) -> Value {
    let shown = crate::time::Time::from_nanos(nanos.into()).to_string();
    Value::Record(Rc::new(Record {
        type_name: "nanoTime",
        fields: Vec::new(),
        shown: Shown::Time(shown.into_bytes().into(), nanos),
    }))
}

fn tags(tags: &[String]) -> Value {
    Value::List(Rc::new(List {
        items: tags.iter().map(Value::text).collect(),
        of: Of::Texts,
        depth: 1,
    }))
}
