//! The node: what it has, who holds it, what is measured, and whether it takes work.

macro_rules! node {
    ($next:ident $($more:ident)* => $($rows:tt)*) => { $next! { $($more)* => $($rows)*
    // Claims.
    /// A driver or plugin that never reports holds up the node for a while and no longer.
    FirstReportsAreAwaitedForAWhile: "first_reports_are_awaited_for_a_while", [P11], Always;
    /// What starts has no slot, port, device or core in common with anything of another allocation that lives,
    /// and CPU, memory and disk space are enough for all of them, on a node that never had more.
    NoStartWhileClaimIsHeld: "no_start_while_claim_is_held", [P4 P8 P13 P14 P19], Always;
    /// A placed allocation fits into the node's capacity beside all running ones, and has the cores that it asks
    /// for.
    PlacedAllocFitsCapacity: "placed_alloc_fits_capacity", [P8 P14], Always;
    /// No allocation is given a port that the configuration keeps for others on its network of the host.
    GivenPortIsNotReserved: "given_port_is_not_reserved", [P8 P19], Always;
    /// Who is preempted by one that may is of lower priority by the margin, is older, holds something of what that
    /// one gets, and has work to do.
    PreemptedAllocHasLowerPriority: "preempted_alloc_has_lower_priority", [P3 P12], Always;
    /// Nobody is preempted where one of lower priority in its place would have been enough.
    LeastImportantAllocIsPreempted: "least_important_alloc_is_preempted", [P3 P12], Always;
    /// Nobody is preempted whose claims are not needed.
    NoAllocIsPreemptedInVain: "no_alloc_is_preempted_in_vain", [P3 P12], Always;
    /// An allocation waits for exactly its claims that older allocations hold.
    WaitingAllocNamesUngrantedClaims: "waiting_alloc_names_ungranted_claims", [P11 P27], Always;
    /// No allocation waits for a holder that is not stopping.
    AwaitedHolderIsStopping: "awaited_holder_is_stopping", [P11], Always;
    /// No step ends with a job waiting for ports, devices, CPU, memory, disk space or cores that are free, or that
    /// jobs of lower priority hold which it may preempt.
    FreeClaimIsGrantedAtOnce: "free_claim_is_granted_at_once", [P3 P11], Always;

    // The machine.
    /// Nothing is placed before the essential fingerprints are known.
    NoPlacementBeforeFingerprints: "no_placement_before_fingerprints", [P7], Always;
    /// The node's attributes match what its probes find.
    NodeAttributesMatchFingerprints: "node_attributes_match_fingerprints", [P27 P11], AtRest;
    /// What a probe found stays known when it fails later.
    FoundFactIsKept: "found_fact_is_kept", [P27 P11], Always;
    /// The node's devices match what their plugins report.
    NodeDevicesMatchPluginReports: "node_devices_match_plugin_reports", [P27 P11], AtRest;
    /// A driver whose stream of news ended is asked again at once if that worked for a while, else after a pause that grows.
    EndedStreamIsOpenedAgainInTime: "ended_stream_is_opened_again_in_time", [P11 P27], Always;
    /// A probe that failed is asked again after a pause that grows with each failure, and is short again when it worked.
    FailedProbeIsAskedAgainInTime: "failed_probe_is_asked_again_in_time", [P11 P27], Always;
    /// A driver's health and attributes match its last fingerprint; vanished attributes are removed.
    DriverStateMatchesLastFingerprint: "driver_state_matches_last_fingerprint", [P27], AtRest;
    /// A driver sets only attributes under its own name.
    DriverSetsOnlyOwnAttributes: "driver_sets_only_own_attributes", [P12], Always;
    /// The last report of a driver is its known state.
    LastDriverReportCounts: "last_driver_report_counts", [P3 P27], Always;
    /// The time at which a driver last changed is that of a report with news.
    DriverChangesWithNews: "driver_changes_with_news", [P27], Always;

    // Drains and settings.
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
    } };
}
