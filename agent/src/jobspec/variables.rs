//! Variables: what a job file declares, and the values that they get.

use std::collections::{BTreeMap, BTreeSet};

use hcl_edit::Span;
use hcl_edit::expr::Expression;
use hcl_edit::structure::{Block, Body, Structure};

use super::blocks::items::labels;
use super::error::{Issues, did_you_mean};
use super::eval::scope::Scope;
use super::eval::types::{self, Type};
use super::eval::value::Val;
use super::eval::{Evaluator, Fault, Globals, convert};
use super::source::{At, Source};
use super::{Options, Session, VarFile, hcl_json, json_text};

const IN_DEFAULT: &str = "variables and locals cannot be used here";

/// A variable as it is declared.
struct Declared<'b> {
    at: At,
    /// The type that was written.
    ty: Option<Type>,
    default: Option<Val>,
    rules: Vec<&'b Block>,
}

/// Reads the declarations of a file and gives each variable its value.
pub(super) fn read(
    session: &Session<'_>,
    body: &Body,
    options: &Options,
    issues: &mut Issues,
) -> BTreeMap<String, Val> {
    let nothing = Globals {
        refused: Some(IN_DEFAULT),
        ..Globals::default()
    };
    let on = session.evaluator(&nothing);
    let mut declared = declarations(&on, body, issues);
    let mut given = Given::default();
    given.take_from_env(session, options, &declared, issues);
    given.take_from_files(session, options, &declared, issues);
    given.take_from_command_line(session, options, &declared, issues);

    let mut globals = Globals::default();
    for (name, variable) in &mut declared {
        let value = given
            .values
            .remove(name)
            .or_else(|| variable.default.take());
        let Some(value) = value else {
            if given.wrong.contains(name) {
                continue;
            }
            let issue = on.fault(
                &variable.at,
                format!("the variable \"{name}\" has no value"),
            );
            issues.push(issue.help(format!(
                "Give it a default, or a value with -var {name}=…, a -var-file, or the \
                 environment variable DROVER_VAR_{name}."
            )));
            continue;
        };
        globals.vars.insert(name.clone(), value);
    }
    let on = session.evaluator(&globals);
    for (name, variable) in &declared {
        // A rule of a variable without a value would only repeat that.
        if globals.vars.contains_key(name) {
            for rule in &variable.rules {
                if let Err(fault) = check(&on, name, rule) {
                    issues.push(fault);
                }
            }
        }
    }
    globals.vars
}

fn declarations<'b>(
    on: &Evaluator<'_>,
    body: &'b Body,
    issues: &mut Issues,
) -> BTreeMap<String, Declared<'b>> {
    let mut all: BTreeMap<String, Declared<'b>> = BTreeMap::new();
    for block in body.blocks() {
        let found = match block.ident.as_str() {
            "variable" => match declaration(on, block, issues) {
                Ok(found) => vec![found],
                Err(fault) => {
                    issues.push(fault);
                    continue;
                }
            },
            "variables" => shorthand(on, block, issues),
            _ => continue,
        };
        for (name, variable) in found {
            if all.contains_key(&name) {
                let message = format!("the variable \"{name}\" is declared twice");
                issues.push(on.fault(&variable.at, message));
                continue;
            }
            all.insert(name, variable);
        }
    }
    all
}

/// `variables { name = default }`.
fn shorthand<'b>(
    on: &Evaluator<'_>,
    block: &'b Block,
    issues: &mut Issues,
) -> Vec<(String, Declared<'b>)> {
    let mut found = Vec::new();
    for structure in &block.body {
        let Structure::Attribute(attribute) = structure else {
            issues.push(on.fault(&structure.span(), "a variables block holds no blocks"));
            continue;
        };
        match on.eval(&attribute.value, &Scope::default()) {
            Ok(default) => found.push((
                attribute.key.as_str().to_owned(),
                Declared {
                    at: attribute.key.span(),
                    ty: None,
                    default: Some(default),
                    rules: Vec::new(),
                },
            )),
            Err(fault) => issues.push(fault),
        }
    }
    found
}

