//! Situations that searching has to reach now and then: what is never met is not tested.

macro_rules! situations {
    ($next:ident $($more:ident)* => $($rows:tt)*) => { $next! { $($more)* => $($rows)*
    /// A task that survived a crash of the agent is recovered running.
    SometimesTaskIsRecoveredRunning: "sometimes_task_is_recovered_running", [P4], Sometimes;
    /// A task that exited while the agent was down is recovered as exited.
    SometimesTaskIsRecoveredExited: "sometimes_task_is_recovered_exited", [P4], Sometimes;
    /// The agent crashed between saving a launch and its start.
    SometimesLaunchNeverStarted: "sometimes_launch_never_started", [P4], Sometimes;
    /// A network was there when it was to be made.
    SometimesNetworkIsFoundAgain: "sometimes_network_is_found_again", [P4 P26], Sometimes;
    /// A network was half there when it was to be made.
    SometimesHalfNetworkIsCompleted: "sometimes_half_network_is_completed", [P14 P26], Sometimes;
    /// A task was running at a reboot.
    SometimesRebootEndsATask: "sometimes_reboot_ends_a_task", [P4 P21], Sometimes;
    /// A shim is killed before it answers a start.
    SometimesStartIsLost: "sometimes_start_is_lost", [P4 P21], Sometimes;
    /// The outcome of a launch cannot be known.
    SometimesLaunchIsGone: "sometimes_launch_is_gone", [P4 P21], Sometimes;
    /// An exit is delivered before the answer to its start.
    SometimesExitArrivesBeforeStarted: "sometimes_exit_arrives_before_started", [P21], Sometimes;
    /// A commit fails while effects wait for it.
    SometimesCommitFails: "sometimes_commit_fails", [P6], Sometimes;
    /// A stale answer arrives.
    SometimesAnswerIsStale: "sometimes_answer_is_stale", [P26], Sometimes;
    /// A task uses up its restart budget and fails.
    SometimesRestartBudgetIsUsedUp: "sometimes_restart_budget_is_used_up", [P25], Sometimes;
    /// An allocation is collected because of disk pressure.
    SometimesDiskIsUnderPressure: "sometimes_disk_is_under_pressure", [P17], Sometimes;
    /// A replacement gets the sticky disk of the previous allocation.
    SometimesStickyDiskMoves: "sometimes_sticky_disk_moves", [P7], Sometimes;
    /// A task starts with a disk fetched from another node.
    SometimesDiskIsFetched: "sometimes_disk_is_fetched", [P7], Sometimes;
    /// A template change restarts a task.
    SometimesTemplateRestartsTask: "sometimes_template_restarts_task", [P29], Sometimes;
    /// A template change signals a task.
    SometimesTemplateSignalsTask: "sometimes_template_signals_task", [P29], Sometimes;
    /// A template change runs a change script.
    SometimesTemplateRunsChangeScript: "sometimes_template_runs_change_script", [P29], Sometimes;
    /// A time of a periodic job is launched that was missed.
    SometimesMissedTimeIsLaunched: "sometimes_missed_time_is_launched", [P3], Sometimes;
    /// A time of a periodic job is not launched, because an earlier launch overlaps it.
    SometimesLaunchIsSkippedForOverlap: "sometimes_launch_is_skipped_for_overlap", [P3], Sometimes;
    /// A session is open when its task is told to end.
    SometimesSessionEndsWithItsTask: "sometimes_session_ends_with_its_task", [P2], Sometimes;
    /// The first rendering of a template runs its change script.
    SometimesChangeScriptRunsAfterFirstRender: "sometimes_change_script_runs_after_first_render", [P29], Sometimes;
    /// A renewed token restarts a task.
    SometimesTokenRestartsTask: "sometimes_token_restarts_task", [P29], Sometimes;
    /// A renewed token signals a task.
    SometimesTokenSignalsTask: "sometimes_token_signals_task", [P29], Sometimes;
    /// A failed allocation is rescheduled by its policy.
    SometimesFailedAllocIsRescheduled: "sometimes_failed_alloc_is_rescheduled", [P3], Sometimes;
    /// An evaluation that waits for the replacement of a failed allocation is canceled.
    SometimesWaitingEvaluationIsCanceled: "sometimes_waiting_evaluation_is_canceled", [P27], Sometimes;
    /// An allocation is updated in place.
    SometimesAllocIsUpdatedInPlace: "sometimes_alloc_is_updated_in_place", [P3], Sometimes;
    /// A rolling update waits for a copy that is not yet healthy.
    SometimesUpdateWaitsForHealth: "sometimes_update_waits_for_health", [P3], Sometimes;
    /// A roll-out succeeds.
    SometimesDeploymentSucceeds: "sometimes_deployment_succeeds", [P3], Sometimes;
    /// A job goes back to an earlier version.
    SometimesJobIsReverted: "sometimes_job_is_reverted", [P3], Sometimes;
    /// A drain is complete.
    SometimesDrainCompletes: "sometimes_drain_completes", [P3], Sometimes;
    /// A drain stops what is left at its deadline.
    SometimesDrainIsForced: "sometimes_drain_is_forced", [P3], Sometimes;
    /// A registration is refused because its job is another one by now.
    SometimesRegistrationIsStale: "sometimes_registration_is_stale", [P3], Sometimes;
    /// A count is refused.
    SometimesScalingIsRefused: "sometimes_scaling_is_refused", [P3], Sometimes;
    /// Servers give a node up that did not beat in time.
    SometimesNodeIsLost: "sometimes_node_is_lost", [P22], Sometimes;
    /// A canary runs.
    SometimesCanaryRuns: "sometimes_canary_runs", [P3], Sometimes;
    /// A canary is promoted.
    SometimesCanaryIsPromoted: "sometimes_canary_is_promoted", [P3], Sometimes;
    /// A failed roll-out brings an earlier version back.
    SometimesDeploymentIsReverted: "sometimes_deployment_is_reverted", [P3], Sometimes;
    /// The last of several stable versions comes back.
    SometimesEarlierStableVersionIsPassedOver: "sometimes_earlier_stable_version_is_passed_over", [P3], Sometimes;
    /// A roll-out fails.
    SometimesDeploymentFails: "sometimes_deployment_fails", [P3], Sometimes;
    /// A kill signal is ignored, and a force kill follows.
    SometimesForceKillIsNeeded: "sometimes_force_kill_is_needed", [P13], Sometimes;
    /// A task is dead although its destroy keeps failing.
    SometimesDestroyFails: "sometimes_destroy_fails", [P13], Sometimes;
    /// A placement fails.
    SometimesPlacementFails: "sometimes_placement_fails", [P19], Sometimes;
    /// A job asks for more CPU, memory, disk space or cores than are free.
    SometimesResourceIsExhausted: "sometimes_resource_is_exhausted", [P14], Sometimes;
    /// The record of a collected allocation is dropped for a newer one.
    SometimesCollectedRecordExpires: "sometimes_collected_record_expires", [P15], Sometimes;
    /// An allocation is garbage-collected.
    SometimesAllocIsCollected: "sometimes_alloc_is_collected", [P17], Sometimes;
    /// A removal waits for a permit.
    SometimesGcWaitsForPermit: "sometimes_gc_waits_for_permit", [P17], Sometimes;
    /// A plugin's report is invalid and refused.
    SometimesPluginReportIsInvalid: "sometimes_plugin_report_is_invalid", [P12], Sometimes;
    /// Two running tasks of an allocation hold devices of one group.
    SometimesTasksShareDeviceGroup: "sometimes_tasks_share_device_group", [P27], Sometimes;
    /// A counter of a running task went back between two samples.
    SometimesCounterGoesBack: "sometimes_counter_goes_back", [P27], Sometimes;
    /// The evaluation that a purge asked for is still there when the job is not.
    SometimesEvaluationOutlivesItsJob: "sometimes_evaluation_outlives_its_job", [P27], Sometimes;
    /// An evaluation waits for the first fingerprint.
    SometimesEvaluationIsPending: "sometimes_evaluation_is_pending", [P27], Sometimes;
    /// A job waits for the first fingerprint.
    SometimesNodeIsNotFingerprinted: "sometimes_node_is_not_fingerprinted", [P7], Sometimes;
    /// A task with an unreadable record is alive.
    SometimesTaskWithUnreadableRecordLives: "sometimes_task_with_unreadable_record_lives", [P6], Sometimes;
    /// The wall clock is set back while the agent runs.
    SometimesClockIsSetBack: "sometimes_clock_is_set_back", [P25], Sometimes;
    /// An engine dies while containers of it run.
    SometimesEngineDiesBeneathTasks: "sometimes_engine_dies_beneath_tasks", [P4], Sometimes;
    /// A task is looked for while its engine is away.
    SometimesTaskWaitsForItsEngine: "sometimes_task_waits_for_its_engine", [P4 P11], Sometimes;
    /// A check fails.
    SometimesCheckFails: "sometimes_check_fails", [P27], Sometimes;
    /// A check that restarts tasks fails before they are given that long.
    SometimesCheckFailsInItsGrace: "sometimes_check_fails_in_its_grace", [P27], Sometimes;
    /// An allocation gives its place to one of higher priority.
    SometimesAllocIsPreempted: "sometimes_alloc_is_preempted", [P3], Sometimes;
    } };
}
