//! What a task has when it starts, and what becomes of that while it runs.

macro_rules! needs {
    ($next:ident $($more:ident)* => $($rows:tt)*) => { $next! { $($more)* => $($rows)*
    // Directories, artifacts and payloads.
    /// A task starts only when its directories exist.
    StartHasItsDirectories: "start_has_its_directories", [P7], Always;
    /// Every live process has its directories.
    LiveProcessHasItsDirectories: "live_process_has_its_directories", [P7 P14], AtRest;
    /// A task starts only after its artifacts were fetched.
    StartHasItsArtifacts: "start_has_its_artifacts", [P7], Always;
    /// Artifacts are fetched only when the task's directory exists.
    ArtifactsAreFetchedIntoExistingTaskDir: "artifacts_are_fetched_into_existing_task_dir", [P7], Always;
    /// A task of a dispatched job starts with its payload written.
    StartHasItsDispatchPayload: "start_has_its_dispatch_payload", [P7], Always;
    /// A dispatch payload is written once, before the first start of its task.
    DispatchPayloadIsWrittenOnce: "dispatch_payload_is_written_once", [P24 P26], Always;
    /// A task starts with the variables, the share of the processor, the memory and the logs of its job file, and on the cores that
    /// its allocation has for it.
    StartIsThatOfJobFile: "start_is_that_of_job_file", [P3 P7], Always;
    /// A task that lives was started with the variables of the version that its allocation has.
    LiveTaskHasEnvOfItsVersion: "live_task_has_env_of_its_version", [P3], AtRest;
    /// The environment of a dispatched task has the parent job and every meta key that a dispatch may set.
    StartEnvHasDispatchMeta: "start_env_has_dispatch_meta", [P7], Always;
    /// Task hooks run only when the allocation's directory exists.
    TaskHooksRunAfterAllocHooks: "task_hooks_run_after_alloc_hooks", [P7 P11], Always;
    /// A once-only hook does not run again after it was saved as done.
    DoneHookIsNotRunAgain: "done_hook_is_not_run_again", [P24 P26], Always;

    // Templates.
    /// A task starts with its current templates rendered and recorded.
    StartHasItsTemplates: "start_has_its_templates", [P7 P29], Always;
    /// Each template change is applied to a task once, by its change mode.
    TemplateChangeIsAppliedOnce: "template_change_is_applied_once", [P29], Always;
    /// A running task has the current rendering of its templates.
    TaskHasCurrentTemplates: "task_has_current_templates", [P29], AtRest;
    /// Templates are rendered as the job file says, and read the variables of the job that theirs was made of.
    RenderingIsThatOfJobFile: "rendering_is_that_of_job_file", [P29 P7], Always;
    /// A rendering that misses nothing any more is awaited no longer than all other work.
    RenderingHasALimit: "rendering_has_a_limit", [P11], Always;
    /// A change script runs once for each template change that its task has not seen.
    ChangeScriptRunsForTemplateChange: "change_script_runs_for_template_change", [P29], Always;
    /// A change script runs only while its task runs, and never twice at once.
    ChangeScriptRunsOnlyWhileTaskRuns: "change_script_runs_only_while_task_runs", [P29 P24], Always;
    /// A task whose change script failed fatally is killed, by this agent or the next.
    FatalChangeScriptKillsTask: "fatal_change_script_kills_task", [P29 P7], Always;
    /// The templates of a running task are watched if they can change.
    TemplatesOfRunningTaskAreWatched: "templates_of_running_task_are_watched", [P15 P29], AtRest;
    /// The templates of a dead task are not watched.
    TemplatesOfDeadTaskAreNotWatched: "templates_of_dead_task_are_not_watched", [P14 P15], AtRest;
    /// The template watch of a running task keeps its settings while the allocation stops: a stop runs no update hook.
    StopRunsNoUpdateHook: "stop_runs_no_update_hook", [P24 P29], Always;
    /// The template watch of a running task uses the wait times of its current job version.
    TemplateWatchUsesCurrentJobVersion: "template_watch_uses_current_job_version", [P3 P29], AtRest;

    // Tokens.
    /// A task starts with identity tokens issued for that start.
    StartHasItsIdentityTokens: "start_has_its_identity_tokens", [P7], Always;
    /// A running task's token is made anew when half of its time is over, and no sooner.
    TokenIsNotRenewedBeforeItsTime: "token_is_not_renewed_before_its_time", [P22], Always;
    /// Tokens that could not be made anew are asked for again soon.
    FailedRenewalIsRepeatedInTime: "failed_renewal_is_repeated_in_time", [P22 P11], Always;
    /// Servers that refuse to sign the tokens of a start are asked again after a pause that doubles, and not later.
    RefusedSigningIsRepeatedInTime: "refused_signing_is_repeated_in_time", [P22 P11], Always;
    /// Each renewed token is applied to a task once, by its change mode.
    RenewedTokenIsAppliedOnce: "renewed_token_is_applied_once", [P29], Always;
    /// A token's renewal is due before it expires.
    TokenIsRenewedBeforeExpiry: "token_is_renewed_before_expiry", [P11], Always;
    /// A running task has its renewed tokens applied by its change mode.
    TaskHasCurrentToken: "task_has_current_token", [P29], AtRest;
    /// A running task has tokens that have not expired.
    TokenIsValid: "token_is_valid", [P11], AtRest;

    // Devices.
    /// A task with devices starts with the whole reservation of their plugins, also after a restart of the agent.
    StartHasItsDevices: "start_has_its_devices", [P7], Always;
    /// A device plugin is asked to reserve exactly the devices that the allocation holds for the task.
    ReservedDeviceIsHeld: "reserved_device_is_held", [P14], Always;
    /// Only an existing, healthy device is assigned.
    OnlyHealthyDeviceIsAssigned: "only_healthy_device_is_assigned", [P7], Always;

    // Networks.
    /// The environment of a task has the ports of its allocation.
    StartEnvHasPorts: "start_env_has_ports", [P7], Always;
    /// A task starts in the network of its allocation, which is there and whole.
    StartHasItsNetwork: "start_has_its_network", [P7], Always;
    /// The network of an allocation is made only after its record was saved.
    NetworkIsBuiltAfterAllocIsSaved: "network_is_built_after_alloc_is_saved", [P14], Always;
    /// A network is removed only after the last task of its allocation ended, and that was saved.
    NetworkWithLiveProcessIsNotRemoved: "network_with_live_process_is_not_removed", [P7 P14], Always;
    /// No two networks have an address or a port of the host in common.
    NetworkHasOneHolder: "network_has_one_holder", [P8 P19], Always;
    /// Every network belongs to an allocation that is not gone.
    EveryNetworkHasLivingAlloc: "every_network_has_living_alloc", [P2 P14], AtRest;

    // Volumes.
    /// A task starts only when the node has its volumes, and may write if it does not only read; it finds them where
    /// its variables and links say.
    StartHasItsVolumes: "start_has_its_volumes", [P7], Always;
    /// An allocation is placed only on a node that has its volumes as it needs them.
    PlacedAllocHasItsVolumes: "placed_alloc_has_its_volumes", [P7], Always;
    /// No job waits for a volume that the node has.
    NoWaitForPresentVolume: "no_wait_for_present_volume", [P3 P11], AtRest;
    /// A volume is saved as pending before its directory is made, and as deleted before that is removed.
    VolumeIsSavedBeforeWork: "volume_is_saved_before_work", [P2 P6], Always;
    /// The directory of a volume is removed only when no process of an allocation that asks for it lives.
    VolumeInUseIsNotRemoved: "volume_in_use_is_not_removed", [P14 P17], Always;
    /// Each directory that was made for a volume belongs to one that is remembered.
    NoVolumeIsOrphaned: "no_volume_is_orphaned", [P2], AtRest;
    /// A volume that is made or registered gets ready, or is refused; one that is ready has its directory.
    VolumeHasItsDirectory: "volume_has_its_directory", [P6 P11], AtRest;
    } };
}
