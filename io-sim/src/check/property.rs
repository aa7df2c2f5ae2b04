//! The properties by name: what each says, which classes it belongs to, and when it is checked.
//!
//! The classes are what any agent of a node owes its users. A crash is at any point between two
//! effects; "in the end" means within a stated time after the last trouble.
//!
//! | class | what holds |
//! |---|---|
//! | P1 | nothing saved or acknowledged as terminal starts again, whatever crashes |
//! | P2 | what Drover made belongs to a known task, or is removed |
//! | P3 | in the end what runs is what is desired, by the newest version and never by an older one |
//! | P4 | a restored agent finds, restarts or gives up each task; none ever runs twice at once |
//! | P5 | what is not proved to be ours is not touched |
//! | P6 | after a crash the store holds the last acknowledged state, whole |
//! | P7 | what a task needs exists before each of its starts |
//! | P8 | no two live allocations share an address or a port of the host |
//! | P11 | whatever waits has a deadline or a named thing that it waits for |
//! | P12 | a stall delays nothing else; the core answers at once |
//! | P13 | a stop ends in a force kill, and a replacement waits until no process lives |
//! | P14 | what was acquired is released exactly once, and not before its user is gone |
//! | P15 | what is kept is bounded by what runs and by the configured limits |
//! | P17 | only terminal things are collected, and no more than needed |
//! | P19 | a port is assigned again only when nothing can hold it |
//! | P21 | a reported exit is true, reported once, and "unknown" where it cannot be known |
//! | P22 | a node and the servers of its cluster agree again after any silence, and say no more than they need to |
//! | P23 | an agent that shuts down leaves what its mode promises |
//! | P24 | the order of a group's life; hooks neither skipped nor run twice |
//! | P25 | the restart budget is never exceeded, nor new because the agent is |
//! | P26 | doing again what a crash left open changes nothing |
//! | P27 | reported state only goes forward, and in the end is the truth |
//! | P28 | no secret is readable by others |
//! | P29 | each template change is applied to a task once, by its change mode |
//! | P30 | the same inputs lead to the same effects |
//!
//! P9 (storage plugins), P10 (versions of the agent), P16 (logs), P18 (attribution) and P20 (which processors the kernel
//! lets a task have) are about parts that the simulated world does not have: tests with the real ones stand for them.

/// What an agent owes its users. The module's table says which is which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// No resurrection.
    P1,
    /// No orphan.
    P2,
    /// The wanted runs.
    P3,
    /// Restoring is total, and nothing runs twice.
    P4,
    /// Only ours is touched.
    P5,
    /// The store survives.
    P6,
    /// Needs are there first.
    P7,
    /// Addresses are unique.
    P8,
    /// Nothing is stuck.
    P11,
    /// Nothing hinders another.
    P12,
    /// Stops escalate.
    P13,
    /// Acquired is released.
    P14,
    /// Memory is bounded.
    P15,
    /// The ended are kept.
    P17,
    /// Ports are held.
    P19,
    /// Exits are reported truly.
    P21,
    /// Node and servers agree.
    P22,
    /// Ends of agents.
    P23,
    /// Order of life.
    P24,
    /// Restart budget.
    P25,
    /// Again is once.
    P26,
    /// Reports go forward.
    P27,
    /// Secrets are kept.
    P28,
    /// Changes are applied once.
    P29,
    /// Determinism.
    P30,
}

/// When a property is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// At each effect or after each step.
    Always,
    /// When the trouble is over and enough time has passed.
    AtRest,
    /// It is no promise but a situation that searching has to reach now and then.
    Sometimes,
}

macro_rules! properties {
    ($($(#[doc = $about:literal])+ $name:ident: $text:literal, [$($class:ident)*], $kind:ident;)*) => {
        /// A property of an agent in its world.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Property {
            $($(#[doc = $about])+ $name,)*
        }

        impl Property {
            /// Every property.
            pub const ALL: &[Property] = &[$(Property::$name,)*];

            /// The name that violations carry.
            pub const fn name(self) -> &'static str {
                match self { $(Property::$name => $text,)* }
            }

            /// What it says.
            pub const fn about(self) -> &'static str {
                match self { $(Property::$name => concat!($($about),+),)* }
            }

            /// Which classes it belongs to; none if it is about the scenario itself.
            pub const fn classes(self) -> &'static [Class] {
                match self { $(Property::$name => &[$(Class::$class,)*],)* }
            }

            /// When it is checked.
            pub const fn kind(self) -> Kind {
                match self { $(Property::$name => Kind::$kind,)* }
            }
        }
    };
}

impl From<Property> for &'static str {
    fn from(property: Property) -> &'static str {
        property.name()
    }
}

