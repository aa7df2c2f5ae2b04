//! `drover var`: put, get, list, purge; [`super::init`] has `var init`.

use std::collections::BTreeMap;
use std::io::Read;

use drover_io_real::http_client::encoded;
use hyper::Method;
use serde_json::{Value, json};

use super::args::{VarCommand, VarGetArgs, VarListArgs, VarPurgeArgs, VarPutArgs};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::init;
use super::shape::rendered;
use super::table::{block, table};
use super::var_spec::Format;
use crate::http::dto::{VariableDto, VariableStub};

/// The most bytes that are read of a file or the standard input: more than any variable may have.
const MAX_READ: u64 = 1024 * 1024;

/// Runs one of the commands.
///
/// # Errors
/// What is asked for is not there or not as it was expected, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, command: VarCommand) -> Outcome {
    match command {
        VarCommand::Init(args) => init::variable(cx, &args),
        VarCommand::Put(args) => put(cx, args).await,
        VarCommand::Get(args) => get(cx, args).await,
        VarCommand::List(args) => list(cx, args).await,
        VarCommand::Purge(args) => purge(cx, args).await,
    }
}

/// How an answer is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Out {
    Table,
    Json,
    None,
    Template(String),
    /// Paths alone, of a list.
    Terse,
}

impl Out {
    fn of(name: Option<&str>, json: bool, template: Option<&str>) -> Result<Out, Failure> {
        match (name, template) {
            (_, None) if json => Ok(Out::Json),
            (None | Some("table"), None) => Ok(Out::Table),
            (Some("json"), None) => Ok(Out::Json),
            (Some("none"), None) => Ok(Out::None),
            (None | Some("go-template"), Some(template)) if !json => {
                Ok(Out::Template(template.to_owned()))
            }
            (Some("go-template"), None) => {
                Err(Failure::new("-out=go-template needs -template=TEMPLATE"))
            }
            (_, Some(_)) => Err(Failure::new(
                "-template is for -out=go-template and nothing else",
            )),
            (Some(other), None) => Err(Failure::new(format!(
                "-out={other} is not supported; supported are table, json, none and go-template"
            ))),
        }
    }
}

/// Shows an answer that is not shown as a table.
fn show(cx: &mut Context, out: &Out, answer: &impl serde::Serialize) -> Outcome {
    match out {
        Out::None | Out::Table | Out::Terse => Ok(0),
        Out::Json => cx.print_json(&shape(answer)?),
        Out::Template(template) => {
            cx.screen
                .print_line(&rendered(template, &shape(answer)?)?)?;
            Ok(0)
        }
    }
}

fn path_of(path: &str) -> String {
    // A slash is part of the path here, and needs no escape.
    let parts: Vec<String> = path.trim_matches('/').split('/').map(encoded).collect();
    format!("/v1/var/{}", parts.join("/"))
}

async fn put(cx: &mut Context, args: VarPutArgs) -> Outcome {
    let out = Out::of(args.out.as_deref(), false, args.template.as_deref())?;
    let given = Given::read(&args, std::io::stdin())?;
    let index = args.check_index.unwrap_or(0).to_string();
    let mut query = vec![];
    if !args.force {
        query.push(("cas", index.as_str()));
    }
    if let Some(namespace) = &given.namespace {
        query.push(("namespace", namespace.as_str()));
    }
    let body = json!({ "Path": given.path, "Items": given.items });
    let path = path_of(&given.path);
    let answer: Result<VariableDto, Failure> = cx
        .client
        .change(Method::PUT, &path, &query, Some(&body))
        .await;
    let put = answer.map_err(|failure| conflict(failure, &given.path, args.check_index))?;
    match out {
        Out::None | Out::Json | Out::Template(_) => show(cx, &out, &put),
        Out::Table | Out::Terse => {
            let new = put.stub.create_index == put.stub.modify_index;
            let done = if new { "created" } else { "updated" };
            let path = &put.stub.path;
            let index = put.stub.modify_index;
            let words = format!("Successfully {done} variable \"{path}\"! (check index {index})");
            cx.screen.print_line(&words)?;
            Ok(0)
        }
    }
}

/// The agent's answer holds what is there, which is nobody's business here.
fn conflict(failure: Failure, path: &str, expected: Option<u64>) -> Failure {
    if failure.status != Some(409) {
        return failure;
    }
    let there = failure.message.split_once("\"ModifyIndex\":");
    let there: String = there
        .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect())
        .unwrap_or_default();
    let what = match (expected, there.as_str()) {
        (_, "0") => format!("there is no variable \"{path}\""),
        (None | Some(0), index) => {
            format!("there is a variable \"{path}\" already; its index is {index}")
        }
        (Some(expected), index) => {
            format!("the index of \"{path}\" is {index}, and not {expected}")
        }
    };
    Failure::new(format!(
        "Check-and-Set conflict: {what}.\nRead it, then use -check-index=INDEX, or -force to write it \
         whatever is there."
    ))
}

