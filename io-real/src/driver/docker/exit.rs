//! What an engine says of a container's end.

use bollard::models::{ContainerInspectResponse, ContainerState, ContainerStateStatusEnum};
use drover_core::model::alloc::ExitResult;

use super::containers::{Known, Oom};

const MIB: u64 = 1 << 20;

/// What engines say of the end of a container that they did not see.
const UNSEEN: i64 = 255;

fn state(found: &ContainerInspectResponse) -> Option<&ContainerState> {
    found.state.as_ref()
}

/// Whether it runs.
pub(super) fn runs(found: &ContainerInspectResponse) -> bool {
    state(found).and_then(|it| it.running).unwrap_or_default()
}

/// Whether it was made and never started.
pub(super) fn never_ran(found: &ContainerInspectResponse) -> bool {
    state(found).and_then(|it| it.status) == Some(ContainerStateStatusEnum::CREATED)
}

/// Whether its engine may not have seen how it ended: that says one code of all that is gone when it starts. A program
/// may end with the same.
pub(super) fn is_unseen(found: &ContainerInspectResponse) -> bool {
    !runs(found) && state(found).and_then(|it| it.exit_code) == Some(UNSEEN)
}

/// How it ended. Engines give no signal: a code above 128 is one of a process that a signal ended.
pub(super) fn result(
    found: &ContainerInspectResponse,
    known: Option<&Known>,
    oom: Option<Oom>,
) -> ExitResult {
    let Some(state) = state(found) else {
        return ExitResult::unknown("the engine does not say how it ended");
    };
    let code = state.exit_code.and_then(|code| i32::try_from(code).ok());
    let Some(code) = code else {
        return ExitResult::unknown("the engine does not say how it ended");
    };
    // Engines say it of a container of which anything was killed. A task that succeeds got over that.
    let ran_out = state.oom_killed.unwrap_or_default() || (oom.is_some() && code == 137);
    let oom_killed = ran_out && code != 0;
    let error = state.error.clone().filter(|error| !error.is_empty());
    let limit = known.map_or(0, |known| known.memory_limit);
    let limit = limit.div_ceil(MIB);
    let most = oom.and_then(|oom| oom.most).map(|most| most.div_ceil(MIB));
    let message = match (oom_killed, limit, most) {
        (false, _, _) => error,
        (true, 0, _) => Some("out of memory".to_owned()),
        (true, limit, Some(most)) => Some(format!(
            "out of memory: the limit is {limit} MiB, {most} MiB were used at most"
        )),
        (true, limit, None) => Some(format!("out of memory: the limit is {limit} MiB")),
    };
    ExitResult {
        code: Some(code),
        signal: signal(code),
        oom_killed,
        message,
    }
}

fn signal(code: i32) -> i32 {
    match code {
        129..=192 => code - 128,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use drover_core::ids::{AllocId, TaskKey};
    use tokio::sync::watch;

    use super::*;

    #[test]
    fn exit_is_reported_with_code_signal_and_memory() {
        let of = |code, oom| {
            let found = ContainerInspectResponse {
                state: Some(ContainerState {
                    exit_code: Some(code),
                    oom_killed: Some(oom),
                    ..ContainerState::default()
                }),
                ..ContainerInspectResponse::default()
            };
            result(&found, None, None)
        };
        assert_eq!(of(3, false), ExitResult::code(3));
        assert_eq!(of(0, true), ExitResult::code(0));
        assert_eq!(of(143, false).signal, 15);
        let killed = of(137, true);
        assert!(killed.oom_killed && killed.signal == 9 && killed.message.is_some());
    }

    #[test]
    fn container_that_ran_out_of_memory_says_how_much_there_was() {
        let known = Known {
            task: TaskKey {
                alloc: AllocId(1),
                task: "web".into(),
            },
            id: "x".to_owned(),
            stats: None,
            memory_limit: 20 * MIB,
            shared_cores: None,
            drained: watch::channel(true).1,
        };
        let found = ContainerInspectResponse {
            state: Some(ContainerState {
                exit_code: Some(137),
                ..ContainerState::default()
            }),
            ..ContainerInspectResponse::default()
        };
        let message_of = |oom| result(&found, Some(&known), oom).message;
        let of = |most| Some(Oom { most });
        assert_eq!(
            message_of(of(Some(20 * MIB - 1))).as_deref(),
            Some("out of memory: the limit is 20 MiB, 20 MiB were used at most")
        );
        assert_eq!(
            message_of(of(None)).as_deref(),
            Some("out of memory: the limit is 20 MiB")
        );
        assert_eq!(message_of(None), None);
    }
}
