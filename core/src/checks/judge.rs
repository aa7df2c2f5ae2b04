//! What the answer of a check means.

use serde::{Deserialize, Serialize};

use crate::effect::request::Health;
use crate::input::ProbeAnswer;
use crate::op::Failure;

/// The most bytes of an answer that are kept for people.
pub const MAX_OUTPUT: usize = 3 * 1024;

/// How one run of a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// Well.
    Passing,
    /// Well, and somebody should look.
    Warning,
    /// Not well.
    Failing,
    /// It is too early to say: as if nobody had asked.
    Undecided,
}

/// One run of a check, judged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Judgement {
    /// How it went.
    pub outcome: Outcome,
    /// The status of an HTTP answer.
    pub code: Option<u16>,
    /// What there is to read, at most [`MAX_OUTPUT`] bytes.
    pub output: String,
}

impl Judgement {
    fn new(outcome: Outcome, code: Option<u16>, output: String) -> Judgement {
        let output = shortened(output);
        Judgement {
            outcome,
            code,
            output,
        }
    }

    /// There was no answer that could be judged.
    pub fn failed(why: impl Into<String>) -> Judgement {
        Judgement::new(Outcome::Failing, None, why.into())
    }
}

/// Judges the answer of a service.
pub fn of_probe(result: Result<ProbeAnswer, Failure>) -> Judgement {
    let ok = |words: &str| words.to_owned();
    match result {
        Ok(ProbeAnswer::Http { code, .. }) if code < 400 => {
            Judgement::new(Outcome::Passing, Some(code), ok("nomad: http ok"))
        }
        Ok(ProbeAnswer::Http { code, body }) => Judgement::new(Outcome::Failing, Some(code), body),
        Ok(ProbeAnswer::Connected) => Judgement::new(Outcome::Passing, None, ok("nomad: tcp ok")),
        Ok(ProbeAnswer::Grpc { serves: true, .. }) => {
            Judgement::new(Outcome::Passing, None, ok("nomad: grpc ok"))
        }
        Ok(ProbeAnswer::Grpc { status, .. }) => {
            Judgement::failed(format!("the service's status is {status}"))
        }
        Err(failure) => Judgement::failed(failure.message),
    }
}

/// Judges the end of a program: its exit code, and what it printed.
pub fn of_script(result: Result<i32, Failure>, output: String) -> Judgement {
    match result {
        Ok(0) => Judgement::new(Outcome::Passing, None, output),
        Ok(1) => Judgement::new(Outcome::Warning, None, output),
        Ok(code) if output.is_empty() => Judgement::failed(format!("exit code {code}")),
        Ok(code) => Judgement::failed(format!("exit code {code}: {output}")),
        Err(failure) => Judgement::failed(failure.message),
    }
}

/// Judges what a task's own health check found.
pub fn of_health(result: Result<i32, Failure>, output: String) -> Judgement {
    match result {
        Ok(Health::HEALTHY) => Judgement::new(Outcome::Passing, None, output),
        Ok(Health::STARTING) => Judgement::new(Outcome::Undecided, None, output),
        Ok(_) => Judgement::failed(output),
        Err(failure) => Judgement::failed(failure.message),
    }
}

/// The beginning of a text, up to a whole character.
fn shortened(mut text: String) -> String {
    if text.len() > MAX_OUTPUT {
        let mut end = MAX_OUTPUT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(code: u16) -> Judgement {
        let body = "sorry".to_owned();
        of_probe(Ok(ProbeAnswer::Http { code, body }))
    }

    #[test]
    fn http_status_below_400_passes() {
        assert_eq!(http(200).outcome, Outcome::Passing);
        assert_eq!(http(399).outcome, Outcome::Passing);
        let failed = http(400);
        assert_eq!(failed.outcome, Outcome::Failing);
        assert_eq!((failed.code, failed.output.as_str()), (Some(400), "sorry"));
    }

    #[test]
    fn exit_code_1_of_script_is_a_warning() {
        let outcome = |code| of_script(Ok(code), String::new()).outcome;
        assert_eq!(outcome(0), Outcome::Passing);
        assert_eq!(outcome(1), Outcome::Warning);
        assert_eq!(outcome(2), Outcome::Failing);
        let lost = Err(Failure::fatal("gone"));
        assert_eq!(of_script(lost, String::new()).outcome, Outcome::Failing);
    }

    #[test]
    fn task_that_starts_is_neither_well_nor_unwell() {
        let outcome = |code| of_health(Ok(code), String::new()).outcome;
        assert_eq!(outcome(Health::HEALTHY), Outcome::Passing);
        assert_eq!(outcome(Health::STARTING), Outcome::Undecided);
        assert_eq!(outcome(Health::UNHEALTHY), Outcome::Failing);
        let lost = Err(Failure::fatal("gone"));
        assert_eq!(of_health(lost, String::new()).outcome, Outcome::Failing);
    }

    #[test]
    fn long_output_is_cut_at_a_character() {
        let long = "ä".repeat(MAX_OUTPUT);
        let kept = Judgement::failed(format!("x{long}")).output;
        assert_eq!(kept.len(), MAX_OUTPUT - 1);
    }
}
