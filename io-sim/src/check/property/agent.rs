//! The agent itself: its answers and reports, its rest and its end, and that it never hangs.

macro_rules! agent {
    ($next:ident $($more:ident)* => $($rows:tt)*) => { $next! { $($more)* => $($rows)*
    // Requests.
    /// Each request gets exactly one reply.
    RequestGetsOneReply: "request_gets_one_reply", [P12], Always;
    /// Each reply belongs to a request.
    ReplyBelongsToARequest: "reply_belongs_to_a_request", [P12], Always;
    /// Each refusal has a reason.
    RefusalHasAReason: "refusal_has_a_reason", [P11], Always;

    // What is shown.
    /// Job status, running allocations, and counts of tasks by driver and plugin are shown
    /// correctly.
    ViewMatchesWorld: "view_matches_world", [P27], Always;
    /// The agent's own audit of its state finds no contradiction.
    AgentSelfAuditFindsNothing: "agent_self_audit_finds_nothing", [P11], Always;
    /// An allocation's status goes forward; complete, failed and lost are final, also when saved.
    ClientStatusNeverGoesBack: "client_status_never_goes_back", [P27 P1], Always;
    /// An allocation that is desired to stop, is terminal, or is being destroyed never runs again.
    TerminalAllocStaysTerminal: "terminal_alloc_stays_terminal", [P27 P1], Always;
    /// No event shows the value of a variable of the job.
    NoEventShowsASecret: "no_event_shows_a_secret", [P28], Always;
    /// Task events have the time at which they are emitted, are in order, and their number is bounded.
    TaskEventsAreBoundedAndInOrder: "task_events_are_bounded_and_in_order", [P15 P27], Always;
    /// A notified index never goes back.
    BroadcastNeverGoesBack: "broadcast_never_goes_back", [P27], Always;
    /// The index is never below one that was acknowledged, also after a restart of the agent.
    IndexNeverGoesBack: "index_never_goes_back", [P27 P3], Always;

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
    /// A restart of the agent at rest starts, stops and writes nothing.
    AgentRestartAtRestChangesNothing: "agent_restart_at_rest_changes_nothing", [P4 P26], AtRest;

    // Ends of agents.
    /// A stopped agent has no effects.
    StoppedAgentHasNoEffects: "stopped_agent_has_no_effects", [P23], Always;
    /// An agent that shuts down keeping its tasks starts, stops and signals none.
    ShutdownKeepingTasksTouchesNoTask: "shutdown_keeping_tasks_touches_no_task", [P23], Always;
    /// An agent that shuts down stopping its tasks leaves no process, except those that could not be killed.
    ShutdownStoppingTasksLeavesNoProcess: "shutdown_stopping_tasks_leaves_no_process", [P23 P13], Always;
    /// An agent that shuts down stopping its tasks is not over while it removes a network.
    ShutdownStoppingTasksRemovesNetworks: "shutdown_stopping_tasks_removes_networks", [P23 P14], Always;

    // Scenarios.
    /// What a scenario waits for happens within its time limit.
    ExpectedOutcomeHappens: "expected_outcome_happens", [], Always;
    /// What a scenario demands holds.
    ScenarioExpectationHolds: "scenario_expectation_holds", [], Always;
    } };
}
