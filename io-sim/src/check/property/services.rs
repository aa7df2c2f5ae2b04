//! Services, their checks, and the health of allocations.

macro_rules! services {
    ($next:ident $($more:ident)* => $($rows:tt)*) => { $next! { $($more)* => $($rows)*
    // Services.
    /// A registered service belongs to a running task, or to a group whose task restarts, that is not being stopped.
    NoServiceRegisteredForDeadTask: "no_service_registered_for_dead_task", [P14 P27], Always;
    /// A registered service has the tags of its job file, those for canaries as long as its allocation is one.
    ServiceTagsAreThoseOfJobFile: "service_tags_are_those_of_job_file", [P3 P27], Always;
    /// A registered service is found at the address and the port of its job file.
    ServiceAddressIsThatOfJobFile: "service_address_is_that_of_job_file", [P3 P27], Always;
    /// A change of services raises their index.
    ServiceChangeRaisesIndex: "service_change_raises_index", [P27], Always;
    /// A task waits for services only while one of them is not healthy.
    NoWaitForHealthyServices: "no_wait_for_healthy_services", [P7 P11], AtRest;

    // Checks.
    /// A check runs only while a task that it is about runs, and its program in that task.
    CheckRunsOnlyWhileItsTaskRuns: "check_runs_only_while_its_task_runs", [P5 P24], Always;
    /// No check of an allocation begins that is being ended.
    EndingAllocIsNotChecked: "ending_alloc_is_not_checked", [P24], Always;
    /// A check runs once at a time.
    CheckRunsOnceAtATime: "check_runs_once_at_a_time", [P15], Always;
    /// A check of a running task runs within its interval, whatever became of the run before.
    RunningTaskIsChecked: "running_task_is_checked", [P11 P27], Always;
    /// A check restarts its tasks exactly when the numbers of the job file say so.
    CheckRestartFollowsJobFile: "check_restart_follows_job_file", [P25], Always;
    /// A check asks the port and the address that its job file says.
    CheckAsksThePortOfItsJobFile: "check_asks_the_port_of_its_job_file", [P25], Always;
    /// A check is thought of as its runs in a row say, by the numbers of the job file.
    CheckStatusFollowsItsRuns: "check_status_follows_its_runs", [P25], Always;
    /// The checks of running tasks pass, and those of others do not run.
    ChecksPassAtRest: "checks_pass_at_rest", [P27 P14], AtRest;

    // Health.
    /// An allocation that waits for its checks is healthy only after they passed for min_healthy_time.
    HealthyAllocPassesItsChecks: "healthy_alloc_passes_its_checks", [P27], Always;
    /// An allocation is healthy only after its tasks ran for min_healthy_time, or when somebody says so.
    HealthyAllocRanMinHealthyTime: "healthy_alloc_ran_min_healthy_time", [P27], Always;
    /// An allocation becomes unhealthy because a task failed, its deadline has passed, or somebody says so.
    UnhealthyAllocHasACause: "unhealthy_alloc_has_a_cause", [P27], Always;
    /// Whether an allocation of a roll-out is healthy is decided by its healthy_deadline.
    HealthIsDecidedInTime: "health_is_decided_in_time", [P11 P27], Always;
    } };
}
