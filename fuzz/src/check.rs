//! Checks of services: whatever a job file says of one, it is read within bounds or refused at a field; whatever a
//! service answers, what is kept of it is short.

use drover_core::checks::judge::{self, MAX_OUTPUT};
use drover_core::input::ProbeAnswer;
use drover_core::model::check::Check;
use drover_core::model::value::Value;
use drover_core::op::Failure;
use drover_core::time::Span;

/// A service with checks, as JSON; and the same bytes as the answer of what is checked.
///
/// # Panics
/// Something does not hold.
pub fn check(bytes: &[u8]) {
    answer(bytes);
    let Ok(service) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    for read in Check::of_service(&service) {
        match read.and_then(|check| check.check().map(|()| check)) {
            Ok(check) => {
                let second = Span::secs(1);
                assert!(check.interval >= second, "{check:?}");
                assert!(check.timeout >= second, "{check:?}");
                assert!(!check.name.is_empty(), "{check:?}");
            }
            Err(problem) => {
                assert!(!problem.field.is_empty(), "{problem:?}");
                assert!(!problem.message.is_empty(), "{problem:?}");
            }
        }
    }
}

fn answer(bytes: &[u8]) {
    let text = || String::from_utf8_lossy(bytes).into_owned();
    let code = u16::from_le_bytes([
        bytes.first().copied().unwrap_or(0),
        bytes.get(1).copied().unwrap_or(0),
    ]);
    let http = ProbeAnswer::Http { code, body: text() };
    let judgements = [
        judge::of_probe(Ok(http)),
        judge::of_probe(Err(Failure::fatal(text()))),
        judge::of_script(Ok(i32::from(code)), text()),
        judge::of_script(Err(Failure::fatal(text())), text()),
    ];
    for judgement in judgements {
        assert!(judgement.output.len() <= MAX_OUTPUT, "{judgement:?}");
    }
}
