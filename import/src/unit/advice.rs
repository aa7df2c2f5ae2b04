//! What to do about what is not carried over.

/// A setting of a section.
pub(crate) fn of(section: &str, key: &str) -> &'static str {
    match section {
        "Unit" => of_unit(key),
        "Service" => of_service(key),
        "Install" => {
            "jobs that were submitted are started by the agent, also after a restart of the machine"
        }
        "Timer" => of_timer(key),
        "Container" => of_container(key),
        section if section.starts_with("X-") => {
            "a section of somebody's own, which systemd leaves alone"
        }
        _ => "this section is not known here",
    }
}

fn of_unit(key: &str) -> &'static str {
    match key {
        "After" | "Before" | "Requires" | "Wants" | "BindsTo" | "Requisite" | "PartOf"
        | "Upholds" => {
            "of what is a job here, too, a task waits with `wait_for { service = \"NAME\" }` (docs/checks.md); units of \
             systemd that the machine needs are there when the agent is"
        }
        "Conflicts" => "jobs do not end each other",
        "OnFailure" | "OnSuccess" => "operators are notified of ends and failures (docs/notify.md)",
        "RequiresMountsFor" => "a host volume is waited for (docs/volumes.md)",
        key if key.starts_with("Condition") || key.starts_with("Assert") => {
            "a prestart task that fails keeps the others from starting"
        }
        _ => "nothing here is like it",
    }
}

fn of_service(key: &str) -> &'static str {
    match key {
        "Group" | "SupplementaryGroups" => "the task has the groups of its user",
        "TimeoutStartSec" => "a deployment that takes too long fails by its progress_deadline",
        "WatchdogSec" => "write a check that restarts it (docs/checks.md)",
        "ExecStartPre" | "ExecStartPost" | "ExecStop" | "ExecStopPost" | "ExecReload"
        | "ExecStart" => {
            "a container's program is its image's; other programs are tasks with a lifecycle block"
        }
        "ExecCondition" => "a prestart task that fails keeps the others from starting",
        "PIDFile" | "GuessMainPID" | "NotifyAccess" | "BusName" => {
            "the task is the process that is started, and what it starts"
        }
        "RemainAfterExit" => "a task that has ended has ended",
        "SuccessExitStatus" | "RestartPreventExitStatus" | "RestartForceExitStatus" => {
            "an exit code of 0 is a success, and all others are failures"
        }
        "CPUWeight" | "CPUShares" | "StartupCPUWeight" => "cpu of resources is a share",
        "AllowedCPUs" | "CPUAffinity" => "ask for cores of its own: `resources { cores = 1 }`",
        "TasksMax" => "the agent's configuration says it for all tasks: `client { pids_limit }`",
        "MemoryLow" | "MemoryMin" => "memory of resources is reserved",
        "MemorySwapMax" => "tasks swap nothing out",
        "StandardOutput" | "StandardError" | "SyslogIdentifier" | "LogLevelMax" => {
            "the output is kept in log files (`drover alloc logs`); see the logs block"
        }
        "StandardInput" | "TTYPath" => "a task has no standard input",
        "UMask" => "set it in the program, or in a shell line before it",
        "Nice"
        | "IOSchedulingClass"
        | "IOSchedulingPriority"
        | "CPUSchedulingPolicy"
        | "IOWeight" => "start the program by nice, ionice or chrt",
        "PassEnvironment" | "UnsetEnvironment" => "env.allowlist of the agent (docs/jobs.md)",
        "LoadCredential"
        | "SetCredential"
        | "LoadCredentialEncrypted"
        | "SetCredentialEncrypted"
        | "ImportCredential" => "a variable of the job and a template (docs/variables.md)",
        "BindPaths" | "BindReadOnlyPaths" | "TemporaryFileSystem" => {
            "a host volume and a volume_mount (docs/volumes.md)"
        }
        "RootDirectory" | "RootImage" => "exec has a root of its own (docs/exec.md)",
        "SendSIGKILL" | "FinalKillSignal" | "RestartKillSignal" | "SendSIGHUP" => {
            "a task that does not end within kill_timeout is killed"
        }
        "RestartSteps" | "RestartMaxDelaySec" | "RestartMode" => {
            "each pause is as long as the delay of restart"
        }
        "Slice" | "Delegate" => "the agent's tasks are in control groups of its own",
        "Sockets" | "FileDescriptorStoreMax" => {
            "a task gets no descriptors; let the program bind its port"
        }
        key if key.starts_with("Limit") => {
            "set it in a shell line before the program, such as `ulimit -n 65536; exec PROGRAM`"
        }
        key if key.ends_with("Accounting") => "everything is counted",
        _ => "nothing here is like it",
    }
}

fn of_timer(key: &str) -> &'static str {
    match key {
        "OnBootSec" | "OnStartupSec" | "OnUnitActiveSec" | "OnUnitInactiveSec" | "OnActiveSec" => {
            "a periodic job has times of the clock; write an expression for cron"
        }
        "AccuracySec" | "RandomizedDelaySec" | "FixedRandomDelay" => "a launch comes at its time",
        "WakeSystem" => "the machine is not woken",
        _ => "nothing here is like it",
    }
}

fn of_container(key: &str) -> &'static str {
    match key {
        "PodmanArgs" | "GlobalArgs" => "see the options of the driver (docs/docker.md)",
        "AutoUpdate" => "write force_pull, and submit the job again",
        "Pod" | "StartWithPod" => "containers reach each other in a network of the engine",
        "Notify" => "write a check (docs/checks.md)",
        "Annotation" => "labels are carried over",
        "UserNS" | "UIDMap" | "GIDMap" | "SubUIDMap" | "SubGIDMap" | "RemapUsers" | "RemapUid"
        | "RemapGid" => "see userns_mode of the driver; the engine maps users for all containers",
        "Group" => "write user as USER:GROUP",
        "Rootfs" => "an image is needed",
        "Mask"
        | "Unmask"
        | "SecurityLabelType"
        | "SecurityLabelLevel"
        | "SecurityLabelFileType"
        | "SecurityLabelNested"
        | "SeccompProfile"
        | "AppArmor" => "see security_opt of the driver",
        "HealthStartupCmd"
        | "HealthStartupInterval"
        | "HealthStartupRetries"
        | "HealthStartupSuccess"
        | "HealthStartupTimeout"
        | "HealthLogDestination"
        | "HealthMaxLogCount"
        | "HealthMaxLogSize" => "checks have nothing like it",
        _ => "the driver has nothing like it (docs/docker.md)",
    }
}
