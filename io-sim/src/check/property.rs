//! The properties by name: what each says, which classes it belongs to, and when it is checked.
//!
//! The classes are what any agent of a node owes its users. A crash is at any point between two
//! effects; "in the end" means within a stated time after the last trouble.
//!
//! | class | what holds |
//! |---|---|
//! | P1 | nothing that was saved or acknowledged as over starts again, whatever crashes |
//! | P2 | what Drover made belongs to a task that is known, or is ended |
//! | P3 | in the end what runs is what is wanted, by the newest word and never by an older one |
//! | P4 | a restored agent finds, restarts or gives up each task; none ever runs twice at once |
//! | P5 | what is not proved ours is not touched |
//! | P6 | after a crash the store holds the last acknowledged state, whole |
//! | P7 | what a task needs is there before each of its starts |
//! | P8 | no two that live share an address or a port of the host |
//! | P11 | whatever waits has a deadline or a named thing that it waits for |
//! | P12 | what hangs delays nobody else; the core answers at once |
//! | P13 | a stop ends in force, and what replaces waits until nothing lives |
//! | P14 | what was acquired is released, exactly once, and no sooner than its user is gone |
//! | P15 | what is kept is bounded by what lives and by what is meant to be kept |
//! | P17 | only what ended is removed, and no more of it than needed |
//! | P19 | a port is given away again only when nobody can hold it |
//! | P21 | what is told of an end is true, told once, and "unknown" where nobody can know |
//! | P23 | an agent that ends leaves what the way of ending promises |
//! | P24 | the order of a group's life; hooks neither skipped nor run twice |
//! | P25 | the restart budget is never exceeded, nor new because the agent is |
//! | P26 | doing again what a crash left open changes nothing |
//! | P27 | what is reported only goes forward, and in the end is the truth |
//! | P28 | no secret stands where others read |
//! | P29 | of each change of a template a task is told once, in the way that it wants |
//! | P30 | the same inputs lead to the same effects |
//!
//! P9 (shared resources), P10 (versions), P16 (logs), P18 (attribution), P20 (processors) and P22
//! (partitions) are about parts that the simulated world does not have yet.

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
    /// Ends are told truly.
    P21,
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
    /// Changes are told once.
    P29,
    /// Determinism.
    P30,
}

