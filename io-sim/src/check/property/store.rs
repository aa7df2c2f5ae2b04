//! The store: what is saved before what, what is kept, and what survives an agent.

macro_rules! store {
    ($next:ident $($more:ident)* => $($rows:tt)*) => { $next! { $($more)* => $($rows)*
    // Commits.
    /// A request is acknowledged only after its change was saved.
    ReplyFollowsSave: "reply_follows_save", [P1 P6], Always;
    /// An unchanged record is not written again.
    UnchangedRecordIsNotWritten: "unchanged_record_is_not_written", [P15], Always;
    /// One commit is in flight at a time, numbered in order; a failed one is retried unchanged.
    OneCommitInFlight: "one_commit_in_flight", [P6], Always;
    /// The agent says that it cannot save exactly while its last commit failed.
    StoreErrorIsCurrent: "store_error_is_current", [P27], Always;
    /// The store's records match the agent's state.
    StoreMatchesState: "store_matches_state", [P6], AtRest;

    // What is kept.
    /// The records of an allocation are removed last: it is terminal, cleaned up, and its directory is removed.
    RecordsAreRemovedAfterDirectory: "records_are_removed_after_directory", [P14 P17], Always;
    /// A collected allocation keeps its record as long as its job version is kept, within the configured
    /// number.
    CollectedAllocKeepsItsRecord: "collected_alloc_keeps_its_record", [P17], Always;
    /// The record of a collected allocation has its outcome and that of its tasks, with their last events.
    CollectedRecordIsTrue: "collected_record_is_true", [P21 P27], Always;
    /// The number of records of collected allocations stays within its limit.
    CollectedRecordsAreBounded: "collected_records_are_bounded", [P15], Always;
    /// A job is collected only when it is purged, dead and expired, or at a requested GC; an evaluation only
    /// when it is expired or surplus, and not its job's latest.
    OnlyGarbageIsCollected: "only_garbage_is_collected", [P17], Always;
    /// Expired, unreferenced evaluations and deployments are collected.
    GarbageIsCollected: "garbage_is_collected", [P15], Always;
    /// Ended allocations are collected only on request, with their job, or when there are
    /// too many.
    GcCollectsNoMoreThanNeeded: "gc_collects_no_more_than_needed", [P17], Always;
    /// At most the configured number of allocations is being removed at once.
    ParallelRemovalsAreBounded: "parallel_removals_are_bounded", [P17 P12], Always;
    /// Each stored record belongs to a job, and job histories stay within their limit.
    StoreHasNoOrphanRecords: "store_has_no_orphan_records", [P15 P14], AtRest;

    // Variables.
    /// A variable changes only if the request names its current index, or none.
    VariableChangeChecksIndex: "variable_change_checks_index", [P6], Always;
    /// A variable that is written again keeps when it was made, and its index then.
    WrittenVariableKeepsItsCreation: "written_variable_keeps_its_creation", [P6], Always;
    /// A restored agent has exactly the variables that were saved.
    VariablesSurviveAgentRestart: "variables_survive_agent_restart", [P6], Always;

    // Access control of the API.
    /// A restored agent has exactly the policies and tokens that were saved, less what expired.
    AclSurvivesAgentRestart: "acl_survives_agent_restart", [P6], Always;
    /// Nobody is given a first token where there was one.
    FirstTokenIsMadeOnce: "first_token_is_made_once", [P6], Always;
    /// When the deletion of a token was answered, its secret lets nobody in, now and after each restart.
    DeletedTokenLetsNobodyIn: "deleted_token_lets_nobody_in", [P6], Always;
    /// A token is good as long as was said when it was made, whatever else is changed of it.
    TokenKeepsItsTime: "token_keeps_its_time", [P27], Always;
    /// A token goes when its time is over.
    ExpiredTokenIsRemoved: "expired_token_is_removed", [P15], AtRest;
    } };
}
