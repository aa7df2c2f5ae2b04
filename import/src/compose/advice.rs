//! What to do about what is not carried over.

const EXTENSION: &str = "an extension, which by itself means nothing to compose; what it anchors is put in where it is used";
const UNKNOWN: &str = "this is not known here";

/// A key of the file.
pub(super) fn of_file(key: &str) -> &'static str {
    match key {
        "version" => "it has had no meaning for years",
        "include" => "import each of these files by itself",
        "jobs" => {
            "compose has no such thing; import each as a file with one service and restart: \"no\""
        }
        "models" => "nothing here is like it",
        key if key.starts_with("x-") => EXTENSION,
        _ => UNKNOWN,
    }
}

/// A key of a service.
pub(super) fn of_service(key: &str) -> &'static str {
    match key {
        "platform" => "the engine takes the image for its own platform",
        "links" | "external_links" => {
            "services know each other by their names in the network of the engine"
        }
        "volumes_from" => "write the other service's volumes here, too",
        "mac_address" => "engines of today give it by network",
        "memswap_limit" | "mem_swappiness" => "tasks swap nothing out",
        "oom_kill_disable" => "a task that needs more memory than it may have is ended",
        "cpu_shares" | "cpu_quota" | "cpu_period" | "cpu_percent" | "cpu_count"
        | "cpu_rt_runtime" | "cpu_rt_period" => {
            "see cpu and cores of resources, and cpu_hard_limit of the driver"
        }
        "blkio_config" => "see io of the driver, which limits one disk and has no weights",
        "gpus" => "ask for it with a block `device \"nvidia/gpu\" {}` in resources",
        "domainname" => "write it into hostname",
        "annotations" => "labels are carried over",
        "label_file" => "write what is in it into labels",
        "device_cgroup_rules" => "name each device in devices",
        "cgroup" => "see cgroupns of the driver",
        "cgroup_parent" => "the agent's tasks are in control groups of its own",
        "storage_opt" => "see storage_opt of the driver",
        "post_start" => "a task with `lifecycle { hook = \"poststart\" }` runs then",
        "pre_stop" => {
            "nothing runs before the end; a task with `lifecycle { hook = \"poststop\" }` runs after it"
        }
        "develop" | "attach" => "it is for working on the image",
        "provider" | "models" | "use_api_socket" | "credential_spec" | "isolation" => {
            "nothing here is like it"
        }
        key if key.starts_with("x-") => EXTENSION,
        _ => UNKNOWN,
    }
}

/// A key of `deploy`.
pub(super) fn of_deploy(key: &str) -> &'static str {
    match key {
        "labels" => "give the service tags",
        "placement" => "write constraint blocks (docs/jobs.md)",
        "endpoint_mode" => "each copy is registered by itself",
        "rollback_config" => {
            "a deployment that fails goes back as it went forward, with auto_revert of update"
        }
        key if key.starts_with("x-") => EXTENSION,
        _ => UNKNOWN,
    }
}
