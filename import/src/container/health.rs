//! Health checks of containers, as script checks of a service.

use crate::hcl::Body;
use crate::measure::Duration;
use crate::text::{Part, Text};

/// How a container is asked whether it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    /// The program and its arguments.
    pub command: Vec<Text>,
    pub interval: Duration,
    pub timeout: Duration,
    pub retries: u64,
    pub grace: Duration,
}

/// A line for a shell whose failure is 2.
fn hard(line: Text) -> Text {
    if let Some(plain) = line.plain()
        && let Some(before) = plain.trim_end().strip_suffix("|| exit 1")
    {
        return format!("{before}|| exit 2").into();
    }
    let has_comment = line.0.iter().any(|part| match part {
        Part::Plain(text) => text.contains(['#', '\n']),
        Part::Variable(_) | Part::If(..) => true,
    });
    let mut all = Text::from("(").then(line);
    // A comment would hide the bracket, were it on the same line.
    all.push(if has_comment { "\n)" } else { ")" });
    all.push(" || exit 2");
    all
}

impl Health {
    /// With what both engines do unless they are told otherwise.
    pub(crate) fn of(command: Vec<Text>) -> Health {
        Health {
            command,
            interval: Duration::secs(30),
            timeout: Duration::secs(30),
            retries: 3,
            grace: Duration(0),
        }
    }

    /// The program is a line for a shell.
    pub(crate) fn shell(line: Text) -> Health {
        Health::of(vec!["/bin/sh".into(), "-c".into(), line])
    }

    /// Lets an exit code of 1, which is a warning for script checks, be a failure. Whether a shell was there to do so.
    pub(crate) fn fails_hard(&mut self) -> bool {
        if let [shell, flag, line] = self.command.as_mut_slice()
            && shell.plain().as_deref() == Some("/bin/sh")
            && flag.plain().as_deref() == Some("-c")
        {
            *line = hard(core::mem::take(line));
            return true;
        }
        let mut command: Vec<Text> = ["/bin/sh", "-c", "\"$@\" || exit 2", "check"]
            .map(Text::from)
            .into();
        command.append(&mut self.command);
        self.command = command;
        false
    }

    /// The `check` block.
    pub(crate) fn check(self, restarts: bool) -> Body {
        let mut check = Body::default();
        let least = |duration: Duration| duration.max(Duration::secs(1)).text();
        check.set("name", "healthy");
        check.set("type", "script");
        let mut words = self.command.into_iter();
        check.set("command", words.next().unwrap_or_default());
        check.set_list("args", words.collect());
        check.set("interval", least(self.interval));
        check.set("timeout", least(self.timeout));
        let mut restart = Body::default();
        restart.set("limit", self.retries.clamp(1, 1_000));
        if self.grace > Duration(0) {
            restart.set("grace", self.grace.text());
        }
        match restarts {
            true => check.block("check_restart", restart),
            false => {
                check.comment("An unhealthy container is marked and runs on, as it did. This would restart it:");
                let mut block = Body::default();
                block.block("check_restart", restart);
                check.comment(
                    block
                        .file()
                        .lines()
                        .map(|l| format!("  {l}"))
                        .collect::<Vec<_>>()
                        .join("\n"),
                );
            }
        }
        check
    }
}
