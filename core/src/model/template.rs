//! Templates: files and variables that are rendered before a task starts, and again when what they
//! are made of changes.

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// One template of a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Template {
    /// The file that holds the template; its text stands in the job if empty.
    pub source_path: String,
    /// The file that is rendered.
    pub dest_path: String,
    /// The template itself.
    pub embedded_tmpl: String,
    /// What happens to the task when the file changes.
    pub change_mode: ChangeMode,
    /// The signal of [`ChangeMode::Signal`].
    pub change_signal: String,
    /// The script of [`ChangeMode::Script`].
    pub change_script: Option<ChangeScript>,
    /// The longest of the pauses between a change and what follows from it, of which one is drawn.
    pub splay: Span,
    /// The file's permissions, in octal.
    pub perms: String,
    /// The file's owner; the agent's own if none.
    #[serde(deserialize_with = "id")]
    pub uid: Option<u32>,
    /// The file's group.
    #[serde(deserialize_with = "id")]
    pub gid: Option<u32>,
    /// What opens an action.
    pub left_delim: String,
    /// What closes it.
    pub right_delim: String,
    /// Whether the file's lines become variables of the task's environment.
    pub envvars: bool,
    /// Whether a key that a map lacks is an error.
    pub err_missing_key: bool,
    /// Whether it is rendered once, whatever changes later.
    pub once: bool,
    /// How long changes are collected.
    pub wait: Option<Wait>,
    /// Of no effect any more.
    pub vault_grace: Span,
}

impl Default for Template {
    fn default() -> Template {
        Template {
            source_path: String::new(),
            dest_path: String::new(),
            embedded_tmpl: String::new(),
            change_mode: ChangeMode::default(),
            change_signal: String::new(),
            change_script: None,
            splay: Span::secs(5),
            perms: "0644".to_owned(),
            uid: None,
            gid: None,
            left_delim: "{{".to_owned(),
            right_delim: "}}".to_owned(),
            envvars: false,
            err_missing_key: false,
            once: false,
            wait: None,
            vault_grace: Span::ZERO,
        }
    }
}

impl Template {
    /// The permissions as a number; none if they are no octal number of at most three digits
    /// behind zeros: nobody gets more than a user by being rendered.
    pub fn mode(&self) -> Option<u32> {
        let mode = u32::from_str_radix(&self.perms, 8).ok()?;
        (mode <= 0o777).then_some(mode)
    }

    /// The script that tells the task of a change, if one does.
    pub fn script(&self) -> Option<&ChangeScript> {
        let script = self.change_script.as_ref();
        script.filter(|_| self.change_mode == ChangeMode::Script)
    }

    /// Whether the task is told of the first rendering, too.
    pub fn notifies_first_render(&self) -> bool {
        self.script()
            .is_some_and(|script| script.run_on_first_render)
    }
}

/// What happens to a task when one of its templates is rendered anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeMode {
    /// Nothing.
    Noop,
    /// It is started again.
    #[default]
    #[serde(alias = "")]
    Restart,
    /// It is sent a signal.
    Signal,
    /// A program is run beside it.
    Script,
}

/// A program that is run beside a task when one of its templates is rendered anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ChangeScript {
    /// The program. Its references are not replaced: it has the task's variables.
    pub command: String,
    /// Its arguments, as they are.
    #[serde(deserialize_with = "nothing_is_none")]
    pub args: Vec<String>,
    /// How long it may run.
    #[serde(deserialize_with = "span")]
    pub timeout: Span,
    /// Whether the task fails with it.
    pub fail_on_error: bool,
    /// Whether it also runs once after the task's first start.
    pub run_on_first_render: bool,
}

impl ChangeScript {
    /// How long a script may run of which that is not said.
    pub const TIMEOUT: Span = Span::secs(5);
}

impl Default for ChangeScript {
    fn default() -> ChangeScript {
        ChangeScript {
            command: String::new(),
            args: Vec::new(),
            timeout: ChangeScript::TIMEOUT,
            fail_on_error: false,
            run_on_first_render: false,
        }
    }
}

/// How long changes are collected before a template is rendered anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Wait {
    /// So long nothing may have changed.
    #[serde(deserialize_with = "span")]
    pub min: Span,
    /// So long at most it is waited for that; four times as long as `min` if zero.
    #[serde(deserialize_with = "span")]
    pub max: Span,
}

/// `null` and negative numbers stand for nobody in particular, as in Nomad.
fn id<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let given = Option::<i64>::deserialize(from)?;
    let given = given.filter(|id| *id >= 0);
    let narrow = |id: i64| {
        let wrong = || serde::de::Error::custom(format!("{id} is no user or group"));
        u32::try_from(id).map_err(|_| wrong())
    };
    given.map(narrow).transpose()
}

fn nothing_is_none<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(from)?.unwrap_or_default())
}

fn span<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
    Ok(Option::<Span>::deserialize(from)?.unwrap_or_default())
}