fn declaration<'b>(
    on: &Evaluator<'_>,
    block: &'b Block,
    issues: &mut Issues,
) -> Result<(String, Declared<'b>), Fault> {
    let at = block.ident.span();
    let names = labels(block);
    let [name] = names.as_slice() else {
        return Err(on.fault(&at, "a variable block needs exactly one label, its name"));
    };
    let mut variable = Declared {
        at,
        ty: None,
        default: None,
        rules: Vec::new(),
    };
    for structure in &block.body {
        let known = ["type", "default", "description", "sensitive", "validation"];
        let (key, at) = match structure {
            Structure::Attribute(attribute) => (attribute.key.as_str(), attribute.key.span()),
            Structure::Block(block) => (block.ident.as_str(), block.ident.span()),
        };
        let result = match (structure, key) {
            (Structure::Attribute(attribute), "type") => {
                types::parse(on, &attribute.value).map(|ty| variable.ty = Some(ty))
            }
            (Structure::Attribute(attribute), "default") => {
                let default = on.eval(&attribute.value, &Scope::default());
                default.map(|default| variable.default = Some(default))
            }
            (Structure::Attribute(_), "description" | "sensitive") => Ok(()),
            (Structure::Block(block), "validation") => {
                variable.rules.push(block);
                Ok(())
            }
            _ => {
                let message = format!("unknown \"{key}\" in variable \"{name}\"");
                let list = format!("Known names are {}.", known.join(", "));
                let help = did_you_mean(key, known).unwrap_or(list);
                Err(on.fault(&at, message).help(help))
            }
        };
        if let Err(fault) = result {
            issues.push(fault);
        }
    }
    if let (Some(ty), Some(default)) = (&variable.ty, &variable.default) {
        let converted = ty.convert(default).map_err(|why| {
            on.fault(
                &variable.at,
                format!("the default of \"{name}\" has not its type: {why}"),
            )
        });
        variable.default = Some(converted?);
    }
    Ok((name.clone(), variable))
}

/// Values from outside of the file; later ones replace earlier ones.
#[derive(Default)]
struct Given {
    values: BTreeMap<String, Val>,
    /// Variables whose value was given, but wrong, which is told already.
    wrong: BTreeSet<String>,
}

impl Given {
    fn take_from_env(
        &mut self,
        session: &Session<'_>,
        options: &Options,
        declared: &BTreeMap<String, Declared<'_>>,
        issues: &mut Issues,
    ) {
        for prefix in ["NOMAD_VAR_", "DROVER_VAR_"] {
            for (key, text) in &options.env {
                let Some(name) = key.strip_prefix(prefix) else {
                    continue;
                };
                // The environment may hold values for other files.
                if let Some(variable) = declared.get(name) {
                    self.take_text(session, key, (name, variable), text, issues);
                }
            }
        }
    }

    fn take_from_files(
        &mut self,
        session: &Session<'_>,
        options: &Options,
        declared: &BTreeMap<String, Declared<'_>>,
        issues: &mut Issues,
    ) {
        for file in &options.var_files {
            let parsed = var_file(file).and_then(|source| {
                let body = hcl_json::read_body(&source, None)?;
                Ok((source, body))
            });
            let (source, body) = match parsed {
                Ok(parsed) => parsed,
                Err(issue) => {
                    issues.push(issue);
                    continue;
                }
            };
            let nothing = Globals {
                refused: Some(IN_DEFAULT),
                ..Globals::default()
            };
            let on = session.evaluator_of(&source, &nothing);
            for structure in &body {
                let Structure::Attribute(attribute) = structure else {
                    let fault = on.fault(&structure.span(), "a file of variables holds no blocks");
                    issues.push(fault.help("Write names with values: name = \"value\"."));
                    continue;
                };
                let (name, at) = (attribute.key.as_str(), attribute.key.span());
                let Some(variable) = declared.get(name) else {
                    undeclared(&on, &at, name, options, declared, issues);
                    continue;
                };
                match on.eval(&attribute.value, &Scope::default()) {
                    Ok(val) => self.take(&on, &at, (name, variable), &val, issues),
                    Err(fault) => issues.push(fault),
                }
            }
        }
    }

    fn take_from_command_line(
        &mut self,
        session: &Session<'_>,
        options: &Options,
        declared: &BTreeMap<String, Declared<'_>>,
        issues: &mut Issues,
    ) {
        for (name, text) in &options.vars {
            let shown = format!("-var {name}");
            if let Some(variable) = declared.get(name.as_str()) {
                self.take_text(session, &shown, (name, variable), text, issues);
                continue;
            }
            let (source, nothing) = (Source::new(&shown, ""), Globals::default());
            let on = session.evaluator_of(&source, &nothing);
            undeclared(&on, &None, name, options, declared, issues);
        }
    }

