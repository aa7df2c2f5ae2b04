//! Jobs: their launches, versions and roll-outs, and the copies that they shall have.

macro_rules! jobs {
    ($next:ident $($more:ident)* => $($rows:tt)*) => { $next! { $($more)* => $($rows)*
    // Jobs by the clock and by dispatch.
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
    /// The latest time of a periodic job was launched, whatever was missed.
    LatestTimeIsLaunched: "latest_time_is_launched", [P3 P11], AtRest;
    /// Launches of a job that prohibits overlap do not overlap.
    LaunchesDoNotOverlap: "launches_do_not_overlap", [P3], Always;
    /// A parameterized job runs no allocation itself.
    ParameterizedJobNeverRuns: "parameterized_job_never_runs", [P3], Always;
    /// A dispatched job is its parent, with the meta, the priority and the payload that were asked for.
    DispatchedJobIsAsAsked: "dispatched_job_is_as_asked", [P3], Always;
    /// A dispatch repeated with the same idempotency token returns the same job.
    IdempotencyTokenDispatchesOnce: "idempotency_token_dispatches_once", [P26], AtRest;
    /// The number of finished dispatched jobs of a parent stays within its limit.
    FinishedDispatchedJobsAreCollected: "finished_dispatched_jobs_are_collected", [P15], AtRest;

    // Images.
    /// What the tag of an image means is reason for one new version of a job, until the tag is moved again.
    MovedTagMakesOneVersion: "moved_tag_makes_one_version", [P3 P26], Always;
    /// What the tag of an image means is found out when the next time of its task came after it was moved.
    MovedTagIsFound: "moved_tag_is_found", [P3 P11], AtRest;

    // Copies.
    /// Every copy of a running job has an allocation, is complete, or has a known reason why not.
    WantedCopiesExist: "wanted_copies_exist", [P3], AtRest;
    /// A system job starts one allocation on a node.
    SystemJobHasOneAllocPerNode: "system_job_has_one_alloc_per_node", [P3], Always;
    /// A complete copy of a batch job gets no other allocation of the same job version.
    CompleteBatchCopyIsNotPlacedAgain: "complete_batch_copy_is_not_placed_again", [P1 P3], Always;
    /// A copy counts as done only if an allocation of its job's present version ended in its place.
    CopyIsDoneByItsVersion: "copy_is_done_by_its_version", [P3 P27], AtRest;
    /// A failed allocation is not replaced before the pause of its reschedule policy is over.
    ReplacementWaitsForPolicyDelay: "replacement_waits_for_policy_delay", [P3], Always;
    /// A failed allocation waits no longer for its replacement than its reschedule policy says.
    ReplacementComesAfterPolicyDelay: "replacement_comes_after_policy_delay", [P3 P11], Always;
    /// A failed allocation is replaced as long as its reschedule policy allows it.
    FailedAllocIsReplaced: "failed_alloc_is_replaced", [P3 P11], AtRest;
    /// A failed allocation is rescheduled at most as often as its policy allows.
    ReschedulesStayWithinPolicy: "reschedules_stay_within_policy", [P25 P3], Always;

    /// Operators are told of a dead job how the last of its allocations ended, or that somebody stopped it.
    NoticeOfDeadJobIsTrue: "notice_of_dead_job_is_true", [P27], Always;

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

    /// If a job was planned at rest, nothing would be told to end, and nothing placed.
    PlanAtRestIsEmpty: "plan_at_rest_is_empty", [P3 P11], AtRest;
    /// A job that waits for a placement, a replacement or the machine is not called dead.
    WaitingJobIsNotDead: "waiting_job_is_not_dead", [P27], Always;
    /// A job that runs to its end and has done all that it was to do is called dead.
    DoneJobIsDead: "done_job_is_dead", [P11 P27], AtRest;

    // Versions.
    /// A registered job is its latest version, made anew if it differs from the one before.
    RegisteredJobIsLatest: "registered_job_is_latest", [P3], Always;
    /// A registration that names an index changes the job exactly if that is shown with this index.
    RegistrationChecksIndex: "registration_checks_index", [P3 P6], Always;
    /// No allocation and no job goes back to an older version.
    NoOlderJobVersionIsApplied: "no_older_job_version_is_applied", [P3], Always;
    /// A job that somebody asked to forget is forgotten in the end.
    PurgedJobIsForgotten: "purged_job_is_forgotten", [P3 P15], AtRest;
    /// Every running allocation has the latest job version, unless that cannot be placed or its deployment failed.
    RunningAllocHasLatestJobVersion: "running_alloc_has_latest_job_version", [P3], AtRest;
    /// A task has the job version of its allocation.
    TaskHasJobVersionOfAlloc: "task_has_job_version_of_alloc", [P3], Always;
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
    /// A version has its name until somebody gives it another one.
    VersionKeepsItsName: "version_keeps_its_name", [P6 P27], Always;

    // Scaling.
    /// A group is scaled exactly if the count is within its bounds, no roll-out is under way, and the job is as whoever
    /// asks expects it.
    ScalingIsBounded: "scaling_is_bounded", [P3], Always;
    /// A group that was scaled has the count that was asked for.
    ScaledGroupHasItsCount: "scaled_group_has_its_count", [P3], Always;
    /// The last scaling events of a group are kept, within their limit.
    ScalingEventsAreKept: "scaling_events_are_kept", [P6 P15], Always;

    // Roll-outs.
    /// A job has at most one active deployment, that of its latest version, and none once it is stopped.
    JobHasOneActiveDeployment: "job_has_one_active_deployment", [P3], Always;
    /// A roll-out that is over stays as it ended.
    EndedDeploymentStaysAsItIs: "ended_deployment_stays_as_it_is", [P3], Always;
    /// A deployment succeeds only when every copy of every watched group is healthy.
    SuccessfulDeploymentHasAllCopiesHealthy: "successful_deployment_has_all_copies_healthy", [P3], Always;
    /// The deployment of the latest version has ended, unless something cannot be placed.
    DeploymentsEnd: "deployments_end", [P3], AtRest;
    /// A rolling update has at most max_parallel copies that are not yet healthy.
    RollingUpdateStaysWithinMaxParallel: "rolling_update_stays_within_max_parallel", [P3], Always;
    /// A rolling update replaces as many copies at a time as max_parallel allows.
    RollingUpdateUsesMaxParallel: "rolling_update_uses_max_parallel", [P3 P11], Always;
    /// Until canaries are promoted, nothing else of the new version runs, and nothing of the old one ends for it.
    OldVersionServesUntilPromotion: "old_version_serves_until_promotion", [P3], Always;
    /// Canaries are promoted only when they are healthy and somebody asks, or the group promotes itself.
    CanaryIsPromotedOnRequest: "canary_is_promoted_on_request", [P3], Always;
    /// A paused roll-out starts nothing more.
    PausedDeploymentStartsNothing: "paused_deployment_starts_nothing", [P3], Always;
    /// A roll-out fails only when an allocation of it is unhealthy, when one of its groups made no progress for its
    /// progress_deadline, or when somebody says so.
    FailedDeploymentHasACause: "failed_deployment_has_a_cause", [P3 P27], Always;
    /// A roll-out fails when something of it is not healthy and it came no nearer to its end for its progress_deadline.
    ProgressDeadlineFailsDeployment: "progress_deadline_fails_deployment", [P3 P11], Always;
    /// When a roll-out has failed, no copy of an older version is replaced for it.
    FailedDeploymentReplacesNothing: "failed_deployment_replaces_nothing", [P3], Always;
    /// With auto_revert, a failed roll-out brings the last stable version back, once.
    FailedDeploymentRevertsOnce: "failed_deployment_reverts_once", [P3], Always;

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
    } };
}