/// What is to be put.
struct Given {
    path: String,
    namespace: Option<String>,
    items: BTreeMap<String, String>,
}

impl Given {
    /// Items on the command line win over those of a variable that is read.
    fn read(args: &VarPutArgs, stdin: impl Read) -> Result<Given, Failure> {
        let mut stdin = Some(stdin);
        let mut words = core::iter::once(&args.path).chain(&args.items).peekable();
        let path = words.next_if(|word| !is_source(word)).cloned();
        let source = words.next_if(|word| is_source(word));
        let read = match source {
            None => VariableDto::default(),
            Some(source) => {
                let format = Format::of(args.format.as_deref(), source)?;
                format.read(&load(source, &mut stdin)?, source)?
            }
        };
        let mut items = read.items.unwrap_or_default();
        for word in words {
            let Some((key, value)) = word.split_once('=') else {
                let words = format!("\"{word}\" is not an item: expected KEY=VALUE");
                return Err(Failure::new(words));
            };
            let value = match is_source(value) {
                true => load(value, &mut stdin)?,
                false => value.to_owned(),
            };
            items.insert(key.to_owned(), value);
        }
        let path = path.unwrap_or(read.stub.path);
        let path = path.trim_matches('/').to_owned();
        if path.is_empty() {
            return Err(Failure::new("name the path"));
        }
        let namespace = Some(read.stub.namespace).filter(|name| !name.is_empty());
        Ok(Given {
            path,
            namespace,
            items,
        })
    }
}

fn is_source(word: &str) -> bool {
    word == "-" || word.starts_with('@')
}

/// What is in a file, or what the standard input says, which it says once.
fn load(source: &str, stdin: &mut Option<impl Read>) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match source.strip_prefix('@') {
        Some(path) => {
            std::fs::File::open(path).and_then(|file| file.take(MAX_READ).read_to_string(&mut text))
        }
        None => match stdin.take() {
            Some(stdin) => stdin.take(MAX_READ).read_to_string(&mut text),
            None => return Err(Failure::new("the standard input can be read only once")),
        },
    };
    read.map_err(|error| Failure::new(format!("cannot read {source}: {error}")))?;
    Ok(text)
}

async fn get(cx: &mut Context, args: VarGetArgs) -> Outcome {
    let out = Out::of(args.out.as_deref(), args.json, args.template.as_deref())?;
    let answer: Result<VariableDto, Failure> = cx.client.get(&path_of(&args.path), &[]).await;
    let variable = answer.map_err(|failure| match failure.status {
        Some(404) => Failure::new("Variable not found"),
        _ => failure,
    })?;
    if let Some(item) = &args.item {
        let items = variable.items.unwrap_or_default();
        let Some(value) = items.get(item) else {
            let words = format!("Variable does not contain \"{item}\" item");
            return Err(Failure::new(words));
        };
        cx.screen.bytes(format!("{value}\n").as_bytes())?;
        return Ok(0);
    }
    match out {
        Out::None | Out::Json | Out::Template(_) => show(cx, &out, &variable),
        Out::Table | Out::Terse => {
            cx.screen.print_line(&whole(&variable, time))?;
            Ok(0)
        }
    }
}

fn time(nanos: i64) -> String {
    crate::times::to_seconds(drover_core::time::Timestamp(nanos))
}

fn whole(variable: &VariableDto, time: impl Fn(i64) -> String) -> String {
    let stub = &variable.stub;
    let mut lines = vec![
        ("Namespace", stub.namespace.clone()),
        ("Path", stub.path.clone()),
        ("Create Time", time(stub.create_time)),
    ];
    if stub.create_index != stub.modify_index {
        lines.push(("Modify Time", time(stub.modify_time)));
    }
    lines.push(("Check Index", stub.modify_index.to_string()));
    let items = variable.items.iter().flatten();
    let items = items.map(|(key, value)| (key.as_str(), value.clone()));
    format!("{}\n\nItems\n{}", block(lines), block(items))
}

fn shape(variable: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(variable)
        .map_err(|error| Failure::new(format!("cannot show the answer: {error}")))
}

async fn list(cx: &mut Context, args: VarListArgs) -> Outcome {
    let out = match (args.out.as_deref(), &args.template) {
        (Some("terse"), None) if !args.json => Out::Terse,
        (out, template) => Out::of(out, args.json, template.as_deref())?,
    };
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let query = [("prefix", prefix)];
    let (all, next): (Vec<VariableStub>, _) = cx.page("/v1/vars", &query, &args.page).await?;
    match out {
        Out::None | Out::Json | Out::Template(_) => {
            show(cx, &out, &all)?;
        }
        Out::Terse => all
            .iter()
            .try_for_each(|one| cx.screen.print_line(&one.path))?,
        Out::Table if all.is_empty() => cx.screen.print_line("No variables found")?,
        Out::Table => cx.screen.print_line(&rows(&all, time))?,
    }
    cx.note_next(next.as_deref());
    Ok(0)
}

