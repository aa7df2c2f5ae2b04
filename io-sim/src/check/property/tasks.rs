//! A task from its first start to its end, and the order in which a group lives.

macro_rules! tasks {
    ($next:ident $($more:ident)* => $($rows:tt)*) => { $next! { $($more)* => $($rows)*
    // Starts.
    /// A launch id is saved before its start is sent to the driver.
    LaunchIsSavedBeforeStart: "launch_is_saved_before_start", [P1 P2], Always;
    /// A task does not start once its allocation or the task itself is saved or reported as terminal.
    NoStartAfterAllocIsTerminal: "no_start_after_alloc_is_terminal", [P1], Always;
    /// A restored agent starts nothing that was saved as terminal, unless an operator asked for it.
    RestoredAgentStartsNothingTerminal: "restored_agent_starts_nothing_terminal", [P1], Always;
    /// A task that runs to completion is not run again after success, unless an operator asked for it.
    CompleteBatchAllocIsNotRunAgain: "complete_batch_alloc_is_not_run_again", [P1], Always;
    /// An allocation past its max_run_duration starts nothing, not even poststop tasks.
    TimedOutAllocStartsNothing: "timed_out_alloc_starts_nothing", [P1 P24], Always;
    /// A task with an unreadable record is not started again.
    TaskWithUnreadableRecordIsNotStarted: "task_with_unreadable_record_is_not_started", [P6 P1 P4], Always;
    /// An allocation with an unreadable record becomes terminal.
    UnreadableTaskIsCleanedUp: "unreadable_task_is_cleaned_up", [P6 P11], AtRest;
    /// A launch id is started at most once.
    LaunchIdIsStartedOnce: "launch_id_is_started_once", [P4 P26], Always;
    /// A task has at most one live process.
    TaskHasOneLiveProcess: "task_has_one_live_process", [P4], Always;
    /// A start that the driver calls hopeless is not repeated, unless somebody asks for it.
    HopelessStartIsNotRepeated: "hopeless_start_is_not_repeated", [P25], Always;
    /// A start that failed, as the disk says, is not looked for by another agent.
    FailedStartIsNotForgotten: "failed_start_is_not_forgotten", [P4 P25], Always;
    /// After a restart of the agent every launch that may be alive is recovered.
    RestoredLaunchIsRecovered: "restored_launch_is_recovered", [P4], Always;
    /// A task whose engine is away is given up no sooner than the node's limit for engines.
    EngineIsAwaited: "engine_is_awaited", [P4 P11], Always;
    /// At rest the agent knows of an engine what is true of it.
    EngineIsKnown: "engine_is_known", [P27], AtRest;

    /// The output of a task that lives on is kept by another agent as its job file says.
    RecoveredOutputIsKeptAsJobFileSays: "recovered_output_is_kept_as_job_file_says", [P27], Always;
    /// Nobody waits for what a killed task would have needed.
    HookOfKilledTaskIsCancelled: "hook_of_killed_task_is_cancelled", [P24 P11], Always;
    /// An allocation lives no longer than its max_run_duration, since it was made.
    MaxRunDurationEndsAlloc: "max_run_duration_ends_alloc", [P24 P11], Always;

    // The order of a group.
    /// A task starts as soon as those have come as far that come before it.
    TaskStartsWhenItIsItsTurn: "task_starts_when_it_is_its_turn", [P24 P11], Always;
    /// What has to be done before the main tasks is done while none of them runs.
    PrestartTaskRunsBeforeMainTasks: "prestart_task_runs_before_main_tasks", [P24], Always;
    /// What ends waits as long as its job file says: a group before its tasks are to end, a task before it is asked to.
    ShutdownDelayIsThatOfJobFile: "shutdown_delay_is_that_of_job_file", [P24], Always;
    /// No task is asked to end before the shutdown delays are over, unless somebody skipped them.
    StopWaitsForShutdownDelay: "stop_waits_for_shutdown_delay", [P24], Always;
    /// Nothing waits for a shutdown delay that somebody skipped.
    SkippedShutdownDelayIsOver: "skipped_shutdown_delay_is_over", [P24 P11], Always;
    /// Lifecycle stages run in order: prestart, main, poststart, poststop.
    LifecycleStagesRunInOrder: "lifecycle_stages_run_in_order", [P24], Always;
    /// A group is killed in order: leader, other tasks, sidecars; poststop tasks are not killed.
    KillOrderIsLeaderOthersSidecars: "kill_order_is_leader_others_sidecars", [P24], Always;
    /// Poststop tasks ran once wherever a main task ran and ended.
    PoststopRunsAfterMainRan: "poststop_runs_after_main_ran", [P24], AtRest;
    /// A group whose leader is dead is stopped.
    GroupStopsWithItsLeader: "group_stops_with_its_leader", [P24], AtRest;
    /// Sidecars are dead when all main tasks are.
    SidecarsStopAfterMainTasks: "sidecars_stop_after_main_tasks", [P24], AtRest;

    // Restarts.
    /// The pause before a restart is the one of the task's restart policy, and at most a quarter longer.
    RestartPauseIsThatOfPolicy: "restart_pause_is_that_of_policy", [P25], Always;
    /// A pause before a restart ends when it was told to, also if another agent goes on with it.
    RestartPauseGoesOnAfterAgentRestart: "restart_pause_goes_on_after_agent_restart", [P25 P26], Always;
    /// A task fails by its restart policy only when the attempts of the interval are used up.
    RestartBudgetIsUsedInFull: "restart_budget_is_used_in_full", [P25], Always;
    /// A task restarts at most as often in an interval as its policy allows, counted by the
    /// world's starts, across restarts of the agent.
    RestartsStayWithinPolicy: "restarts_stay_within_policy", [P25], Always;
    /// Between an exit and the restart by policy lies at least the policy's delay.
    RestartDelayIsAtLeastPolicyDelay: "restart_delay_is_at_least_policy_delay", [P25], Always;
    /// A reboot uses no restart attempt; it ends only a batch task whose policy has no
    /// attempts.
    RebootUsesNoRestartAttempt: "reboot_uses_no_restart_attempt", [P25], Always;
    /// A task ended by a reboot restarts without a delay.
    RebootCausesNoRestartDelay: "reboot_causes_no_restart_delay", [P25], Always;
    /// Up to three lost starts in a row use no restart attempt.
    FirstLostStartsUseNoAttempt: "first_lost_starts_use_no_attempt", [P25], Always;

    // Stops.
    /// A kill or an operator's restart is saved before the stop is sent.
    StopIsSavedBeforeKill: "stop_is_saved_before_kill", [P1 P6], Always;
    /// A task that is asked to end gets the kill_timeout of its job file, at most what the node allows.
    KillTimeoutIsThatOfJobFile: "kill_timeout_is_that_of_job_file", [P13], Always;
    /// A task is asked to end by the signal of its job file, whatever it ends for.
    KillSignalIsThatOfJobFile: "kill_signal_is_that_of_job_file", [P13], Always;
    /// A signal for a task that lives is not refused as if it did not, also if it waits to be asked to end, or was.
    LivingTaskTakesSignals: "living_task_takes_signals", [P13 P27], Always;
    /// A task that was to be restarted before it was known to run is restarted when it does.
    RememberedRestartIsCarriedOut: "remembered_restart_is_carried_out", [P13 P26], Always;
    /// Where somebody asks for a restart of what runs of an allocation, nothing of it runs on.
    RestartReachesAllRunningTasks: "restart_reaches_all_running_tasks", [P13 P27], Always;
    /// A task is not killed before its kill_timeout has passed, unless it ended or could not be asked to.
    ForceKillWaitsForKillTimeout: "force_kill_waits_for_kill_timeout", [P13], Always;
    /// A force kill follows when the kill timeout has passed, as soon as it is saved.
    ForceKillFollowsKillTimeout: "force_kill_follows_kill_timeout", [P13], Always;
    /// Every driver request belongs to an allocation that the agent knows.
    DriverEffectHasKnownAlloc: "driver_effect_has_known_alloc", [P2 P5], Always;
    /// A finished allocation starts, stops and signals nothing.
    FinishedAllocHasNoDriverEffects: "finished_alloc_has_no_driver_effects", [P1 P13], Always;
    /// Stops, signals and force kills go only to launches of their own task.
    ForeignProcessIsNotTouched: "foreign_process_is_not_touched", [P5], Always;
    /// A task that can proceed without an answer has proceeded: a stall delays no other task.
    NoProgressNeedsAnotherInput: "no_progress_needs_another_input", [P12 P11], Always;

    // Ends.
    /// A launch is told to have begun once.
    StartIsToldOnce: "start_is_told_once", [P21 P27], Always;
    /// A launch that is told to have ended was told to have begun before.
    EndIsToldAfterStart: "end_is_told_after_start", [P21 P27], Always;
    /// A launch that was told to have begun is told to have ended, before it is forgotten.
    EndIsTold: "end_is_told", [P21 P27], Always;
    /// A task that ended by itself and did not fail ended with code 0 and by no signal.
    SuccessIsCodeZeroWithoutSignal: "success_is_code_zero_without_signal", [P21], Always;
    /// A task that is to run as long as its group does is not done before somebody asks it to end.
    LastingTaskIsNotDone: "lasting_task_is_not_done", [P25], Always;
    /// A reported exit is true, and "unknown" only where it cannot be known.
    ReportedExitMatchesProcessExit: "reported_exit_matches_process_exit", [P21], Always;
    /// Each exit is reported once by one run of the agent.
    ExitIsReportedOnce: "exit_is_reported_once", [P21], Always;
    /// A saved exit is not reported again after a restart of the agent.
    SavedExitIsNotReportedAgain: "saved_exit_is_not_reported_again", [P21], Always;
    /// A saved exit matches the process's exit.
    SavedExitMatchesProcessExit: "saved_exit_matches_process_exit", [P21], Always;
    /// A launch is still recorded when its destroy is sent.
    ExitIsSavedBeforeDestroy: "exit_is_saved_before_destroy", [P2 P21], Always;
    /// Every ended launch is destroyed.
    EndedLaunchIsDestroyed: "ended_launch_is_destroyed", [P14 P13], AtRest;
    /// A launch is forgotten by its driver only after its exit was saved.
    LaunchIsForgottenAfterDestroy: "launch_is_forgotten_after_destroy", [P21 P26], Always;
    /// A forgotten launch is never recovered.
    ForgottenLaunchIsNotRecovered: "forgotten_launch_is_not_recovered", [P26], Always;
    /// A dead task stays dead, and a failed one failed, unless an operator restarts it.
    DeadTaskStaysDead: "dead_task_stays_dead", [P27 P1], Always;
    /// A dead and cleaned-up task has no live process.
    DeadTaskHasNoProcess: "dead_task_has_no_process", [P2 P13], Always;
    /// A task reported as running has a process, or its exit is being delivered.
    RunningTaskHasProcess: "running_task_has_process", [P4 P27], Always;
    /// The reported task state matches the task's phase.
    TaskStateMatchesPhase: "task_state_matches_phase", [P27], Always;

    // Sessions beside a task.
    /// A session opens only while its task runs and was not asked to end, beside the launch that runs.
    SessionOpensOnlyWhileTaskRuns: "session_opens_only_while_task_runs", [P5 P24], Always;
    /// A session in a task that lives is not refused as if it did not, also if it waits to be asked to end.
    LivingTaskTakesSessions: "living_task_takes_sessions", [P27], Always;
    /// There are never more sessions than the limits allow, for one allocation and in all.
    SessionsAreBounded: "sessions_are_bounded", [P15], Always;
    /// No session outlives its launch, neither in the world nor in what the agent holds.
    SessionEndsWithItsLaunch: "session_ends_with_its_launch", [P2 P14], Always;
    /// A session that ended is held no longer, also if its driver never answered.
    EndedSessionIsForgotten: "ended_session_is_forgotten", [P11 P15], AtRest;
    } };
}