    /// A value that is written as text: as it is for simple types, else as an expression.
    fn take_text(
        &mut self,
        session: &Session<'_>,
        shown: &str,
        (name, variable): (&str, &Declared<'_>),
        text: &str,
        issues: &mut Issues,
    ) {
        let source = Source::new(shown, text);
        let nothing = Globals {
            refused: Some(IN_DEFAULT),
            ..Globals::default()
        };
        let on = session.evaluator_of(&source, &nothing);
        let plain = match (&variable.ty, &variable.default) {
            (Some(ty), _) => ty.is_plain(),
            (None, Some(Val::List(_) | Val::Map(_))) => false,
            (None, _) => true,
        };
        if plain {
            return self.take(&on, &None, (name, variable), &Val::text(text), issues);
        }
        let parsed: Result<Expression, _> = hcl_edit::parser::parse_expr(text);
        let val = match parsed {
            Ok(expr) => on.eval(&expr, &Scope::default()),
            Err(error) => {
                let at = error.location().offset();
                Err(on.fault(&Some(at..at), error.message()))
            }
        };
        match val {
            Ok(val) => self.take(&on, &None, (name, variable), &val, issues),
            Err(fault) => issues.push(fault),
        }
    }

    fn take(
        &mut self,
        on: &Evaluator<'_>,
        at: &At,
        (name, variable): (&str, &Declared<'_>),
        val: &Val,
        issues: &mut Issues,
    ) {
        let inferred = match &variable.default {
            Some(Val::Number(_)) => Type::Number,
            Some(Val::Bool(_)) => Type::Bool,
            Some(Val::Text(_)) => Type::Text,
            _ => Type::Any,
        };
        let ty = variable.ty.as_ref().unwrap_or(&inferred);
        match ty.convert(val) {
            Ok(val) => {
                self.values.insert(name.to_owned(), val);
            }
            Err(why) => {
                self.wrong.insert(name.to_owned());
                let message = format!("the value of the variable \"{name}\" is wrong: {why}");
                issues.push(on.fault(at, message));
            }
        }
    }
}

/// The source of a file of values, in which JSON is written as HCL.
fn var_file(file: &VarFile) -> Result<Source, Fault> {
    let source = Source::bounded(&file.name, &file.text)?;
    if !hcl_json::is_json(source.text()) {
        return Ok(source);
    }
    let valid: Result<serde_json::Value, _> = serde_json::from_str(source.text());
    valid.map_err(|error| source.issue(&None, format!("this is no JSON: {error}")))?;
    Ok(Source::new(&file.name, &json_text::as_hcl(source.text())))
}

/// A value for a variable that the job file does not declare.
fn undeclared(
    on: &Evaluator<'_>,
    at: &At,
    name: &str,
    options: &Options,
    declared: &BTreeMap<String, Declared<'_>>,
    issues: &mut Issues,
) {
    let issue = on.fault(at, format!("the job file declares no variable \"{name}\""));
    let near = did_you_mean(name, declared.keys().map(String::as_str));
    let declare = || format!("Declare it: variable \"{name}\" {{ … }}, or leave the value out.");
    let issue = issue.help(near.unwrap_or_else(declare));
    if options.lenient_variables {
        on.warn(issue);
    } else {
        issues.push(issue);
    }
}

/// Checks one rule of a variable.
fn check(on: &Evaluator<'_>, name: &str, rule: &Block) -> Result<(), Fault> {
    let at = rule.ident.span();
    let attribute = |key: &str| {
        let missing = || on.fault(&at, format!("the validation of \"{name}\" has no {key}"));
        rule.body.get_attribute(key).ok_or_else(missing)
    };
    let (condition, message) = (attribute("condition")?, attribute("error_message")?);
    let scope = Scope::default();
    let message_at = message.value.span();
    let text = on.eval(&message.value, &scope)?;
    let (text, _) = convert::to_text(&text).map_err(|why| on.fault(&message_at, why))?;
    if text.trim().is_empty() {
        return Err(on.fault(&message_at, "the error_message is blank"));
    }
    if on.condition(&condition.value, &scope, "a validation")? {
        return Ok(());
    }
    let fault = on.fault(
        &at,
        format!("the value of the variable \"{name}\" is refused: {text}"),
    );
    Err(fault)
}
