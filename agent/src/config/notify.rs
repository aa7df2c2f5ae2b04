//! The blocks `notify`: who is notified of what happens, and how.
//!
//! ```hcl
//! notify "ops" {
//!   on         = ["failed", "oom_killed", "deployment_failed", "disk_pressure"]  # everything if left out
//!   jobs       = ["web-*"]                         # all jobs if left out
//!   per_minute = 60                                # how many messages it gets at most
//!   give_up    = "1h"                              # how long a message is tried again
//!
//!   webhook {
//!     url     = "https://hooks.example.com/x"
//!     headers = { Authorization = "Bearer …" }
//!     timeout = "10s"
//!     ca_file = "/etc/ssl/ours.pem"                # instead of the certificates that the machine trusts
//!     template = <<EOT
//! {"text": {{ env "NOTICE_TEXT" | toJSON }}}
//! EOT
//!   }
//! }
//!
//! notify "pager" {
//!   on = ["failed"]
//!   command {                                      # instead of a webhook
//!     command = "/usr/local/bin/page"
//!     args    = ["-urgent"]
//!     timeout = "30s"
//!   }
//! }
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use drover_core::model::notice::Event;
use drover_io_real::notify::{
    CommandSettings, TargetSettings, Way, WebhookSettings, check_template,
};
use hcl_edit::structure::Block;

use super::literal::Fields;
use super::place::Places;
use super::reading::{Reading, duration, named, post_box};
use super::unknown;

/// More targets than this nobody means.
const MOST: usize = 16;

const SETTINGS: &[&str] = &["on", "jobs", "per_minute", "give_up"];
const WEBHOOK: &[&str] = &[
    "url",
    "headers",
    "timeout",
    "ca_file",
    "template",
    "content_type",
];
const COMMAND: &[&str] = &["command", "args", "timeout"];

/// Reads a block.
///
/// # Errors
/// It says what cannot be; where, and what is known instead.
pub(super) fn target(
    into: &mut Vec<TargetSettings>,
    block: &Block,
    places: &Places<'_>,
) -> Result<(), String> {
    let others = into.iter().map(|other| other.name.as_str());
    let (name, about) = named(block, places, others, MOST)?;
    let mut read = Reading::of(block, &about, places, SETTINGS)?;
    let on = read.take("on", |given, name| events(given.texts(name)?))?;
    let jobs = read.take("jobs", Fields::texts)?;
    let per_minute = read.take("per_minute", |given, name| {
        within(given.number(name)?.unwrap_or(60), 1, 6_000)
    })?;
    let hour = Duration::from_secs(3600);
    let give_up = read.take("give_up", |given, name| {
        duration(given, name, hour, 7 * 24 * hour)
    })?;
    into.push(TargetSettings {
        name: name.to_owned(),
        on,
        jobs,
        way: way(block, &about, places)?,
        per_minute,
        give_up,
    });
    Ok(())
}

fn events(names: Vec<String>) -> Result<BTreeSet<Event>, String> {
    if names.is_empty() {
        return Ok(Event::ALL.into());
    }
    let all = Event::ALL.map(Event::as_str);
    let read = |name: String| Event::named(&name).ok_or_else(|| unknown("event", &name, &all));
    names.into_iter().map(read).collect()
}

fn within(number: i64, least: u32, most: u32) -> Result<u32, String> {
    let whole = u32::try_from(number).ok();
    whole
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("{number} is not from {least} to {most}"))
}

/// How it is told.
fn way(block: &Block, about: &str, places: &Places<'_>) -> Result<Way, String> {
    let mut ways = Vec::new();
    for inner in block.body.blocks() {
        let kind = inner.ident.as_str();
        let about = format!("{about}: {kind}");
        ways.push(match kind {
            "webhook" => Way::Webhook(webhook(inner, &about, places)?),
            "command" => Way::Command(command(inner, &about, places)?),
            other => {
                let why = unknown("block", other, &["webhook", "command"]);
                return Err(format!("{}{about}: {why}", places.of(inner)));
            }
        });
    }
    let one = (ways.pop()).filter(|_| ways.is_empty());
    one.ok_or_else(|| {
        let at = places.of(block);
        format!("{at}{about}: one block is needed that says how: webhook or command")
    })
}

fn webhook(block: &Block, about: &str, places: &Places<'_>) -> Result<WebhookSettings, String> {
    let mut read = Reading::of(block, about, places, WEBHOOK)?;
    let to = post_box(&mut read)?;
    let template = read.take("template", |given, name| {
        let text = given.text(name)?;
        text.as_deref().map(check_template).transpose()?;
        Ok(text)
    })?;
    let content_type = read.take("content_type", Fields::text)?;
    Ok(WebhookSettings {
        to,
        template,
        content_type: content_type.unwrap_or_else(|| "application/json".to_owned()),
    })
}