fn rows(all: &[VariableStub], time: impl Fn(i64) -> String) -> String {
    let row = |one: &VariableStub| {
        [
            one.namespace.clone(),
            one.path.clone(),
            time(one.modify_time),
        ]
    };
    table(["Namespace", "Path", "Last Updated"], all.iter().map(row))
}

async fn purge(cx: &mut Context, args: VarPurgeArgs) -> Outcome {
    let index = args.check_index.map(|index| index.to_string());
    let query: Vec<_> = index.iter().map(|index| ("cas", index.as_str())).collect();
    let path = path_of(&args.path);
    let answer = cx.client.send(Method::DELETE, &path, &query, None).await;
    answer.map_err(|failure| conflict(failure, &args.path, args.check_index))?;
    let words = format!("Successfully purged variable \"{}\"!", args.path);
    cx.screen.print_line(&words)?;
    Ok(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn args(words: &[&str], format: Option<&str>) -> VarPutArgs {
        VarPutArgs {
            path: words[0].to_owned(),
            items: words[1..].iter().map(|word| (*word).to_owned()).collect(),
            force: false,
            check_index: None,
            format: format.map(str::to_owned),
            verbose: false,
            out: None,
            template: None,
        }
    }

    fn read(words: &[&str], format: Option<&str>, stdin: &str) -> Result<String, String> {
        let given = Given::read(&args(words, format), stdin.as_bytes());
        let given = given.map_err(|failure| failure.message)?;
        Ok(format!("{} {:?}", given.path, given.items))
    }

    #[test]
    fn items_come_from_arguments_files_and_stdin() {
        assert_eq!(
            read(&["a/b", "k=v", "l=x=y", "m="], None, ""),
            Ok("a/b {\"k\": \"v\", \"l\": \"x=y\", \"m\": \"\"}".to_owned())
        );
        assert_eq!(
            read(&["a", "k=-"], None, "from\nthere"),
            Ok("a {\"k\": \"from\\nthere\"}".to_owned())
        );
        let whole = r#"{"Path":"p","Items":{"k":"old","l":"l"},"ModifyIndex":3}"#;
        assert_eq!(
            read(&["-", "k=new"], Some("json"), whole),
            Ok("p {\"k\": \"new\", \"l\": \"l\"}".to_owned())
        );
        assert_eq!(
            read(&["q", "-"], Some("json"), whole),
            Ok("q {\"k\": \"old\", \"l\": \"l\"}".to_owned())
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "of the file").unwrap();
        let item = format!("k=@{}", file.path().display());
        assert_eq!(
            read(&["a", &item], None, ""),
            Ok("a {\"k\": \"of the file\"}".to_owned())
        );
    }

    #[test]
    fn invalid_item_is_reported_without_value() {
        for (words, format, stdin) in [
            (&["a", "novalue"][..], None, ""),
            (&["-"], None, "{}"),
            (&["-"], Some("hcl"), "{}"),
            (&["-"], Some("json"), "{}"),
            (&["a", "k=-", "l=-"], None, "x"),
            (&["a", "k=@/no/such/file"], None, ""),
        ] {
            assert!(read(words, format, stdin).is_err(), "{words:?}");
        }
        let broken = read(&["a", "-"], Some("json"), r#"{"Items":{"k":hunter2}}"#);
        let why = broken.unwrap_err();
        assert!(why.contains("line 1") && !why.contains("hunter2"), "{why}");
    }

    #[test]
    fn conflict_does_not_show_current_value() {
        let body = r#"{"Path":"a","ModifyIndex":7,"Items":{"k":"hunter2"}}"#;
        let message = |expected| conflict(Failure::status(409, body), "a", expected).message;
        assert!(message(None).contains("index is 7") && !message(None).contains("hunter2"));
        assert!(message(Some(3)).contains("is 7, and not 3"));
        let gone = Failure::status(409, r#"{"ModifyIndex":0}"#);
        let gone = conflict(gone, "a", Some(3)).message;
        assert!(gone.contains("there is no variable"), "{gone}");
    }

    #[test]
    fn variable_shows_items() {
        let mut variable = VariableDto::default();
        variable.stub.path = "a".to_owned();
        (variable.stub.create_index, variable.stub.modify_index) = (3, 5);
        variable.items = Some([("key".to_owned(), "value".to_owned())].into());
        let shown = whole(&variable, |_| "then".to_owned());
        assert!(shown.contains("Check Index = 5"), "{shown}");
        assert!(shown.ends_with("Items\nkey = value"), "{shown}");
        assert!(rows(&[variable.stub], |_| "then".to_owned()).ends_with("a     then"));
    }
}
