//! A node and the servers of its cluster.

macro_rules! cluster {
    ($next:ident $($more:ident)* => $($rows:tt)*) => { $next! { $($more)* => $($rows)*
    /// The next heartbeat is sent when the time of the last one is over, and no sooner.
    HeartbeatWaitsForItsTime: "heartbeat_waits_for_its_time", [P22], Always;
    /// A node that can reach the servers beats in time: they never give it up.
    ReachableNodeIsNotLost: "reachable_node_is_not_lost", [P22], AtRest;
    /// A call to servers that failed is repeated after a pause.
    FailedCallIsRepeatedAfterAPause: "failed_call_is_repeated_after_a_pause", [P22], Always;
    /// What a node always asks of its servers is asked again in time after it failed.
    PauseAfterFailedCallIsBounded: "pause_after_failed_call_is_bounded", [P22 P11], Always;
    /// A task is asked to end when servers do not have its services any more, unless they do not answer for seconds.
    StopWaitsForRemovedServices: "stop_waits_for_removed_services", [P22 P24], Always;
    /// What may not run without servers ends when they were silent for as long as its job file allows.
    SilenceEndsAllocInTime: "silence_ends_alloc_in_time", [P22 P11], Always;
    /// What is forgotten of an allocation of servers, they know how it ended, or want it no more.
    CollectedAllocIsKnownToServers: "collected_alloc_is_known_to_servers", [P22 P15], Always;
    /// At rest the servers have the services of each allocation that runs.
    RunningServicesAreAtServers: "running_services_are_at_servers", [P22 P11], AtRest;
    /// Of each kind of call to the servers at most one is under way.
    CallsOfOneKindFollowEachOther: "calls_of_one_kind_follow_each_other", [P22], Always;
    /// Calls to the servers are few, whatever they answer.
    CallsToServersAreFew: "calls_to_servers_are_few", [P22], Always;
    /// The servers of a reply are handed on if they are others than before, and if there are any.
    NewServersAreHandedOn: "new_servers_are_handed_on", [P22], Always;
    /// A node is not registered before its drivers are known.
    RegisteredNodeIsKnown: "registered_node_is_known", [P7 P22], Always;
    /// A node that the servers acknowledged is not registered again as it is, unless they forgot it.
    UnchangedNodeIsNotRegisteredAgain: "unchanged_node_is_not_registered_again", [P22], Always;
    /// What servers acknowledged of an allocation is not reported again, unless they gave it up.
    UnchangedReportIsNotSentAgain: "unchanged_report_is_not_sent_again", [P22], Always;
    /// A service that servers acknowledged is not registered again as it is, unless they may have lost it.
    UnchangedServiceIsNotRegisteredAgain: "unchanged_service_is_not_registered_again", [P22], Always;
    /// What servers are told of an allocation is true: running if a task was started, over if nothing of it lives.
    ReportToServersIsTrue: "report_to_servers_is_true", [P22 P27], Always;
    /// A failed allocation of a roll-out is reported with a health: servers that have none wait until its deadline.
    FailedAllocIsReportedWithHealth: "failed_alloc_is_reported_with_health", [P22 P11], Always;
    /// An allocation of servers starts on the node where they placed it, unless they said that it shall end.
    PlacedAllocStartsWhereItWasPlaced: "placed_alloc_starts_where_it_was_placed", [P22 P4], Always;
    /// What servers said last of an allocation holds, and nothing older.
    PlacedAllocIsAsServersSaid: "placed_alloc_is_as_servers_said", [P22 P3], Always;
    /// What may not run without servers ends for their silence only if no heartbeat counted for so long, and one failed.
    ServersThatAnswerEndNoAllocBySilence: "servers_that_answer_end_no_alloc_by_silence", [P22 P3], Always;
    /// In the end node and servers agree on the node, its allocations and what runs.
    NodeAndServersAgree: "node_and_servers_agree", [P22 P3], AtRest;
    } };
}