fn command(block: &Block, about: &str, places: &Places<'_>) -> Result<CommandSettings, String> {
    let mut read = Reading::of(block, about, places, COMMAND)?;
    let path = read.take("command", |given, name| {
        let path = PathBuf::from(given.text(name)?.unwrap_or_default());
        match path.is_absolute() {
            true => Ok(path),
            false => Err("an absolute path is needed; there is no shell".to_owned()),
        }
    })?;
    let args = read.take("args", Fields::texts)?;
    let timeout = read.take("timeout", |given, name| {
        duration(
            given,
            name,
            Duration::from_secs(30),
            Duration::from_secs(3600),
        )
    })?;
    Ok(CommandSettings {
        path,
        args,
        timeout,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn targets_are_read() {
        let config = parse(
            r#"
            notify "ops" {
              on   = ["failed", "disk_pressure"]
              jobs = ["web-*"]
              webhook {
                url      = "https://hooks.example.com/secret?x=1"
                headers  = { Authorization = "Bearer t0ken" }
                timeout  = "5s"
                template = <<EOT
{"text": {{ env "NOTICE_TEXT" | toJSON }}}
EOT
              }
            }
            notify "pager" {
              command {
                command = "/bin/page"
                args    = ["-x"]
              }
            }
            "#,
        )
        .unwrap();
        let [ops, pager] = config.notify.as_slice() else {
            panic!("{:?}", config.notify);
        };
        assert_eq!(ops.on, BTreeSet::from([Event::Failed, Event::DiskPressure]));
        assert_eq!((ops.per_minute, ops.give_up.as_secs()), (60, 3600));
        let Way::Webhook(webhook) = &ops.way else {
            panic!("{ops:?}");
        };
        assert_eq!(webhook.to.timeout.as_secs(), 5);
        assert!(webhook.template.as_ref().unwrap().contains("toJSON"));
        // What may be a secret is not shown by accident.
        let shown = format!("{ops:?}");
        assert!(
            !shown.contains("t0ken") && !shown.contains("/secret"),
            "{shown}"
        );
        assert_eq!(pager.on.len(), Event::ALL.len());
        let command = CommandSettings {
            path: "/bin/page".into(),
            args: vec!["-x".to_owned()],
            timeout: Duration::from_secs(30),
        };
        assert_eq!(pager.way, Way::Command(command));
    }

    #[test]
    fn mistake_has_line_and_column_and_names_what_is_near() {
        let hook = "webhook {\n    url = \"http://a/\"\n  }";
        for (text, expected) in [
            (
                format!("notify \"x\" {{\n  on = [\"faled\"]\n  {hook}\n}}"),
                "line 2, column 3: notify \"x\": on: unknown event \"faled\"; did you mean failed?",
            ),
            (
                format!("\nnotify \"x\" {{\n  job = []\n  {hook}\n}}"),
                "line 3, column 3: notify \"x\": unknown setting \"job\"; did you mean jobs?",
            ),
            (
                "notify \"x\" {\n  webhok {}\n}".to_owned(),
                "line 2, column 3: notify \"x\": webhok: unknown block \"webhok\"; did you mean webhook?",
            ),
            (
                "notify \"x\" {\n  webhook {\n    url = \"ftp://a\"\n  }\n}".to_owned(),
                "line 3, column 5: notify \"x\": webhook: url: a URL of http or https is needed",
            ),
            (
                "notify \"x\" {\n  webhook {\n    url = \"https://a\"\n    ca_file = \"/no/such\"\n  }\n}".to_owned(),
                "line 4, column 5: notify \"x\": webhook: ca_file /no/such: No such file",
            ),
            (
                "notify \"x\" {\n  webhook {\n    url = \"http://a\"\n    ca_file = \"/ca.pem\"\n  }\n}".to_owned(),
                "webhook: ca_file: it is for a url of https",
            ),
            (
                "notify \"x\" {\n  webhook {\n    url = \"http://me:pw@a\"\n  }\n}".to_owned(),
                "a name and password go into a header",
            ),
            ("notify \"x\" {}".to_owned(), "line 1, column 1: notify \"x\": one block is needed"),
            (
                "notify \"x\" {\n  command {\n    command = \"page\"\n  }\n}".to_owned(),
                "line 3, column 5: notify \"x\": command: command: an absolute path is needed",
            ),
            (
                "notify \"x\" {\n  command {\n    command = \"/p\"\n    timeout = \"2d\"\n  }\n}".to_owned(),
                "line 4, column 5: notify \"x\": command: timeout: \"2d\"",
            ),
            (format!("notify \"x/y\" {{\n  {hook}\n}}"), "a name has letters"),
            (format!("notify {{\n  {hook}\n}}"), "line 1, column 1: notify needs one name"),
            (
                format!("notify \"x\" {{\n  {hook}\n}}\nnotify \"x\" {{\n  {hook}\n}}"),
                "line 6, column 1: notify \"x\": it is there twice",
            ),
            (
                "notify \"x\" {\n  webhook {\n    url = \"http://a\"\n    template = \"{{ nope }}\"\n  }\n}".to_owned(),
                "line 4, column 5: notify \"x\": webhook: template: ",
            ),
            (
                "notify \"x\" {\n  webhook {\n    url = \"http://a\"\n    headers = { \"a b\" = \"s3cret\" }\n  }\n}".to_owned(),
                "headers: \"a b\" cannot be sent",
            ),
            ("notfy \"x\" {}".to_owned(), "line 1, column 1: unknown block \"notfy\"; did you mean notify?"),
        ] {
            let why = parse(&text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
            assert!(!why.contains("s3cret"), "{why}");
        }
    }
}