/// When a property is looked at.
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

            /// When it is looked at.
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
    /// When a start leaves the agent, the disk holds its launch id.
    AStartIsRememberedFirst: "a_start_is_remembered_first", [P1 P2], Always;
    /// What is saved or reported as over does not start.
    NoStartAfterTheEnd: "no_start_after_the_end", [P1], Always;
    /// What was saved as over starts in no later life of the agent, unless somebody asked.
    NoLaterLifeStartsWhatIsOver: "no_later_life_starts_what_is_over", [P1], Always;
    /// A task starts in directories that are there.
    AStartFindsItsDirectories: "a_start_finds_its_directories", [P7], Always;
    /// A task starts when what it needs was fetched.
    AStartFindsItsArtifacts: "a_start_finds_its_artifacts", [P7], Always;
    /// A task starts with what the dispatch of its job brought for it.
    AStartFindsItsPayload: "a_start_finds_its_payload", [P7], Always;
    /// What a dispatch brought is written before the first start of its task, and not again.
    APayloadIsWrittenBeforeAllStarts: "a_payload_is_written_before_all_starts", [P24 P26], Always;
    /// A task of a dispatched job is told the parent, and every key that a dispatch may bring.
    AStartIsToldItsDispatch: "a_start_is_told_its_dispatch", [P7], Always;
    /// A job that others are made of runs nothing itself.
    NoMouldRuns: "no_mould_runs", [P3], Always;
    /// What a task needs is fetched when its directory is there.
    ArtifactsFindTheirDirectory: "artifacts_find_their_directory", [P7], Always;
    /// A task is set up when the directory of its allocation is there.
    TasksAreSetUpInTheirAllocation: "tasks_are_set_up_in_their_allocation", [P7 P11], Always;
    /// A task of a group with a sticky disk starts with what was written before it.
    ADiskIsHandedOn: "a_disk_is_handed_on", [P7 P17], Always;
    /// A disk is taken over when nobody writes to it any more, unless patience is over.
    ADiskMovesAtRest: "a_disk_moves_at_rest", [P7 P13], Always;
    /// A task starts when what its allocation replaces on another node is over.
    NoStartBesideTheRemoteOne: "no_start_beside_the_remote_one", [P7 P13], Always;
    /// A task starts with what was on the disk of another node, unless that node has not got it any
    /// more or trying was no use.
    ARemoteDiskIsFetched: "a_remote_disk_is_fetched", [P7 P17], Always;
    /// A disk is fetched when nobody writes to it any more.
    ARemoteDiskMovesAtRest: "a_remote_disk_moves_at_rest", [P7 P13], Always;
    /// Once something ran here that replaces it, a disk of another node is fetched no more.
    NoOlderDiskComes: "no_older_disk_comes", [P17], Always;
    /// What comes from another node finds nothing in its place that is older.
    ARemoteDiskIsNotHidden: "a_remote_disk_is_not_hidden", [P17], Always;
    /// Another node is not asked without a pause.
    QuestionsHaveAPause: "questions_have_a_pause", [P12], Always;
    /// Prestart before main, main before poststart, everything before poststop.
    StagesBeginInTheirOrder: "stages_begin_in_their_order", [P24], Always;
    /// A task that is done when it succeeds runs no second time, unless somebody asked.
    WhatSucceededIsNotRunAgain: "what_succeeded_is_not_run_again", [P1], Always;
    /// A copy of a batch job that completed gets no other allocation for the same version.
    WhatIsDoneIsNotDoneAgain: "what_is_done_is_not_done_again", [P1 P3], Always;
    /// What starts has no slot, port, device or core in common with anything of another allocation that lives,
    /// and CPU, memory and disk space are enough for all of them, on a node that never had more.
    NoStartBesideAHolder: "no_start_beside_a_holder", [P4 P8 P13 P14 P19], Always;
    /// Who is preempted by one that may is less important by the margin, is older, holds something of what that
    /// one gets, and has work to do.
    WhoIsPreemptedMattersLess: "who_is_preempted_matters_less", [P3 P12], Always;
    /// Of a job that every node has once, only the first copy starts.
    OnePerNodeMeansOne: "one_per_node_means_one", [P3], Always;
    /// A launch id is started at most once.
    NoLaunchIdIsStartedTwice: "no_launch_id_is_started_twice", [P4 P26], Always;
    /// Of each task lives at most one process.
    OneLiveProcessPerTask: "one_live_process_per_task", [P4], Always;

    /// Of an allocation whose time is over nothing starts, also not what comes after the end.
    WhatRanOutOfTimeStartsNothing: "what_ran_out_of_time_starts_nothing", [P1 P24], Always;
    /// A task whose record could not be read is not started again.
    WhatCannotBeReadIsNotStarted: "what_cannot_be_read_is_not_started", [P6 P1 P4], Always;

    // Templates.
    /// A task starts with what was rendered of its templates, and that is remembered of it.
    AStartFindsItsTemplates: "a_start_finds_its_templates", [P7 P29], Always;
    /// Of each change of a template a task is told once, and only in the way that it wants.
    AChangeIsToldOnce: "a_change_is_told_once", [P29], Always;
    /// What runs knows what is rendered now.
    ATaskKnowsItsTemplates: "a_task_knows_its_templates", [P29], AtRest;
    /// A script tells of a change that its task does not know, once.
    AScriptTellsOfAChange: "a_script_tells_of_a_change", [P29], Always;
    /// A script is run beside what runs, and not beside itself.
    AScriptRunsBesideItsTask: "a_script_runs_beside_its_task", [P29 P24], Always;
    /// A task whose script failed, and that is to end for that, is ended, whoever has to see to it.
    WhoFailsWithItsScriptEnds: "who_fails_with_its_script_ends", [P29 P7], Always;
    /// Whose templates can change, those are watched while it runs.
    WhoRunsIsWatched: "who_runs_is_watched", [P15 P29], AtRest;
    /// Of what is over, templates are not watched.
    NobodyIsWatchedInVain: "nobody_is_watched_in_vain", [P14 P15], AtRest;

    // Variables.
    /// A variable changes for who knows what is there, and for nobody else.
    AVariableChangesForWhoKnowsIt: "a_variable_changes_for_who_knows_it", [P6], Always;
    /// An agent knows the variables that an earlier life saved, and no others.
    VariablesOutliveTheAgent: "variables_outlive_the_agent", [P6], Always;

    /// While a task runs, its templates are watched as its job wants: stopping runs no hook of updates.
    AStopRunsNoUpdateHook: "a_stop_runs_no_update_hook", [P24 P29], Always;
    /// Whoever watches the templates of what runs collects changes as long as its job's version says.
    AWatchFollowsItsJob: "a_watch_follows_its_job", [P3 P29], AtRest;

    // Services.
    /// Whoever is registered runs or, of a group, is to run again, and nobody ends it.
    NoServiceOfADeadTask: "no_service_of_a_dead_task", [P14 P27], Always;
    /// When services change, so does the index that others wait for.
    AChangeOfServicesHasAnIndex: "a_change_of_services_has_an_index", [P27], Always;

    // Tokens.
    /// A task starts with tokens that were made for that start.
    AStartFindsItsTokens: "a_start_finds_its_tokens", [P7], Always;
    /// Of each new token a task is told once, and only in the way that it wants.
    ANewTokenIsToldOnce: "a_new_token_is_told_once", [P29], Always;
    /// A token is to be made anew while the old one is good.
    ATokenIsRenewedInTime: "a_token_is_renewed_in_time", [P11], Always;
    /// Of a new token its task is told, if it wants to be.
    ANewTokenIsTold: "a_new_token_is_told", [P29], AtRest;
    /// What runs has tokens that are good.
    ATokenIsGood: "a_token_is_good", [P11], AtRest;

    // The machine and its devices.
    /// A task with devices starts with all that their plugins reserved, in every life of the agent.
    AStartHasItsDevices: "a_start_has_its_devices", [P7], Always;
    /// A task is told the ports of its allocation.
    AStartIsToldItsPorts: "a_start_is_told_its_ports", [P7], Always;
    /// Plugins are asked to reserve what the allocation holds for the task.
    WhatIsReservedIsHeld: "what_is_reserved_is_held", [P14], Always;
    /// A device that is given away is there and works.
    OnlyWhatWorksIsGiven: "only_what_works_is_given", [P7], Always;
    /// Nothing is placed before enough is known of the machine.
    NothingIsPlacedUnknown: "nothing_is_placed_unknown", [P7], Always;
    /// A driver's health and attributes are what it said last; attributes that vanish are gone.
    ADriverIsWhatItLastSaid: "a_driver_is_what_it_last_said", [P27], AtRest;
    /// A driver's attributes are its own.
    ADriverSpeaksOfItself: "a_driver_speaks_of_itself", [P12], Always;
    /// What is placed fits beside all that goes on into what is known of the node, and has the cores that it
    /// asks for.
    WhatIsPlacedFits: "what_is_placed_fits", [P8 P14], Always;
    /// No job waits for ports, devices, CPU, memory, disk space or cores that are free.
    NobodyWaitsForWhatIsFree: "nobody_waits_for_what_is_free", [P3 P11], AtRest;
    /// No job that may preempt waits for what jobs of lower priority hold.
    NobodyWaitsForWhatLowerPriorityHolds: "nobody_waits_for_what_lower_priority_holds", [P3], AtRest;
    /// What the probes find is known.
    TheMachineIsKnown: "the_machine_is_known", [P27 P11], AtRest;
    /// Devices are known as they are, whatever was said of them before.
    DevicesAreWhatIsThere: "devices_are_what_is_there", [P27 P11], AtRest;

    // Statistics.
    /// No statistic is negative, without end, or more than the machine can do.
    StatisticsArePossible: "statistics_are_possible", [P27], Always;
    /// What was measured of no running launch is unset in what its allocation uses; what was measured as zero is
    /// zero.
    UnsetStatisticsStayUnset: "unset_statistics_stay_unset", [P27], Always;
    /// A task uses what was measured of its launch, and an allocation what its running tasks use together; the
    /// memory that is used stands beside the most that ever was.
    UsageIsOfWhatRuns: "usage_is_of_what_runs", [P27], Always;
    /// An allocation lists each group of its running tasks' devices once, with what was measured of each device.
    EachDeviceGroupIsListedOnce: "each_device_group_is_listed_once", [P27], Always;
    /// Each core that was measured twice is listed with what it did in between.
    CoresAreListedWithTheirWork: "cores_are_listed_with_their_work", [P27], Always;
    /// In the end what lives is measured, and nothing else.
    NothingIsMeasuredOfTheDead: "nothing_is_measured_of_the_dead", [P27], AtRest;

    // Evaluations.
    /// Once enough was heard of the node, a plan is made for each evaluation.
    AnEvaluationIsPlannedOnceTheNodeIsKnown: "an_evaluation_is_planned_once_the_node_is_known", [P11 P27], Always;
    /// A complete evaluation names each group of which a copy has no allocation, and no group as waiting
    /// that has all of them.
    AnEvaluationSaysWhatItsPlanDid: "an_evaluation_says_what_its_plan_did", [P27], Always;
    /// A job has one blocked evaluation while something of it is not placed, with the reasons, and
    /// otherwise none.
    OneEvaluationWaitsForWhatIsNotPlaced: "one_evaluation_waits_for_what_is_not_placed", [P27 P15], Always;

    // What is shown.
    /// The status of a job, who runs, and how many tasks need a driver or a plugin are told as they
    /// are.
    WhatIsShownIsTrue: "what_is_shown_is_true", [P27], Always;
    /// Of what an agent can say that does not hold, nothing does not.
    TheAgentFindsNothingWrongWithItself: "the_agent_finds_nothing_wrong_with_itself", [P11], Always;

    // Restarts.
    /// By its policy a task is started again so often in an interval and no oftener, counted
    /// from the starts that the world saw, through all lives of the agent.
    RestartsStayWithinTheBudget: "restarts_stay_within_the_budget", [P25], Always;
    /// Between an end and the start that follows by policy lies at least the policy's delay.
    APauseIsAsLongAsThePolicySays: "a_pause_is_as_long_as_the_policy_says", [P25], Always;
    /// What a restart of the machine cut off costs no attempt, and is over by it only if it is batch work
    /// whose policy has no attempts.
    ARebootCostsNoAttempt: "a_reboot_costs_no_attempt", [P25], Always;
    /// What a restart of the machine cut off starts again without a pause.
    AfterARebootNoTaskPauses: "after_a_reboot_no_task_pauses", [P25], Always;
    /// A start that was lost through no fault of the task costs no attempt, three times in a row.
    ALostStartIsFreeAtFirst: "a_lost_start_is_free_at_first", [P25], Always;
    /// A failed allocation is replaced as often as its reschedule policy allows.
    ReplacementsStayWithinThePolicy: "replacements_stay_within_the_policy", [P25 P3], Always;

    // Stops.
    /// What is asked of a driver concerns an allocation that the agent knows.
    EffectsHaveAnOwner: "effects_have_an_owner", [P2 P5], Always;
    /// The leader ends first, sidecars last, and what comes after the end is left alone.
    KillsFollowTheirOrder: "kills_follow_their_order", [P24], Always;
    /// Of an allocation that is over nothing is started, asked to end or signalled.
    AFinishedAllocationIsQuiet: "a_finished_allocation_is_quiet", [P1 P13], Always;
    /// When the grace of a stop is over, force follows, as soon as the store allows.
    ForceFollowsTheGrace: "force_follows_the_grace", [P13], Always;
    /// Stops, signals and ends by force concern the task that the launch is of.
    NothingStrangeIsTouched: "nothing_strange_is_touched", [P5], Always;
    /// A task that can go on without the outside has gone on: what hangs delays nobody else.
    NothingWaitsForANudge: "nothing_waits_for_a_nudge", [P12 P11], Always;

    // Remember before acting.
    /// When a stop leaves, the disk says why: it bears the kill or the asked restart.
    AStopIsRememberedFirst: "a_stop_is_remembered_first", [P1 P6], Always;
    /// When an end by force leaves, the disk still holds the launch.
    ADestroyIsRememberedFirst: "a_destroy_is_remembered_first", [P2 P21], Always;
    /// A launch is forgotten outside when the disk says that it is over.
    ALaunchIsForgottenLast: "a_launch_is_forgotten_last", [P21 P26], Always;
    /// What was forgotten is not looked for any more.
    WhatWasForgottenIsNotLookedFor: "what_was_forgotten_is_not_looked_for", [P26], Always;
    /// Directories are made for allocations that the disk knows.
    DirectoriesBelongToWhatIsSaved: "directories_belong_to_what_is_saved", [P14], Always;
    /// A directory is removed when the disk says that its allocation is over and goes away.
    ARemovalIsRememberedFirst: "a_removal_is_remembered_first", [P14 P17], Always;
    /// No directory is removed while a process lives in it.
    NoDirectoryIsRemovedUnderAProcess: "no_directory_is_removed_under_a_process", [P7 P14], Always;
    /// A hook that runs once in a task's life does not run again when that is saved.
    AFinishedHookIsNotRunAgain: "a_finished_hook_is_not_run_again", [P24 P26], Always;
    /// When a request for a lasting change is answered, the disk holds the change.
    AReplyIsRememberedFirst: "a_reply_is_remembered_first", [P1 P6], Always;

    // Ends of tasks.
    /// What is told of an end is true, and is "unknown" only where nobody can know.
    ExitsAreToldAsTheyWere: "exits_are_told_as_they_were", [P21], Always;
    /// In one life of the agent an end is told once.
    AnEndIsToldOnce: "an_end_is_told_once", [P21], Always;
    /// An end that was saved is told in no later life.
    ASavedEndIsNotToldAgain: "a_saved_end_is_not_told_again", [P21], Always;
    /// What is remembered of an end is true.
    WhatIsRememberedOfAnEndIsTrue: "what_is_remembered_of_an_end_is_true", [P21], Always;

    // The state between two inputs.
    /// The agent wants to be called when the first of its machines does.
    DeadlinesAreKept: "deadlines_are_kept", [P11], Always;
    /// Whatever lives belongs to an allocation that the agent knows.
    NothingLivesWithoutAnOwner: "nothing_lives_without_an_owner", [P2], Always;
    /// No allocation is stuck: it has a deadline, claims that others hold, or a task that is not over.
    AnAllocationWaitsForSomething: "an_allocation_waits_for_something", [P11], Always;
    /// Every phase of a task that neither runs nor waits for its turn has a deadline.
    ATaskWaitsForSomething: "a_task_waits_for_something", [P11], Always;
    /// Whoever is neither over nor running is named with what it waits for, and nobody else is.
    WhoWaitsIsNamed: "who_waits_is_named", [P11], Always;
    /// An allocation waits for what older ones hold of what it claims, for all of that, and for nothing else.
    WhoWaitsNamesItsClaims: "who_waits_names_its_claims", [P11 P27], Always;
    /// No allocation waits for one that is not to end.
    NobodyWaitsForWhoGoesOn: "nobody_waits_for_who_goes_on", [P11], Always;
    /// Of a task that is over and clean nothing lives.
    TheDeadDoNotRun: "the_dead_do_not_run", [P2 P13], Always;
    /// A task that is said to run has a process, or its end is on the way.
    WhatRunsIsThere: "what_runs_is_there", [P4 P27], Always;
    /// The state that is reported fits the phase.
    StatesFitPhases: "states_fit_phases", [P27], Always;
    /// After a restart each launch that may be alive is looked for.
    EachLaunchIsLookedFor: "each_launch_is_looked_for", [P4], Always;

    // What is reported.
    /// An allocation's status goes forward; complete, failed and lost are final, also when saved.
    AStatusIsNeverTakenBack: "a_status_is_never_taken_back", [P27 P1], Always;
    /// An allocation that shall stop, is over, or is cleaned away never shall run again.
    WhatIsOverStaysOver: "what_is_over_stays_over", [P27 P1], Always;
    /// A dead task stays dead, and a failed one failed, unless somebody asked for another run.
    ADeadTaskStaysDead: "a_dead_task_stays_dead", [P27 P1], Always;
    /// A task goes by the version of the job that its allocation is of.
    ATaskIsOfItsAllocationsVersion: "a_task_is_of_its_allocations_version", [P3], Always;
    /// What was last said of a driver is what is known of it.
    TheLastWordOfADriverCounts: "the_last_word_of_a_driver_counts", [P3 P27], Always;
    /// No event shows the value of a variable of the job.
    NoEventShowsAVariable: "no_event_shows_a_variable", [P28], Always;
    /// No allocation and no job goes back to an older version.
    NoOlderVersionIsApplied: "no_older_version_is_applied", [P3], Always;
    /// Events bear the time at which they are told, and are kept in order, and not too many.
    EventsAreBoundedAndInOrder: "events_are_bounded_and_in_order", [P15 P27], Always;
    /// The index that is told only rises.
    WhatIsToldIsNeverOlder: "what_is_told_is_never_older", [P27], Always;
    /// No life of the agent has an index below one that was acknowledged.
    TheIndexNeverFallsBack: "the_index_never_falls_back", [P27 P3], Always;

    // Requests.
    /// Each request gets one reply.
    OneReplyToOneRequest: "one_reply_to_one_request", [P12], Always;
    /// A reply answers a request that was asked.
    AReplyAnswersARequest: "a_reply_answers_a_request", [P12], Always;
    /// A refusal says why.
    ARefusalSaysWhy: "a_refusal_says_why", [P11], Always;

    // The store.
    /// A record that did not change is not written again.
    AnUnchangedRecordIsNotWritten: "an_unchanged_record_is_not_written", [P15], Always;
    /// One commit is under way at a time, numbered in order; a failed one is tried unchanged.
    OneCommitAtATime: "one_commit_at_a_time", [P6], Always;
    /// The records of an allocation go last: it is over, clean, and its directory is gone.
    RecordsGoLast: "records_go_last", [P14 P17], Always;
    /// Of an allocation whose directory is gone a record stays for as long as its job's version does,
    /// unless there are as many newer ones as are kept.
    CollectedAllocKeepsItsRecord: "collected_alloc_keeps_its_record", [P17], Always;
    /// The record of an allocation whose directory is gone says what became of it and its tasks.
    CollectedRecordIsTrue: "collected_record_is_true", [P21 P27], Always;
    /// No more records of allocations whose directories are gone are kept than are meant to be.
    CollectedRecordsAreBounded: "collected_records_are_bounded", [P15], Always;
    /// A job that nobody asked to forget is forgotten only when it is dead and old, or all garbage was
    /// asked to go; an evaluation only when it is old or one of many, and not its job's latest.
    OnlyGarbageIsForgotten: "only_garbage_is_forgotten", [P17], Always;
    /// A disk that another node takes over is there until its retention lease runs out.
    LeasedDiskStays: "leased_disk_stays", [P17 P7], Always;
    /// The record of a disk names allocations of its slot alone, each once and the latest first.
    DiskLiesInOnePlace: "disk_lies_in_one_place", [P7 P17], Always;
    /// Ended allocations are cleaned away because somebody asked, their job goes, or there are
    /// too many.
    NoMoreIsCollectedThanNeeded: "no_more_is_collected_than_needed", [P17], Always;

    /// No more allocations are cleaned away at once than the operator wants.
    OnlySoManyGoAtOnce: "only_so_many_go_at_once", [P17 P12], Always;

    // Roll-outs.
    /// At most one roll-out of a job is under way, that of its latest version.
    AJobHasOneRollout: "a_job_has_one_rollout", [P3], Always;
    /// A roll-out succeeds when every copy of every watched group is healthy.
    ARolloutSucceedsWhole: "a_rollout_succeeds_whole", [P3], Always;
    /// An allocation is healthy when its tasks ran as long as its policy says.
    HealthTakesItsTime: "health_takes_its_time", [P27], Always;
    /// No more copies than a rolling update allows are replaced before they proved themselves.
    ARollingUpdateKeepsItsMeasure: "a_rolling_update_keeps_its_measure", [P3], Always;

    // Ends of agents.
    /// An agent that said that it is done does nothing more.
    NothingFollowsTheStop: "nothing_follows_the_stop", [P23], Always;
    /// An agent that ends without its tasks begins nothing with them.
    AKeptTaskIsLeftAlone: "a_kept_task_is_left_alone", [P23], Always;
    /// An agent that ends with its tasks leaves nothing alive, but what resisted all force.
    AStopWithTasksLeavesNothing: "a_stop_with_tasks_leaves_nothing", [P23 P13], Always;

    // Running the core.
    /// At one instant only so much happens.
    NoLivelock: "no_livelock", [P12], Always;
    /// Nothing panics.
    NoPanic: "no_panic", [P12], Always;
    /// Calling the agent back when nothing is due changes nothing.
    ASpuriousTimeoutChangesNothing: "a_spurious_timeout_changes_nothing", [P30], Always;
    /// Another agent that is told the same does the same.
    SameInputsSameEffects: "same_inputs_same_effects", [P30], AtRest;

    // Rest.
    /// Only jobs without a place, and failed allocations between two tries, wait for anything.
    NothingIsAwaited: "nothing_is_awaited", [P11], AtRest;
    /// What lives belongs to an allocation that shall run, and its task knows it.
    WhatLivesIsWanted: "what_lives_is_wanted", [P2 P3], AtRest;
    /// What lives has its directories.
    WhatLivesHasItsDirectories: "what_lives_has_its_directories", [P7 P14], AtRest;
    /// Who just ended stays for a while, however full the disk is: people may want to know why.
    TheFirstLookAtTheDiskHasTime: "the_first_look_at_the_disk_has_time", [P17], Always;
    /// Directories belong to allocations that the agent knows.
    NoDirectoryIsLeftBehind: "no_directory_is_left_behind", [P14], AtRest;
    /// A disk that is too full holds nothing that could be cleaned away.
    TheDiskHasRoom: "the_disk_has_room", [P17 P15], AtRest;
    /// Nothing is left of what ended.
    WhatEndedIsCleaned: "what_ended_is_cleaned", [P14 P13], AtRest;
    /// The roll-out of the latest version is over, unless something has no place.
    RolloutsEnd: "rollouts_end", [P3], AtRest;
    /// Every place of a job that runs is filled, is done, or somebody knows why it is not.
    WhatIsWantedIsThere: "what_is_wanted_is_there", [P3], AtRest;
    /// What runs is of the latest version, unless that has no place or its roll-out failed.
    WhatRunsIsTheLatestVersion: "what_runs_is_the_latest_version", [P3], AtRest;
    /// What comes after the end ran once wherever a main task ran and ended.
    PoststopRunsWhereMainRan: "poststop_runs_where_main_ran", [P24], AtRest;
    /// What the disk holds is what the agent knows.
    TheDiskHoldsWhatIsKnown: "the_disk_holds_what_is_known", [P6], AtRest;
    /// Of the jobs that were made of one and are over, no more are kept than are meant to be.
    DispatchedJobsGo: "dispatched_jobs_go", [P15], AtRest;
    /// Whoever asks again with the same token for a job to be made gets the same job.
    OneJobForOneToken: "one_job_for_one_token", [P26], AtRest;
    /// Old evaluations and deployments on which nothing depends are gone.
    GarbageGoes: "garbage_goes", [P15], AtRest;
    /// Each record on the disk belongs to a job, and histories are as long as they may be.
    TheDiskHoldsNoStrays: "the_disk_holds_no_strays", [P15 P14], AtRest;
    /// Where the leader is over, its group is.
    AGroupEndsWithItsLeader: "a_group_ends_with_its_leader", [P24], AtRest;
    /// Where the main tasks are over, sidecars are.
    SidecarsEndWithTheMains: "sidecars_end_with_the_mains", [P24], AtRest;
    /// An allocation of which a record could not be read is over.
    AQuarantineEnds: "a_quarantine_ends", [P6 P11], AtRest;
    /// Another restart of the agent at rest starts, ends and writes nothing.
    ARestartAtRestChangesNothing: "a_restart_at_rest_changes_nothing", [P4 P26], AtRest;
    /// What a scenario waits for happens within its time.
    WhatIsExpectedHappens: "what_is_expected_happens", [], Always;
    /// What a scenario demands.
    WhatTheScenarioExpects: "what_the_scenario_expects", [], Always;

    // Situations that searching has to reach.
    /// A task that ran through the death of the agent is found running.
    SometimesATaskIsFoundRunning: "sometimes_a_task_is_found_running", [P4], Sometimes;
    /// A task that ended while no agent lived is found ended.
    SometimesATaskIsFoundEnded: "sometimes_a_task_is_found_ended", [P4], Sometimes;
    /// The agent died between the saving of a launch and its start.
    SometimesALaunchNeverStarted: "sometimes_a_launch_never_started", [P4], Sometimes;
    /// A task ran when the machine went down.
    SometimesARebootCutsATaskOff: "sometimes_a_reboot_cuts_a_task_off", [P4 P21], Sometimes;
    /// What starts a task is killed before it says how that went.
    SometimesAStartIsLost: "sometimes_a_start_is_lost", [P4 P21], Sometimes;
    /// What becomes of a launch can never be known.
    SometimesALaunchIsGone: "sometimes_a_launch_is_gone", [P4 P21], Sometimes;
    /// The word of an end overtakes the word of the beginning.
    SometimesAnEndOvertakesItsStart: "sometimes_an_end_overtakes_its_start", [P21], Sometimes;
    /// A commit fails while something waits for it.
    SometimesACommitFails: "sometimes_a_commit_fails", [P6], Sometimes;
    /// An answer comes that nobody awaits any more.
    SometimesAnAnswerIsStale: "sometimes_an_answer_is_stale", [P26], Sometimes;
    /// A task uses up its restart budget and fails.
    SometimesABudgetIsUsedUp: "sometimes_a_budget_is_used_up", [P25], Sometimes;
    /// One goes because the disk is too full.
    SometimesTheDiskIsCrowded: "sometimes_the_disk_is_crowded", [P17], Sometimes;
    /// A replacement finds what was written before it.
    SometimesADiskIsHandedOn: "sometimes_a_disk_is_handed_on", [P7], Sometimes;
    /// A task starts with a disk that another node had.
    SometimesADiskIsFetched: "sometimes_a_disk_is_fetched", [P7], Sometimes;
    /// A task is started again because a template changed.
    SometimesATemplateRestarts: "sometimes_a_template_restarts", [P29], Sometimes;
    /// A task is sent a signal because a template changed.
    SometimesATemplateSignals: "sometimes_a_template_signals", [P29], Sometimes;
    /// A script is run because a template changed.
    SometimesATemplateRunsAScript: "sometimes_a_template_runs_a_script", [P29], Sometimes;
    /// A script is run because a template was rendered for the first time.
    SometimesAScriptRunsFirst: "sometimes_a_script_runs_first", [P29], Sometimes;
    /// A task is started again because it got a new token.
    SometimesATokenRestarts: "sometimes_a_token_restarts", [P29], Sometimes;
    /// A task is sent a signal because it got a new token.
    SometimesATokenSignals: "sometimes_a_token_signals", [P29], Sometimes;
    /// A failed allocation is replaced by its policy.
    SometimesAFailureIsReplaced: "sometimes_a_failure_is_replaced", [P3], Sometimes;
    /// An allocation takes a new version as it is.
    SometimesAVersionIsTakenInPlace: "sometimes_a_version_is_taken_in_place", [P3], Sometimes;
    /// A rolling update is held up by a copy that has not proved itself yet.
    SometimesAnUpdateIsHeldUp: "sometimes_an_update_is_held_up", [P3], Sometimes;
    /// A roll-out succeeds.
    SometimesARolloutSucceeds: "sometimes_a_rollout_succeeds", [P3], Sometimes;
    /// A roll-out fails.
    SometimesARolloutFails: "sometimes_a_rollout_fails", [P3], Sometimes;
    /// A polite signal is not enough, and force follows.
    SometimesForceIsNeeded: "sometimes_force_is_needed", [P13], Sometimes;
    /// A task counts as dead though something of it resists.
    SometimesSomethingResists: "sometimes_something_resists", [P13], Sometimes;
    /// A job finds no place on the node.
    SometimesAJobHasNoPlace: "sometimes_a_job_has_no_place", [P19], Sometimes;
    /// A job asks for more CPU, memory, disk space or cores than the node has left.
    SometimesAResourceIsShort: "sometimes_a_resource_is_short", [P14], Sometimes;
    /// The record of an allocation whose directory is gone makes place for a newer one.
    SometimesACollectedRecordExpires: "sometimes_a_collected_record_expires", [P15], Sometimes;
    /// An allocation is cleaned away.
    SometimesAnAllocationIsCleanedAway: "sometimes_an_allocation_is_cleaned_away", [P17], Sometimes;
    /// An allocation waits until others are cleaned away.
    SometimesCleaningAwayWaits: "sometimes_cleaning_away_waits", [P17], Sometimes;
    /// A plugin says what cannot be, and is not believed.
    SometimesAPluginIsNotBelieved: "sometimes_a_plugin_is_not_believed", [P12], Sometimes;
    /// Two running tasks of an allocation hold devices of one group.
    SometimesTasksShareADeviceGroup: "sometimes_tasks_share_a_device_group", [P27], Sometimes;
    /// A counter of a running task went back between two looks.
    SometimesACounterGoesBack: "sometimes_a_counter_goes_back", [P27], Sometimes;
    /// An evaluation waits until enough is known of the node.
    SometimesAnEvaluationIsPending: "sometimes_an_evaluation_is_pending", [P27], Sometimes;
    /// A job waits until enough is known of the machine.
    SometimesTheMachineIsUnknown: "sometimes_the_machine_is_unknown", [P7], Sometimes;
    /// A record that cannot be read is of a task that lives.
    SometimesTheUnreadLives: "sometimes_the_unread_lives", [P6], Sometimes;
    /// The wall clock is set back while an agent lives.
    SometimesTheClockIsSetBack: "sometimes_the_clock_is_set_back", [P25], Sometimes;
    /// An allocation gives its place to a more important one.
    SometimesAPlaceIsTaken: "sometimes_a_place_is_taken", [P3], Sometimes;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_say_what_they_are() {
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