properties! {
    // Starts.
    /// A launch id is saved before its start is sent to the driver.
    LaunchIsSavedBeforeStart: "launch_is_saved_before_start", [P1 P2], Always;
    /// A task does not start once its allocation or the task itself is saved or reported as terminal.
    NoStartAfterAllocIsTerminal: "no_start_after_alloc_is_terminal", [P1], Always;
    /// A restored agent starts nothing that was saved as terminal, unless an operator asked for it.
    RestoredAgentStartsNothingTerminal: "restored_agent_starts_nothing_terminal", [P1], Always;
    /// A task starts only when its directories exist.
    StartHasItsDirectories: "start_has_its_directories", [P7], Always;
    /// A task starts only after its artifacts were fetched.
    StartHasItsArtifacts: "start_has_its_artifacts", [P7], Always;
    /// A task of a dispatched job starts with its payload written.
    StartHasItsDispatchPayload: "start_has_its_dispatch_payload", [P7], Always;
    /// A dispatch payload is written once, before the first start of its task.
    DispatchPayloadIsWrittenOnce: "dispatch_payload_is_written_once", [P24 P26], Always;
    /// The environment of a dispatched task has the parent job and every meta key that a dispatch may set.
    StartEnvHasDispatchMeta: "start_env_has_dispatch_meta", [P7], Always;
    /// A periodic job runs no allocation itself.
    PeriodicJobNeverRuns: "periodic_job_never_runs", [P3], Always;
    /// A time of a periodic job is launched once, whatever crashes and however the clock is set.
    NoTimeIsLaunchedTwice: "no_time_is_launched_twice", [P1 P26], Always;
    /// A launch by the clock bears a time that fits an expression of its job.
    LaunchHasATimeOfItsJob: "launch_has_a_time_of_its_job", [P3], Always;
    /// A launch is on time, or it is the latest that was missed and its job wants that.
    OnlyTheLatestMissedTimeIsLaunched: "only_the_latest_missed_time_is_launched", [P3], Always;
    /// Each time of a periodic job is launched when it comes, unless an earlier launch overlaps it.
    LaunchIsOnTime: "launch_is_on_time", [P3 P11], Always;
    /// Launches of a job that prohibits overlap do not overlap.
    LaunchesDoNotOverlap: "launches_do_not_overlap", [P3], Always;
    /// What the tag of an image means is reason for one new version of a job, until the tag is moved again.
    MovedTagMakesOneVersion: "moved_tag_makes_one_version", [P3 P26], Always;
    /// What the tag of an image means is found out when the next time of its task came after it was moved.
    MovedTagIsFound: "moved_tag_is_found", [P3 P11], AtRest;
    /// A parameterized job runs no allocation itself.
    ParameterizedJobNeverRuns: "parameterized_job_never_runs", [P3], Always;
    /// Artifacts are fetched only when the task's directory exists.
    ArtifactsAreFetchedIntoExistingTaskDir: "artifacts_are_fetched_into_existing_task_dir", [P7], Always;
    /// Task hooks run only when the allocation's directory exists.
    TaskHooksRunAfterAllocHooks: "task_hooks_run_after_alloc_hooks", [P7 P11], Always;
    /// A task of a group with a sticky disk starts with the data of the previous allocation.
    StickyDiskMovesToReplacement: "sticky_disk_moves_to_replacement", [P7 P17], Always;
    /// A sticky disk moves only when no process of its holder runs, or the wait for it timed out.
    StickyDiskMovesWhenUnused: "sticky_disk_moves_when_unused", [P7 P13], Always;
    /// A task starts only after the previous allocation on another node is terminal.
    NoStartWhilePreviousAllocRunsOnOtherNode: "no_start_while_previous_alloc_runs_on_other_node", [P7 P13], Always;
    /// A task starts with the disk fetched from the previous node, unless that node lost it or fetching failed for
    /// good.
    DiskOfPreviousNodeIsFetched: "disk_of_previous_node_is_fetched", [P7 P17], Always;
    /// A disk of another node is fetched only when no process writes to it.
    DiskOfPreviousNodeIsFetchedWhenUnused: "disk_of_previous_node_is_fetched_when_unused", [P7 P13], Always;
    /// No disk of another node is fetched after a replacement has run here.
    NoOlderDiskReplacesNewer: "no_older_disk_replaces_newer", [P17], Always;
    /// A fetched disk is not hidden by older local data.
    FetchedDiskIsNotHiddenByLocalDisk: "fetched_disk_is_not_hidden_by_local_disk", [P17], Always;
    /// Requests to another node are separated by a backoff.
    RequestsToOtherNodesHaveABackoff: "requests_to_other_nodes_have_a_backoff", [P12], Always;
    /// Lifecycle stages run in order: prestart, main, poststart, poststop.
    LifecycleStagesRunInOrder: "lifecycle_stages_run_in_order", [P24], Always;
    /// A task that runs to completion is not run again after success, unless an operator asked for it.
    CompleteBatchAllocIsNotRunAgain: "complete_batch_alloc_is_not_run_again", [P1], Always;
    /// A complete copy of a batch job gets no other allocation of the same job version.
    CompleteBatchCopyIsNotPlacedAgain: "complete_batch_copy_is_not_placed_again", [P1 P3], Always;
    /// What starts has no slot, port, device or core in common with anything of another allocation that lives,
    /// and CPU, memory and disk space are enough for all of them, on a node that never had more.
    NoStartWhileClaimIsHeld: "no_start_while_claim_is_held", [P4 P8 P13 P14 P19], Always;
    /// Who is preempted by one that may is of lower priority by the margin, is older, holds something of what that
    /// one gets, and has work to do.
    PreemptedAllocHasLowerPriority: "preempted_alloc_has_lower_priority", [P3 P12], Always;
    /// A system job starts one allocation on a node.
    SystemJobHasOneAllocPerNode: "system_job_has_one_alloc_per_node", [P3], Always;
    /// A launch id is started at most once.
    LaunchIdIsStartedOnce: "launch_id_is_started_once", [P4 P26], Always;
    /// A task has at most one live process.
    TaskHasOneLiveProcess: "task_has_one_live_process", [P4], Always;

    /// An allocation past its max_run_duration starts nothing, not even poststop tasks.
    TimedOutAllocStartsNothing: "timed_out_alloc_starts_nothing", [P1 P24], Always;
    /// A task with an unreadable record is not started again.
    TaskWithUnreadableRecordIsNotStarted: "task_with_unreadable_record_is_not_started", [P6 P1 P4], Always;

    // Policies of job files.
    /// The pause before a restart is the one of the task's restart policy, and at most a quarter longer.
    RestartPauseIsThatOfPolicy: "restart_pause_is_that_of_policy", [P25], Always;
    /// A pause before a restart ends when it was told to, also if another agent goes on with it.
    RestartPauseGoesOnAfterAgentRestart: "restart_pause_goes_on_after_agent_restart", [P25 P26], Always;
    /// A task fails by its restart policy only when the attempts of the interval are used up.
    RestartBudgetIsUsedInFull: "restart_budget_is_used_in_full", [P25], Always;
    /// A start that the driver calls hopeless is not repeated, unless somebody asks for it.
    HopelessStartIsNotRepeated: "hopeless_start_is_not_repeated", [P25], Always;
    /// A start that failed, as the disk says, is not looked for by another agent.
    FailedStartIsNotForgotten: "failed_start_is_not_forgotten", [P4 P25], Always;
    /// A task that is asked to end gets the kill_timeout of its job file, at most what the node allows.
    KillTimeoutIsThatOfJobFile: "kill_timeout_is_that_of_job_file", [P13], Always;
    /// A task is not killed before its kill_timeout has passed, unless it ended or could not be asked to.
    ForceKillWaitsForKillTimeout: "force_kill_waits_for_kill_timeout", [P13], Always;
    /// A launch is told to have begun once.
    StartIsToldOnce: "start_is_told_once", [P21 P27], Always;
    /// A launch that is told to have ended was told to have begun before.
    EndIsToldAfterStart: "end_is_told_after_start", [P21 P27], Always;
    /// A launch that was told to have begun is told to have ended, before it is forgotten.
    EndIsTold: "end_is_told", [P21 P27], Always;
    /// A task that ended by itself and did not fail ended with code 0 and by no signal.
    SuccessIsCodeZeroWithoutSignal: "success_is_code_zero_without_signal", [P21], Always;
    /// A failed allocation is not replaced before the pause of its reschedule policy is over.
    ReplacementWaitsForPolicyDelay: "replacement_waits_for_policy_delay", [P3], Always;
    /// A failed allocation waits no longer for its replacement than its reschedule policy says.
    ReplacementComesAfterPolicyDelay: "replacement_comes_after_policy_delay", [P3 P11], Always;
    /// A failed allocation is replaced as long as its reschedule policy allows it.
    FailedAllocIsReplaced: "failed_alloc_is_replaced", [P3 P11], AtRest;
    /// An allocation becomes unhealthy because a task failed, its deadline has passed, or somebody says so.
    UnhealthyAllocHasACause: "unhealthy_alloc_has_a_cause", [P27], Always;
    /// Whether an allocation of a roll-out is healthy is decided by its healthy_deadline.
    HealthIsDecidedInTime: "health_is_decided_in_time", [P11 P27], Always;

    // Templates.
    /// A task starts with its current templates rendered and recorded.
    StartHasItsTemplates: "start_has_its_templates", [P7 P29], Always;
    /// Each template change is applied to a task once, by its change mode.
    TemplateChangeIsAppliedOnce: "template_change_is_applied_once", [P29], Always;
    /// A running task has the current rendering of its templates.
    TaskHasCurrentTemplates: "task_has_current_templates", [P29], AtRest;
    /// A change script runs once for each template change that its task has not seen.
    ChangeScriptRunsForTemplateChange: "change_script_runs_for_template_change", [P29], Always;
    /// A change script runs only while its task runs, and never twice at once.
    ChangeScriptRunsOnlyWhileTaskRuns: "change_script_runs_only_while_task_runs", [P29 P24], Always;
    /// A task whose change script failed fatally is killed, by this agent or the next.
    FatalChangeScriptKillsTask: "fatal_change_script_kills_task", [P29 P7], Always;
    /// A session opens only while its task runs, beside the launch that runs.
    SessionOpensOnlyWhileTaskRuns: "session_opens_only_while_task_runs", [P5 P24], Always;
    /// There are never more sessions than the limits allow, for one allocation and in all.
    SessionsAreBounded: "sessions_are_bounded", [P15], Always;
    /// No session outlives its launch, neither in the world nor in what the agent holds.
    SessionEndsWithItsLaunch: "session_ends_with_its_launch", [P2 P14], Always;
    /// A session that ended is held no longer, also if its driver never answered.
    EndedSessionIsForgotten: "ended_session_is_forgotten", [P11 P15], AtRest;
    /// The templates of a running task are watched if they can change.
    TemplatesOfRunningTaskAreWatched: "templates_of_running_task_are_watched", [P15 P29], AtRest;
    /// The templates of a dead task are not watched.
    TemplatesOfDeadTaskAreNotWatched: "templates_of_dead_task_are_not_watched", [P14 P15], AtRest;

    // Variables.
    /// A variable changes only if the request names its current index, or none.
    VariableChangeChecksIndex: "variable_change_checks_index", [P6], Always;
    /// A restored agent has exactly the variables that were saved.
    VariablesSurviveAgentRestart: "variables_survive_agent_restart", [P6], Always;

    /// Operators of an agent are told once that the disk fills up, and once that this is over.
    DiskPressureIsToldOnce: "disk_pressure_is_told_once", [P27], Always;

    // Namespaces.
    /// A restored agent knows the namespaces that were saved, as they were described last.
    NamespacesSurviveAgentRestart: "namespaces_survive_agent_restart", [P6], Always;
    /// A task starts only in a namespace that is saved or configured.
    StartIsInKnownNamespace: "start_is_in_known_namespace", [P2 P3], Always;
    /// Whoever brings work into a namespace that is not there, or that does not allow its driver, is refused.
    JobWithoutHomeIsRefused: "job_without_home_is_refused", [P3], Always;
    /// When a deletion of a namespace is answered, no process of its jobs lives.
    DeletedNamespaceIsEmpty: "deleted_namespace_is_empty", [P14], Always;
    /// Each job that is not dead, and each variable, lies in a namespace that is there.
    ContentHasItsNamespace: "content_has_its_namespace", [P3], AtRest;

    // Access control of the API.
    /// A restored agent has exactly the policies and tokens that were saved, less what expired.
    AclSurvivesAgentRestart: "acl_survives_agent_restart", [P6], Always;
    /// Nobody is given a first token where there was one.
    FirstTokenIsMadeOnce: "first_token_is_made_once", [P6], Always;
    /// When the deletion of a token was answered, its secret lets nobody in, now and after each restart.
    DeletedTokenLetsNobodyIn: "deleted_token_lets_nobody_in", [P6], Always;
    /// A token goes when its time is over.
    ExpiredTokenIsRemoved: "expired_token_is_removed", [P15], AtRest;

    /// The template watch of a running task keeps its settings while the allocation stops: a stop runs no update hook.
    StopRunsNoUpdateHook: "stop_runs_no_update_hook", [P24 P29], Always;
    /// The template watch of a running task uses the wait times of its current job version.
    TemplateWatchUsesCurrentJobVersion: "template_watch_uses_current_job_version", [P3 P29], AtRest;

    // Services.
    /// A registered service belongs to a running task, or to a group whose task restarts, that is not being stopped.
    NoServiceRegisteredForDeadTask: "no_service_registered_for_dead_task", [P14 P27], Always;
    /// A registered service has the tags of its job file, those for canaries as long as its allocation is one.
    ServiceTagsAreThoseOfJobFile: "service_tags_are_those_of_job_file", [P3 P27], Always;
    /// A change of services raises their index.
    ServiceChangeRaisesIndex: "service_change_raises_index", [P27], Always;

    // Checks.
    /// A check runs only while a task that it is about runs.
    CheckRunsOnlyWhileItsTaskRuns: "check_runs_only_while_its_task_runs", [P5 P24], Always;
    /// A check runs once at a time.
    CheckRunsOnceAtATime: "check_runs_once_at_a_time", [P15], Always;
    /// A check of a running task runs within its interval, whatever became of the run before.
    RunningTaskIsChecked: "running_task_is_checked", [P11 P27], Always;
    /// A check restarts its tasks exactly when the numbers of the job file say so.
    CheckRestartFollowsJobFile: "check_restart_follows_job_file", [P25], Always;
    /// An allocation that waits for its checks is healthy only after they passed for min_healthy_time.
    HealthyAllocPassesItsChecks: "healthy_alloc_passes_its_checks", [P27], Always;
    /// The checks of running tasks pass, and those of others do not run.
    ChecksPassAtRest: "checks_pass_at_rest", [P27 P14], AtRest;
    /// A task waits for services only while one of them is not healthy.
    NoWaitForHealthyServices: "no_wait_for_healthy_services", [P7 P11], AtRest;

    // Drains.
    /// While the node is ineligible or drained no allocation is made.
    IneligibleNodePlacesNothing: "ineligible_node_places_nothing", [P3], Always;
    /// A drain stops services in turns, batch jobs at its deadline, system jobs after all others, and no ignored ones.
    DrainTakesTurns: "drain_takes_turns", [P3 P24], Always;
    /// At the deadline of a drain all that is left is told to end, by this agent or the next.
    DrainDeadlineIsKept: "drain_deadline_is_kept", [P3 P11], Always;
    /// A drain is over only when nothing is left that it is to stop, or when somebody calls it off.
    DrainIsOverWhenNothingIsLeft: "drain_is_over_when_nothing_is_left", [P2 P27], Always;
    /// A drain ends, unless a batch job goes on before its deadline.
    DrainEnds: "drain_ends", [P11], AtRest;
    /// No job waits for a node to be eligible that is.
    JobsWaitOnlyForClosedNode: "jobs_wait_only_for_closed_node", [P3 P11], AtRest;
    /// The node has the metadata that was applied, over that of its configuration.
    NodeHasAppliedMeta: "node_has_applied_meta", [P6 P27], Always;
    /// The scheduler has the settings that were set last, and placement goes by them.
    SchedulerHasItsSettings: "scheduler_has_its_settings", [P6 P27], Always;
    /// While registrations are rejected nobody's job is taken in.
    RejectedRegistrationBringsNoJob: "rejected_registration_brings_no_job", [P27], Always;
    /// No job waits for a constraint that the node fulfils.
    NoWaitForFulfilledConstraint: "no_wait_for_fulfilled_constraint", [P3 P11], AtRest;

    // Tokens.
    /// A task starts with identity tokens issued for that start.
    StartHasItsIdentityTokens: "start_has_its_identity_tokens", [P7], Always;
    /// Each renewed token is applied to a task once, by its change mode.
    RenewedTokenIsAppliedOnce: "renewed_token_is_applied_once", [P29], Always;
    /// A token's renewal is due before it expires.
    TokenIsRenewedBeforeExpiry: "token_is_renewed_before_expiry", [P11], Always;
    /// A running task has its renewed tokens applied by its change mode.
    TaskHasCurrentToken: "task_has_current_token", [P29], AtRest;
    /// A running task has tokens that have not expired.
    TokenIsValid: "token_is_valid", [P11], AtRest;

    // The machine and its devices.
    /// A task with devices starts with the whole reservation of their plugins, also after a restart of the agent.
    StartHasItsDevices: "start_has_its_devices", [P7], Always;
    /// The environment of a task has the ports of its allocation.
    StartEnvHasPorts: "start_env_has_ports", [P7], Always;
    /// A task starts in the network of its allocation, which is there and whole.
    StartHasItsNetwork: "start_has_its_network", [P7], Always;
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
    /// A device plugin is asked to reserve exactly the devices that the allocation holds for the task.
    ReservedDeviceIsHeld: "reserved_device_is_held", [P14], Always;
    /// Only an existing, healthy device is assigned.
    OnlyHealthyDeviceIsAssigned: "only_healthy_device_is_assigned", [P7], Always;
    /// Nothing is placed before the essential fingerprints are known.
    NoPlacementBeforeFingerprints: "no_placement_before_fingerprints", [P7], Always;
    /// A driver's health and attributes match its last fingerprint; vanished attributes are removed.
    DriverStateMatchesLastFingerprint: "driver_state_matches_last_fingerprint", [P27], AtRest;
    /// A driver sets only attributes under its own name.
    DriverSetsOnlyOwnAttributes: "driver_sets_only_own_attributes", [P12], Always;
    /// A placed allocation fits into the node's capacity beside all running ones, and has the cores that it asks
    /// for.
    PlacedAllocFitsCapacity: "placed_alloc_fits_capacity", [P8 P14], Always;
    /// No job waits for ports, devices, CPU, memory, disk space or cores that are free.
    NoWaitForFreeClaim: "no_wait_for_free_claim", [P3 P11], AtRest;
    /// No job that may preempt waits for claims of jobs of lower priority.
    NoWaitForPreemptibleClaim: "no_wait_for_preemptible_claim", [P3], AtRest;
    /// The node's attributes match what its probes find.
    NodeAttributesMatchFingerprints: "node_attributes_match_fingerprints", [P27 P11], AtRest;
    /// The node's devices match what their plugins report.
    NodeDevicesMatchPluginReports: "node_devices_match_plugin_reports", [P27 P11], AtRest;

    // Statistics.
    /// No statistic is negative, infinite, or more than the machine can do.
    StatisticsArePlausible: "statistics_are_plausible", [P27], Always;
    /// What was measured of no running launch is unset in what its allocation uses; what was measured as zero is
    /// zero.
    UnsetStatisticsStayUnset: "unset_statistics_stay_unset", [P27], Always;
    /// A task's usage is that of its launch, an allocation's the sum of its running tasks; current memory is
    /// shown beside its maximum.
    UsageMatchesRunningLaunches: "usage_matches_running_launches", [P27], Always;
    /// An allocation lists each group of its running tasks' devices once, with what was measured of each device.
    EachDeviceGroupIsListedOnce: "each_device_group_is_listed_once", [P27], Always;
    /// Each core that was measured twice is listed with its usage in between.
    CoresAreListedWithUsage: "cores_are_listed_with_usage", [P27], Always;
    /// At rest exactly the running launches are measured.
    EndedLaunchHasNoStatistics: "ended_launch_has_no_statistics", [P27], AtRest;

    // Evaluations.
    /// Every evaluation is planned once the essential fingerprints are known.
    EvaluationCompletesAfterFirstFingerprint: "evaluation_completes_after_first_fingerprint", [P11 P27], Always;
    /// A complete evaluation reports exactly the groups that have unplaced
    /// copies.
    EvaluationReportsPlanResult: "evaluation_reports_plan_result", [P27], Always;
    /// An evaluation counts the copies that its plan made, and those that it could not place.
    EvaluationCountsWhatItsPlanDid: "evaluation_counts_what_its_plan_did", [P27], Always;
    /// A job has one blocked evaluation with the reasons while copies are unplaced, and none
    /// otherwise.
    UnplacedGroupHasOneBlockedEvaluation: "unplaced_group_has_one_blocked_evaluation", [P27 P15], Always;

    /// While a failed allocation waits for its replacement, one evaluation waits with it, and no longer. If it places the
    /// replacement, that is of this evaluation.
    DelayedReplacementHasOneWaitingEvaluation: "delayed_replacement_has_one_waiting_evaluation", [P27 P11], Always;

    /// Registering a job does at once what a dry run just before it says; where that ends nothing, it does
    /// nothing else.
    DryRunForetellsRegistration: "dry_run_foretells_registration", [P27 P3], Always;

    // What is shown.
    /// Job status, running allocations, and counts of tasks by driver and plugin are shown
    /// correctly.
    ViewMatchesWorld: "view_matches_world", [P27], Always;
    /// The agent's own audit of its state finds no contradiction.
    AgentSelfAuditFindsNothing: "agent_self_audit_finds_nothing", [P11], Always;

    // Restarts.
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
    /// A failed allocation is rescheduled at most as often as its policy allows.
    ReschedulesStayWithinPolicy: "reschedules_stay_within_policy", [P25 P3], Always;

    // Stops.
    /// Every driver request belongs to an allocation that the agent knows.
    DriverEffectHasKnownAlloc: "driver_effect_has_known_alloc", [P2 P5], Always;
    /// A group is killed in order: leader, other tasks, sidecars; poststop tasks are not killed.
    KillOrderIsLeaderOthersSidecars: "kill_order_is_leader_others_sidecars", [P24], Always;
    /// A finished allocation starts, stops and signals nothing.
    FinishedAllocHasNoDriverEffects: "finished_alloc_has_no_driver_effects", [P1 P13], Always;
    /// A force kill follows when the kill timeout has passed, as soon as it is saved.
    ForceKillFollowsKillTimeout: "force_kill_follows_kill_timeout", [P13], Always;
    /// Stops, signals and force kills go only to launches of their own task.
    ForeignProcessIsNotTouched: "foreign_process_is_not_touched", [P5], Always;
    /// A task that can proceed without an answer has proceeded: a stall delays no other task.
    NoProgressNeedsAnotherInput: "no_progress_needs_another_input", [P12 P11], Always;

    // Remember before acting.
    /// A kill or an operator's restart is saved before the stop is sent.
    StopIsSavedBeforeKill: "stop_is_saved_before_kill", [P1 P6], Always;
    /// A launch is still recorded when its destroy is sent.
    ExitIsSavedBeforeDestroy: "exit_is_saved_before_destroy", [P2 P21], Always;
    /// A launch is forgotten by its driver only after its exit was saved.
    LaunchIsForgottenAfterDestroy: "launch_is_forgotten_after_destroy", [P21 P26], Always;
    /// A forgotten launch is never recovered.
    ForgottenLaunchIsNotRecovered: "forgotten_launch_is_not_recovered", [P26], Always;
    /// An allocation's directory is built only after its record was saved.
    DirectoryIsBuiltAfterAllocIsSaved: "directory_is_built_after_alloc_is_saved", [P14], Always;
    /// An allocation's directory is removed only after it was saved as being destroyed.
    DestroyingIsSavedBeforeDirectoryRemoval: "destroying_is_saved_before_directory_removal", [P14 P17], Always;
    /// No directory is removed while a process lives in it.
    DirectoryWithLiveProcessIsNotRemoved: "directory_with_live_process_is_not_removed", [P7 P14], Always;
    /// The network of an allocation is made only after its record was saved.
    NetworkIsBuiltAfterAllocIsSaved: "network_is_built_after_alloc_is_saved", [P14], Always;
    /// A network is removed only after the last task of its allocation ended, and that was saved.
    NetworkWithLiveProcessIsNotRemoved: "network_with_live_process_is_not_removed", [P7 P14], Always;
    /// No two networks have an address or a port of the host in common.
    NetworkHasOneHolder: "network_has_one_holder", [P8 P19], Always;
    /// A once-only hook does not run again after it was saved as done.
    DoneHookIsNotRunAgain: "done_hook_is_not_run_again", [P24 P26], Always;
    /// A request is acknowledged only after its change was saved.
    ReplyFollowsSave: "reply_follows_save", [P1 P6], Always;

    // Ends of tasks.
    /// A reported exit is true, and "unknown" only where it cannot be known.
    ReportedExitMatchesProcessExit: "reported_exit_matches_process_exit", [P21], Always;
    /// Each exit is reported once by one run of the agent.
    ExitIsReportedOnce: "exit_is_reported_once", [P21], Always;
    /// A saved exit is not reported again after a restart of the agent.
    SavedExitIsNotReportedAgain: "saved_exit_is_not_reported_again", [P21], Always;
    /// A saved exit matches the process's exit.
    SavedExitMatchesProcessExit: "saved_exit_matches_process_exit", [P21], Always;

    // The state between two inputs.
    /// `poll_timeout` is the earliest deadline of all components.
    PollTimeoutMatchesEarliestDeadline: "poll_timeout_matches_earliest_deadline", [P11], Always;
    /// Every live process belongs to an allocation that the agent knows.
    LiveProcessHasKnownAlloc: "live_process_has_known_alloc", [P2], Always;
    /// Every nonterminal allocation has a deadline, an ungranted claim, or a task that is not dead.
    NonterminalAllocHasDeadlineOrAwaitedEvent: "nonterminal_alloc_has_deadline_or_awaited_event", [P11], Always;
    /// Every task that neither runs nor waits for its stage has a deadline.
    NonterminalTaskHasDeadlineOrAwaitedEvent: "nonterminal_task_has_deadline_or_awaited_event", [P11], Always;
    /// `pending()` names exactly the allocations and tasks that wait, and what for.
    WaitingAllocIsInPending: "waiting_alloc_is_in_pending", [P11], Always;
    /// An allocation waits for exactly its claims that older allocations hold.
    WaitingAllocNamesUngrantedClaims: "waiting_alloc_names_ungranted_claims", [P11 P27], Always;
    /// No allocation waits for a holder that is not stopping.
    AwaitedHolderIsStopping: "awaited_holder_is_stopping", [P11], Always;
    /// A dead and cleaned-up task has no live process.
    DeadTaskHasNoProcess: "dead_task_has_no_process", [P2 P13], Always;
    /// A task reported as running has a process, or its exit is being delivered.
    RunningTaskHasProcess: "running_task_has_process", [P4 P27], Always;
    /// The reported task state matches the task's phase.
    TaskStateMatchesPhase: "task_state_matches_phase", [P27], Always;
    /// After a restart of the agent every launch that may be alive is recovered.
    RestoredLaunchIsRecovered: "restored_launch_is_recovered", [P4], Always;

    // What is reported.
    /// An allocation's status goes forward; complete, failed and lost are final, also when saved.
    ClientStatusNeverGoesBack: "client_status_never_goes_back", [P27 P1], Always;
    /// An allocation that is desired to stop, is terminal, or is being destroyed never runs again.
    TerminalAllocStaysTerminal: "terminal_alloc_stays_terminal", [P27 P1], Always;
    /// A dead task stays dead, and a failed one failed, unless an operator restarts it.
    DeadTaskStaysDead: "dead_task_stays_dead", [P27 P1], Always;
    /// A task has the job version of its allocation.
    TaskHasJobVersionOfAlloc: "task_has_job_version_of_alloc", [P3], Always;
    /// The last report of a driver is its known state.
    LastDriverReportCounts: "last_driver_report_counts", [P3 P27], Always;
    /// No event shows the value of a variable of the job.
    NoEventShowsASecret: "no_event_shows_a_secret", [P28], Always;
    /// No allocation and no job goes back to an older version.
    NoOlderJobVersionIsApplied: "no_older_job_version_is_applied", [P3], Always;
    /// Task events have the time at which they are emitted, are in order, and their number is bounded.
    TaskEventsAreBoundedAndInOrder: "task_events_are_bounded_and_in_order", [P15 P27], Always;
    /// A notified index never goes back.
    BroadcastNeverGoesBack: "broadcast_never_goes_back", [P27], Always;
    /// The index is never below one that was acknowledged, also after a restart of the agent.
    IndexNeverGoesBack: "index_never_goes_back", [P27 P3], Always;

    // Requests.
    /// Each request gets exactly one reply.
    RequestGetsOneReply: "request_gets_one_reply", [P12], Always;
    /// Each reply belongs to a request.
    ReplyBelongsToARequest: "reply_belongs_to_a_request", [P12], Always;
    /// Each refusal has a reason.
    RefusalHasAReason: "refusal_has_a_reason", [P11], Always;

    // The store.
    /// An unchanged record is not written again.
    UnchangedRecordIsNotWritten: "unchanged_record_is_not_written", [P15], Always;
    /// One commit is in flight at a time, numbered in order; a failed one is retried unchanged.
    OneCommitInFlight: "one_commit_in_flight", [P6], Always;
    /// The records of an allocation are removed last: it is terminal, cleaned up, and its directory is removed.
    RecordsAreRemovedAfterDirectory: "records_are_removed_after_directory", [P14 P17], Always;
    /// A collected allocation keeps its record as long as its job version is kept, within the configured
    /// number.
    CollectedAllocKeepsItsRecord: "collected_alloc_keeps_its_record", [P17], Always;
    /// The record of a collected allocation has its outcome and that of its tasks.
    CollectedRecordIsTrue: "collected_record_is_true", [P21 P27], Always;
    /// The number of records of collected allocations stays within its limit.
    CollectedRecordsAreBounded: "collected_records_are_bounded", [P15], Always;
    /// A job is collected only when it is purged, dead and expired, or at a requested GC; an evaluation only
    /// when it is expired or surplus, and not its job's latest.
    OnlyGarbageIsCollected: "only_garbage_is_collected", [P17], Always;
    /// A disk that another node takes over is there until its retention lease runs out.
    LeasedDiskIsKept: "leased_disk_is_kept", [P17 P7], Always;
    /// The record of a disk names allocations of its slot alone, each once and the latest first.
    DiskHasOneLocation: "disk_has_one_location", [P7 P17], Always;
    /// Ended allocations are collected only on request, with their job, or when there are
    /// too many.
    GcCollectsNoMoreThanNeeded: "gc_collects_no_more_than_needed", [P17], Always;

    /// At most the configured number of allocations is being removed at once.
    ParallelRemovalsAreBounded: "parallel_removals_are_bounded", [P17 P12], Always;

    // Versions.
    /// A registered job is its latest version, made anew if it differs from the one before.
    RegisteredJobIsLatest: "registered_job_is_latest", [P3], Always;
    /// A job that is reverted to a version has the specification of that version as its latest.
    RevertBringsVersionBack: "revert_brings_version_back", [P3], Always;
    /// The text that a version was made from is kept as long as the version, and no longer.
    VersionKeepsItsSubmission: "version_keeps_its_submission", [P6 P15], Always;
    /// A job keeps a bounded number of versions besides those that are tagged, stable or in use.
    JobVersionsAreBounded: "job_versions_are_bounded", [P15], Always;
    /// A version with a tag, the last stable one, and the last few are kept.
    NeededVersionIsKept: "needed_version_is_kept", [P6], Always;
    /// A version is stable exactly since its deployment succeeded, or as somebody said.
    StableVersionProvedItself: "stable_version_proved_itself", [P27], Always;

    // Scaling.
    /// A group is scaled exactly if the count is within its bounds and no roll-out is under way.
    ScalingIsBounded: "scaling_is_bounded", [P3], Always;
    /// A group that was scaled has the count that was asked for.
    ScaledGroupHasItsCount: "scaled_group_has_its_count", [P3], Always;
    /// The last scaling events of a group are kept, within their limit.
    ScalingEventsAreKept: "scaling_events_are_kept", [P6 P15], Always;

    // Roll-outs.
    /// A job has at most one active deployment, that of its latest version.
    JobHasOneActiveDeployment: "job_has_one_active_deployment", [P3], Always;
    /// A deployment succeeds only when every copy of every watched group is healthy.
    SuccessfulDeploymentHasAllCopiesHealthy: "successful_deployment_has_all_copies_healthy", [P3], Always;
    /// An allocation is healthy only after its tasks ran for min_healthy_time, or when somebody says so.
    HealthyAllocRanMinHealthyTime: "healthy_alloc_ran_min_healthy_time", [P27], Always;
    /// A rolling update has at most max_parallel copies that are not yet healthy.
    RollingUpdateStaysWithinMaxParallel: "rolling_update_stays_within_max_parallel", [P3], Always;

    /// Until canaries are promoted, nothing else of the new version runs, and nothing of the old one ends for it.
    OldVersionServesUntilPromotion: "old_version_serves_until_promotion", [P3], Always;
    /// Canaries are promoted only when they are healthy and somebody asks, or the group promotes itself.
    CanaryIsPromotedOnRequest: "canary_is_promoted_on_request", [P3], Always;
    /// A paused roll-out starts nothing more.
    PausedDeploymentStartsNothing: "paused_deployment_starts_nothing", [P3], Always;
    /// With auto_revert, a failed roll-out brings the last stable version back, once.
    FailedDeploymentRevertsOnce: "failed_deployment_reverts_once", [P3], Always;

    // Ends of agents.
    /// A stopped agent has no effects.
    StoppedAgentHasNoEffects: "stopped_agent_has_no_effects", [P23], Always;
    /// An agent that shuts down keeping its tasks starts, stops and signals none.
    ShutdownKeepingTasksTouchesNoTask: "shutdown_keeping_tasks_touches_no_task", [P23], Always;
    /// An agent that shuts down stopping its tasks leaves no process, except those that could not be killed.
    ShutdownStoppingTasksLeavesNoProcess: "shutdown_stopping_tasks_leaves_no_process", [P23 P13], Always;

    // Running the core.
    /// The number of steps at one instant is bounded.
    NoLivelock: "no_livelock", [P12], Always;
    /// Nothing panics.
    NoPanic: "no_panic", [P12], Always;
    /// `handle_timeout` changes nothing when nothing is due.
    SpuriousTimeoutChangesNothing: "spurious_timeout_changes_nothing", [P30], Always;
    /// The same inputs lead to the same effects.
    SameInputsSameEffects: "same_inputs_same_effects", [P30], AtRest;

    // Rest.
    /// At rest only unplaceable jobs and delayed reschedules are pending.
    PendingIsEmptyAtRest: "pending_is_empty_at_rest", [P11], AtRest;
    /// Every live process belongs to a running task of an allocation that is desired to run.
    LiveProcessBelongsToRunningAlloc: "live_process_belongs_to_running_alloc", [P2 P3], AtRest;
    /// Every live process has its directories.
    LiveProcessHasItsDirectories: "live_process_has_its_directories", [P7 P14], AtRest;
    /// An allocation that just ended is kept for an interval, however full the disk is.
    FirstDiskUsageCheckWaitsInterval: "first_disk_usage_check_waits_interval", [P17], Always;
    /// How much directories take is measured an interval after the last time.
    DirsAreMeasuredInIntervals: "dirs_are_measured_in_intervals", [P17], Always;
    /// Whose directory is measured to take more than its job file asks for is told so at once.
    OversizedDirectoryIsTold: "oversized_directory_is_told", [P17], Always;
    /// A directory is limited to the size that the job file asks for, once it is there.
    DiskQuotaIsThatOfJobFile: "disk_quota_is_that_of_job_file", [P17], Always;
    /// It is told once until it takes clearly less, and nobody else is.
    OversizedDirectoryIsToldOnce: "oversized_directory_is_told_once", [P17], Always;
    /// Every allocation directory belongs to an allocation that the agent knows.
    EveryDirectoryHasKnownAlloc: "every_directory_has_known_alloc", [P14], AtRest;
    /// Every network belongs to an allocation that is not gone.
    EveryNetworkHasLivingAlloc: "every_network_has_living_alloc", [P2 P14], AtRest;
    /// A disk above its usage limit holds no allocation that could be collected.
    DiskUsageIsBelowLimit: "disk_usage_is_below_limit", [P17 P15], AtRest;
    /// Every ended launch is destroyed.
    EndedLaunchIsDestroyed: "ended_launch_is_destroyed", [P14 P13], AtRest;
    /// The deployment of the latest version has ended, unless something cannot be placed.
    DeploymentsEnd: "deployments_end", [P3], AtRest;
    /// Every copy of a running job has an allocation, is complete, or has a known reason why not.
    WantedCopiesExist: "wanted_copies_exist", [P3], AtRest;
    /// Every running allocation has the latest job version, unless that cannot be placed or its deployment failed.
    RunningAllocHasLatestJobVersion: "running_alloc_has_latest_job_version", [P3], AtRest;
    /// Poststop tasks ran once wherever a main task ran and ended.
    PoststopRunsAfterMainRan: "poststop_runs_after_main_ran", [P24], AtRest;
    /// The store's records match the agent's state.
    StoreMatchesState: "store_matches_state", [P6], AtRest;
    /// The latest time of a periodic job was launched, whatever was missed.
    LatestTimeIsLaunched: "latest_time_is_launched", [P3 P11], AtRest;
    /// The number of finished dispatched jobs of a parent stays within its limit.
    FinishedDispatchedJobsAreCollected: "finished_dispatched_jobs_are_collected", [P15], AtRest;
    /// A dispatch repeated with the same idempotency token returns the same job.
    IdempotencyTokenDispatchesOnce: "idempotency_token_dispatches_once", [P26], AtRest;
    /// Expired, unreferenced evaluations and deployments are collected.
    GarbageIsCollected: "garbage_is_collected", [P15], AtRest;
    /// Each stored record belongs to a job, and job histories stay within their limit.
    StoreHasNoOrphanRecords: "store_has_no_orphan_records", [P15 P14], AtRest;
    /// A group whose leader is dead is stopped.
    GroupStopsWithItsLeader: "group_stops_with_its_leader", [P24], AtRest;
    /// Sidecars are dead when all main tasks are.
    SidecarsStopAfterMainTasks: "sidecars_stop_after_main_tasks", [P24], AtRest;
    /// An allocation with an unreadable record becomes terminal.
    UnreadableTaskIsCleanedUp: "unreadable_task_is_cleaned_up", [P6 P11], AtRest;
    /// A task whose engine is away is given up no sooner than the node's limit for engines.
    EngineIsAwaited: "engine_is_awaited", [P4 P11], Always;
    /// At rest the agent knows of an engine what is true of it.
    EngineIsKnown: "engine_is_known", [P27], AtRest;
    /// A restart of the agent at rest starts, stops and writes nothing.
    AgentRestartAtRestChangesNothing: "agent_restart_at_rest_changes_nothing", [P4 P26], AtRest;
    /// What a scenario waits for happens within its time limit.
    ExpectedOutcomeHappens: "expected_outcome_happens", [], Always;
    /// What a scenario demands holds.
    ScenarioExpectationHolds: "scenario_expectation_holds", [], Always;

    // Situations that searching has to reach.
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
    /// A count is refused.
    SometimesScalingIsRefused: "sometimes_scaling_is_refused", [P3], Sometimes;
    /// The next heartbeat is sent when the time of the last one is over, and no sooner.
    HeartbeatWaitsForItsTime: "heartbeat_waits_for_its_time", [P22], Always;
    /// A node that can reach the servers beats in time: they never give it up.
    ReachableNodeIsNotLost: "reachable_node_is_not_lost", [P22], AtRest;
    /// A call to servers that failed is repeated after a pause.
    FailedCallIsRepeatedAfterAPause: "failed_call_is_repeated_after_a_pause", [P22], Always;
    /// Of each kind of call to the servers at most one is under way.
    CallsOfOneKindFollowEachOther: "calls_of_one_kind_follow_each_other", [P22], Always;
    /// Calls to the servers are few, whatever they answer.
    CallsToServersAreFew: "calls_to_servers_are_few", [P22], Always;
    /// The servers of a reply are handed on if they are others than before, and if there are any.
    NewServersAreHandedOn: "new_servers_are_handed_on", [P22], Always;
    /// A node that the servers acknowledged is not registered again as it is, unless they forgot it.
    UnchangedNodeIsNotRegisteredAgain: "unchanged_node_is_not_registered_again", [P22], Always;
    /// What servers acknowledged of an allocation is not reported again, unless they gave it up.
    UnchangedReportIsNotSentAgain: "unchanged_report_is_not_sent_again", [P22], Always;
    /// A service that servers acknowledged is not registered again as it is, unless they may have lost it.
    UnchangedServiceIsNotRegisteredAgain: "unchanged_service_is_not_registered_again", [P22], Always;
    /// What servers are told of an allocation is true: running if a task was started, over if nothing of it lives.
    ReportToServersIsTrue: "report_to_servers_is_true", [P22 P27], Always;
    /// An allocation of servers starts on the node where they placed it, unless they said that it shall end.
    PlacedAllocStartsWhereItWasPlaced: "placed_alloc_starts_where_it_was_placed", [P22 P4], Always;
    /// What servers said last of an allocation holds, and nothing older.
    PlacedAllocIsAsServersSaid: "placed_alloc_is_as_servers_said", [P22 P3], Always;
    /// In the end node and servers agree on the node, its allocations and what runs.
    NodeAndServersAgree: "node_and_servers_agree", [P22 P3], AtRest;
    /// Servers give a node up that did not beat in time.
    SometimesNodeIsLost: "sometimes_node_is_lost", [P22], Sometimes;
    /// A canary runs.
    SometimesCanaryRuns: "sometimes_canary_runs", [P3], Sometimes;
    /// A canary is promoted.
    SometimesCanaryIsPromoted: "sometimes_canary_is_promoted", [P3], Sometimes;
    /// A failed roll-out brings an earlier version back.
    SometimesDeploymentIsReverted: "sometimes_deployment_is_reverted", [P3], Sometimes;
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
    /// An allocation gives its place to one of higher priority.
    SometimesAllocIsPreempted: "sometimes_alloc_is_preempted", [P3], Sometimes;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn property_names_are_unique_and_match_kind() {
        let names: BTreeSet<_> = Property::ALL.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), Property::ALL.len());
        for property in Property::ALL {
            let probe = property.name().starts_with("sometimes_");
            assert_eq!(probe, property.kind() == Kind::Sometimes, "{property:?}");
            let camel = property.name().replace('_', "");
            assert_eq!(camel, format!("{property:?}").to_lowercase());
        }
    }
}
