//! What is asked of whoever renders: environment, files, variables, services, time.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Param::{Any, Text};
use super::{Args, Function, Result, function};
use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::need::{Answer, Need, Variable, VariableMeta};
use crate::time::Time;
use crate::value::{Map, Of, Record, Value};

pub(super) const TABLE: &[Function] = &[
    function(
        "env",
        &[Text],
        "a variable of the task's environment; empty if there is none",
        |cx, args| {
            let found = env(cx, args)?;
            cx.text(found.unwrap_or_default())
        },
    ),
    function(
        "envOrDefault",
        &[Text, Text],
        "a variable of the environment, or the second text if there is none",
        |cx, args| match env(cx, args)? {
            Some(found) => cx.text(found),
            None => Ok(Value::Text(args.text(1)?.clone())),
        },
    ),
    function(
        "mustEnv",
        &[Text],
        "a variable of the environment that must not be empty",
        must_env,
    ),
    function(
        "file",
        &[Text],
        "the content of a file inside of the task's directory",
        file,
    ),
    function(
        "nomadVar",
        &[Text],
        "the items of a Nomad variable, which is waited for; also `.Keys`, `.Values`, `.Tuples`, `.ItemsMap`, `.Metadata` and `.Parent` of them",
        nomad_var,
    ),
    function(
        "nomadVarExists",
        &[Text],
        "whether there is a Nomad variable",
        |cx, args| {
            let answer = cx.ask(Need::Variable(args.str(0)?.into()))?;
            Ok(Value::Bool(matches!(answer, Some(Answer::Variable(_)))))
        },
    ),
    function(
        "nomadVarList",
        &[],
        "the Nomad variables below a prefix, each of which is shown as its path",
        |cx, args| variables(cx, args, false),
    )
    .and_up_to(1, Text),
    function(
        "nomadVarListSafe",
        &[],
        "as nomadVarList, but waited for until there is one",
        |cx, args| variables(cx, args, true),
    )
    .and_up_to(1, Text),
    function(
        "nomadService",
        &[Any],
        "the instances of a Nomad service; `nomadService 2 KEY NAME` chooses two of them by a key",
        nomad_service,
    )
    .and_up_to(2, Any),
    function(
        "nomadServices",
        &[],
        "the names and tags of all Nomad services",
        nomad_services,
    ),
    function(
        "timestamp",
        &[],
        "the time, UTC, as RFC 3339, by a layout of Go's, or by `unix` in seconds",
        timestamp,
    )
    .and_up_to(1, Text),
];

/// A question whose answer is of another sort.
fn odd(need: &Need) -> Fault {
    Fault::failed(format!("the answer for {need} has the wrong type"))
}

fn env(cx: &mut Cx<'_>, args: Args<'_>) -> Result<Option<Vec<u8>>> {
    let need = Need::Env(args.str(0)?.into());
    match cx.ask(need.clone())? {
        Some(Answer::Text(text)) => Ok(Some(text)),
        Some(Answer::Absent) | None => Ok(None),
        Some(_) => Err(odd(&need)),
    }
}

fn must_env(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    match env(cx, args)? {
        Some(found) if !found.is_empty() => cx.text(found),
        _ => {
            let name = args.str(0)?;
            Err(Fault::failed(format!(
                "{name} is not set in the environment, or is empty"
            )))
        }
    }
}

fn file(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let need = Need::File(args.str(0)?.into());
    match cx.ask(need.clone())? {
        Some(Answer::Text(text)) => cx.text(text),
        Some(Answer::Absent) => {
            cx.wait_for(need);
            Ok(Value::text(""))
        }
        None => Ok(Value::text("")),
        Some(_) => Err(odd(&need)),
    }
}

