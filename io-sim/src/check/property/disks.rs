//! The directories of allocations: who gets their data, how much they take, and when they go.

macro_rules! disks {
    ($next:ident $($more:ident)* => $($rows:tt)*) => { $next! { $($more)* => $($rows)*
    // Data that moves to a replacement.
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
    /// Another node is asked for what changed since its last answer, and for everything after it gave none.
    QuestionToOtherNodeFollowsItsAnswer: "question_to_other_node_follows_its_answer", [P12], Always;
    /// The disk of another node is asked for a few times, and then done without.
    FetchingADiskIsGivenUp: "fetching_a_disk_is_given_up", [P11], Always;
    /// A disk that another node takes over is there until its retention lease runs out.
    LeasedDiskIsKept: "leased_disk_is_kept", [P17 P7], Always;
    /// The record of a disk names allocations of its slot alone, each once and the latest first.
    DiskHasOneLocation: "disk_has_one_location", [P7 P17], Always;

    // Directories that are made and removed.
    /// An allocation's directory is built only after its record was saved.
    DirectoryIsBuiltAfterAllocIsSaved: "directory_is_built_after_alloc_is_saved", [P14], Always;
    /// An allocation's directory is removed only after it was saved as being destroyed.
    DestroyingIsSavedBeforeDirectoryRemoval: "destroying_is_saved_before_directory_removal", [P14 P17], Always;
    /// No directory is removed while a process lives in it.
    DirectoryWithLiveProcessIsNotRemoved: "directory_with_live_process_is_not_removed", [P7 P14], Always;
    /// Every allocation directory belongs to an allocation that the agent knows.
    EveryDirectoryHasKnownAlloc: "every_directory_has_known_alloc", [P14], AtRest;

    // How much they take.
    /// How much directories take is measured an interval after the last time.
    DirsAreMeasuredInIntervals: "dirs_are_measured_in_intervals", [P17], Always;
    /// A directory is limited to the size that the job file asks for, once it is there.
    DiskQuotaIsThatOfJobFile: "disk_quota_is_that_of_job_file", [P17], Always;
    /// Whose directory is measured to take more than its job file asks for is told so at once.
    OversizedDirectoryIsTold: "oversized_directory_is_told", [P17], Always;
    /// It is told once until it takes clearly less, and nobody else is.
    OversizedDirectoryIsToldOnce: "oversized_directory_is_told_once", [P17], Always;
    /// An allocation that just ended is kept for an interval, however full the disk is.
    FirstDiskUsageCheckWaitsInterval: "first_disk_usage_check_waits_interval", [P17], Always;
    /// A disk above its usage limit holds no allocation that could be collected.
    DiskUsageIsBelowLimit: "disk_usage_is_below_limit", [P17 P15], AtRest;
    /// Operators of an agent are told once that the disk fills up, and once that this is over.
    DiskPressureIsToldOnce: "disk_pressure_is_told_once", [P27], Always;
    } };
}
