//! Asking the user before something that cannot be taken back.

use std::io::{IsTerminal, Read};

use super::context::Context;
use super::exit_code::Failure;

/// Whether the user says yes. Where nobody can be asked, nothing is done.
///
/// # Errors
/// There is no terminal to ask at.
pub(super) async fn ask(cx: &mut Context, question: &str) -> Result<bool, Failure> {
    let line = line(cx, question).await?;
    Ok(matches!(line.as_str(), "y" | "Y" | "yes"))
}

/// What the user answers.
///
/// # Errors
/// There is no terminal to ask at.
pub(super) async fn line(cx: &mut Context, question: &str) -> Result<String, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(format!(
            "{question}\nThere is no terminal to ask at; use -yes."
        )));
    }
    cx.screen.print_line(question)?;
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let mut limited = std::io::BufReader::new(std::io::stdin().take(64));
        std::io::BufRead::read_line(&mut limited, &mut line).map(|_| line)
    });
    let line = read.await.ok().and_then(Result::ok).unwrap_or_default();
    Ok(line.trim().to_owned())
}