fn nomad_var(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let need = Need::Variable(args.str(0)?.into());
    let variable = match cx.ask(need.clone())? {
        Some(Answer::Variable(variable)) => variable,
        Some(Answer::Absent) => {
            cx.wait_for(need);
            Variable::default()
        }
        None => Variable::default(),
        Some(_) => return Err(odd(&need)),
    };
    let sizes = variable
        .items
        .iter()
        .map(|(key, value)| key.len() + value.len() + 512);
    cx.grow(sizes.sum())?;
    let (items, texts) = Record::items(&variable);
    cx.keep_too(&texts);
    Ok(Value::Map(cx.keep(items)?))
}

fn variables(cx: &mut Cx<'_>, args: Args<'_>, some: bool) -> Result {
    let prefix = if args.len() == 0 {
        String::new()
    } else {
        args.str(0)?.into()
    };
    let need = Need::Variables(prefix);
    let found: Vec<VariableMeta> = match cx.ask(need.clone())? {
        Some(Answer::Variables(found)) => found,
        Some(Answer::Absent) | None => Vec::new(),
        Some(_) => return Err(odd(&need)),
    };
    if some && found.is_empty() {
        cx.wait_for(need);
    }
    let record = |meta: &VariableMeta| Value::Record(Rc::new(Record::meta(meta)));
    cx.grow(found.len().saturating_mul(1024))?;
    cx.list(found.iter().map(record).collect(), Of::Records)
}

fn nomad_service(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let need = match args.len() {
        1 => Need::Service(args.str(0)?.into()),
        3 => Need::ServiceChoice {
            name: args.str(2)?.into(),
            count: u64::try_from(args.int(0)?)
                .map_err(|_| Fault::failed("the number of instances is below zero"))?,
            key: args.str(1)?.into(),
        },
        _ => {
            return Err(Fault::failed(
                "it takes a name, or a number, a key and a name",
            ));
        }
    };
    let found = match cx.ask(need.clone())? {
        Some(Answer::Instances(found)) => found,
        Some(Answer::Absent) | None => Vec::new(),
        Some(_) => return Err(odd(&need)),
    };
    cx.grow(found.len().saturating_mul(1024))?;
    let record = |instance| Value::Record(Rc::new(Record::instance(instance)));
    cx.list(found.iter().map(record).collect(), Of::Records)
}

fn nomad_services(cx: &mut Cx<'_>, _: Args<'_>) -> Result {
    let found = match cx.ask(Need::Services)? {
        Some(Answer::Services(found)) => found,
        Some(Answer::Absent) | None => Vec::new(),
        Some(_) => return Err(odd(&Need::Services)),
    };
    cx.grow(found.len().saturating_mul(512))?;
    let record = |service| Value::Record(Rc::new(Record::service(service)));
    cx.list(found.iter().map(record).collect(), Of::Records)
}

fn timestamp(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let nanos = match cx.ask(Need::Time)? {
        Some(Answer::Time(nanos)) => nanos,
        None => 0,
        Some(_) => return Err(odd(&Need::Time)),
    };
    // Years beyond four digits are a mistake of the answerer's.
    let time =
        Time::from_nanos(nanos.clamp(-62_135_596_800_000_000_000, 253_402_300_799_000_000_000));
    let shown = match args.len() {
        0 => time.rfc3339(),
        _ => match args.str(0)?.as_ref() {
            "unix" => time.unix().to_string(),
            layout => time.format(layout),
        },
    };
    cx.text(shown)
}

/// Things by each of their tags.
pub(super) fn by_tag(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut tagged: BTreeMap<crate::value::Text, Vec<Value>> = BTreeMap::new();
    for item in args.items(0)? {
        let Value::Record(record) = item else {
            return Err(Fault::failed(
                "it takes what nomadService or nomadServices gives",
            ));
        };
        let Some(Value::List(tags)) = record.field(b"Tags") else {
            continue;
        };
        cx.spend(1)?;
        for tag in &tags.items {
            if let Value::Text(tag) = tag {
                tagged.entry(tag.clone()).or_default().push(item.clone());
            }
        }
    }
    let mut entries = BTreeMap::new();
    for (tag, items) in tagged {
        entries.insert(tag, cx.list(items, Of::Records)?);
    }
    Ok(Value::Map(cx.keep(Map::new(entries, Of::Any))?))
}
