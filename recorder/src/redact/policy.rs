//! What is shown: fields whose texts are names, ids and settings. Everything else is hidden, so a
//! field that is new, and that nobody thought of here, is hidden too.

use drover_core::driver::capabilities::Capabilities;
use drover_core::driver::config::SCHEMAS;
use drover_core::driver::isolation::Sharing;
use drover_core::driver::port_pair;
use drover_core::driver::schema::{Field, Kind, Rule as FieldRule};
use drover_core::text::parse_duration;

/// How what stands in a field is treated, down to the next struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// All of it is shown.
    Show,
    /// Texts are hidden, numbers and truth values are shown.
    HideTexts,
    /// All values are hidden: somebody else's data.
    HideAll,
    /// A list of pairs: the first of each is a name, the second is hidden.
    HidePairs,
    /// A driver's configuration: what the core checks for being a number and so on is shown.
    DriverConfig,
    /// A service or a part of it: what says when it is checked, and what follows, is shown.
    Service,
    /// A value that the core checks for being a number and so on: shown if it is.
    Checked,
    /// The details of an event: those that are the core's own words are shown.
    EventDetails,
}

/// The rules of a type's fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// Of some, by their names.
    listed: &'static [(&'static [&'static str], Rule)],
    /// Of all others.
    others: Rule,
}

impl Fields {
    const fn all(rule: Rule) -> Fields {
        Fields {
            listed: &[],
            others: rule,
        }
    }

    const fn listed(listed: &'static [(&'static [&'static str], Rule)], others: Rule) -> Fields {
        Fields { listed, others }
    }

    /// The rule of a field.
    pub(super) fn rule(self, field: &str) -> Rule {
        let listed = self.listed.iter();
        let mut found = listed.filter(|(names, _)| names.contains(&field));
        found.next().map_or(self.others, |(_, rule)| *rule)
    }
}

/// Fields that say of whom something is, whatever type they stand in.
const WHOSE: &[&str] = &["alloc", "task", "launch", "tasks", "signal", "name"];

/// A type with these rules for some fields, in which names are shown and texts hidden.
macro_rules! others_hidden {
    ($($names:expr => $rule:expr),*) => {
        Fields::listed(&[(WHOSE, Rule::Show), $(($names, $rule)),*], Rule::HideTexts)
    };
}

/// The rules of the fields of a type; of lists and maps, which have none, the name is empty.
pub(super) fn fields(owner: &str) -> Fields {
    match owner {
        // What is named, numbered or counted; and what the machine is and has, and what is asked of it:
        // conditions look at all of it.
        "JobKey"
        | "TaskKey"
        | "AllocRecord"
        | "AssignedPort"
        | "Container"
        | "DockerPolicy"
        | "AllocNetwork"
        | "PluginNetwork"
        | "RemoveNetwork"
        | "TaskNetwork"
        | "Dns"
        | "Evaluation"
        | "Deployment"
        | "Meta"
        | "Node"
        | "DriverInfo"
        | "DriverNetwork"
        | "Constraint"
        | "UpdateStrategy"
        | "ReschedulePolicy"
        | "PeriodicConfig"
        | "Port"
        | "Launch"
        | "Local"
        | "Ledger"
        | "InFlight"
        | "Agent"
        | "Broadcasts"
        | "Sender"
        | "Outcome"
        | "Header"
        | "JobRecord"
        | "Saved"
        | "Restore"
        | "Takeover"
        | "VariableKey"
        | "VariableMeta"
        | "ParameterizedJob"
        | "DispatchPayload"
        | "PlacementFailure"
        | "Shortage"
        | "GroupId"
        | "DeviceRequest"
        | "Preference"
        | "AssignedDevices"
        | "Mount"
        | "DeviceNode"
        | "ReportedGroup"
        | "ReportedDevice"
        | "ReportedAttribute"
        | "Attribute"
        | "Group"
        | "Device"
        | "Fingerprint"
        | "MachineResources"
        | "Processors"
        | "Core"
        | "Interface"
        | "Address"
        | "ProbeConfig"
        | "DriverFingerprint"
        | "Machine"
        | "Fingerprints"
        | "FoundPlugin"
        | "Drivers"
        | "Driver"
        | "Devices"
        | "Plugin"
        | "NodeInput"
        | "Reply"
        | "Slot"
        | "Disk"
        | "Elsewhere"
        | "Lease"
        | "HostVolume"
        | "VolumeMount"
        | "VolumeLack"
        | "Volumes"
        | "KnownVolume"
        | "VolumeRecord"
        | "VolumeSpec"
        | "VolumeCapability"
        | "CreateVolume"
        | "DeleteVolume"
        | "ApplyNamespace"
        | "DeleteNamespace"
        | "NamespaceRecord"
        | "BootstrapAcl"
        | "CreateAclToken"
        | "DeleteAclToken"
        | "ApplyAclPolicy"
        | "DeleteAclPolicy"
        | "AclPolicyRecord"
        | "AclTokenRecord"
        | "AclBootstrapRecord"
        | "Acl"
        | "NamespaceCapabilities"
        | "ImageUpdate"
        | "ImageDigests" => Fields::all(Rule::Show),
        "Namespace" => Fields::listed(
            &[
                (&["description"], Rule::HideTexts),
                (&["meta"], Rule::HideAll),
            ],
            Rule::Show,
        ),
        "AclToken" | "UpdateAclToken" => {
            Fields::listed(&[(&["name"], Rule::HideTexts)], Rule::Show)
        }
        "AclPolicy" => Fields::listed(&[(&["description", "rules"], Rule::HideTexts)], Rule::Show),
        "VolumeRequest" => Fields::listed(&[(&["MountOptions"], Rule::HideAll)], Rule::Show),
        // What a registry says of itself is somebody else's words.
        "ImageRecord" => others_hidden!(&["decided", "ran", "looked"] => Rule::Show),
        // Names that stand elsewhere.
        "Reads" => Fields::all(Rule::HideTexts),
        "Job" => Fields::listed(JOB, Rule::HideAll),
        "TaskGroup" => Fields::listed(GROUP, Rule::HideAll),
        "Task" => Fields::listed(TASK, Rule::HideAll),
        "ScalingPolicy" => Fields::listed(
            &[(&["Enabled", "Min", "Max"], Rule::HideTexts)],
            Rule::HideAll,
        ),
        "ScalingEvent" | "ScaleJob" => others_hidden!(&["meta"] => Rule::HideAll),
        "BuildNetwork" => Fields::listed(&[(&["args"], Rule::HideAll)], Rule::Show),
        "Network" => Fields::listed(&[(&["Mode", "Hostname", "DNS"], Rule::Show)], Rule::HideAll),
        "Resources" => others_hidden!(&["NUMA"] => Rule::HideAll),
        // Why a probe failed is somebody else's words.
        "Probe" => Fields::listed(&[(&["last_error"], Rule::HideTexts)], Rule::Show),
        "NodeEvent" => Fields::listed(&[(&["message"], Rule::HideTexts)], Rule::Show),
        "Identity" => Fields::listed(&[(&["ExtraClaims"], Rule::HideAll)], Rule::Show),
        "TaskConfig" => others_hidden!(
            &["job", "group", "user"] => Rule::Show, &["config"] => Rule::DriverConfig
        ),
        "TaskRecord" => others_hidden!(&["hooks_done"] => Rule::HideAll),
        "TaskSpec" => others_hidden!(&["driver"] => Rule::Show),
        "TaskEvent" => others_hidden!(&["Details"] => Rule::EventDetails),
        "HookOutput" => others_hidden!(&["env"] => Rule::HideAll),
        "Config" => others_hidden!(
            &["host_env"] => Rule::HidePairs,
            &["alloc_root", "drivers", "device_plugins", "namespaces"] => Rule::Show
        ),
        "NodeEffect" => others_hidden!(&["probe", "driver", "plugin"] => Rule::Show),
        "Dispatch" => others_hidden!(&["prefix"] => Rule::Show),
        "BuildTaskDir" | "FetchArtifacts" => others_hidden!(&["user"] => Rule::Show),
        "InheritDisk" => others_hidden!(&["from"] => Rule::Show),
        // Its names are those of the job file, where they are hidden.
        "CheckRunner" => Fields::all(Rule::HideTexts),
        "CheckSpec" => Fields::listed(&[(&["service"], Rule::HideTexts)], Rule::Show),
        "Check" => Fields::listed(&[(&["name"], Rule::HideTexts)], Rule::Show),
        "HttpRequest" => others_hidden!(
            &["method"] => Rule::Show, &["headers"] => Rule::HidePairs
        ),
        // Where files are, and how a task is told of them: the core decides by it.
        "Template" => others_hidden!(
            &["SourcePath", "DestPath", "ChangeMode", "ChangeSignal"] => Rule::Show
        ),
        _ => others_hidden!(),
    }
}

const JOB: &[(&[&str], Rule)] = &[
    (
        &[
            "ID",
            "ParentID",
            "Name",
            "Namespace",
            "Region",
            "Datacenters",
            "NodePool",
            "Status",
            "StatusDescription",
        ],
        Rule::Show,
    ),
    (
        &[
            "Priority",
            "Version",
            "SubmitTime",
            "CreateIndex",
            "ModifyIndex",
            "JobModifyIndex",
        ],
        Rule::HideTexts,
    ),
];

const GROUP: &[(&[&str], Rule)] = &[
    (&["Name", "Volumes"], Rule::Show),
    (&["Services"], Rule::Service),
    (
        &[
            "Count",
            "ShutdownDelay",
            "MaxRunDuration",
            "StopAfterClientDisconnect",
            "MaxClientDisconnect",
        ],
        Rule::HideTexts,
    ),
];

const TASK: &[(&[&str], Rule)] = &[
    (
        &[
            "Name",
            "Driver",
            "User",
            "KillSignal",
            "VolumeMounts",
            "ImageDigest",
        ],
        Rule::Show,
    ),
    (&["Config"], Rule::DriverConfig),
    (&["Services"], Rule::Service),
    (&["KillTimeout", "ShutdownDelay"], Rule::HideTexts),
];

/// The rule of a type that is the same wherever it stands; that of the field around it if none. Ids
/// and names of tasks and groups are what the core looks things up by: hidden, they could not be read again, or would
/// not be found.
pub(super) fn of_type(name: &str) -> Option<Rule> {
    match name {
        "AllocId" | "EvalId" | "DeploymentId" | "NodeId" | "LaunchId" | "VolumeId" | "TaskName"
        | "GroupName" => Some(Rule::Show),
        _ => None,
    }
}

/// The rule of what an enum's variant holds without names; that of the field around it if none.
pub(super) fn of_variant(owner: &str, variant: &str) -> Option<Rule> {
    match (owner, variant) {
        // The driver's name.
        ("Effect", "Driver" | "Forget") => Some(Rule::Show),
        // What the disk says.
        ("StoreInput", "Failed") => Some(Rule::Show),
        ("StoreEffect" | "Key", _) => Some(Rule::Show),
        ("Effect" | "CheckKind" | "ProbeKind", _) => Some(Rule::HideTexts),
        _ => None,
    }
}

/// Whether a text is what the core checks a value for.
pub(super) fn is_checked_text(text: &str) -> bool {
    let is_number = text.parse::<i64>().is_ok() || parse_duration(text).is_ok();
    let is_name = Sharing::of(text).is_some() || Capabilities::named([text]).is_ok();
    is_number || is_name || port_pair(text).is_some() || is_choice(text)
}

/// Details of events that are the core's own words.
const OWN_WORDS: &[&str] = &[
    "exit_code",
    "signal",
    "oom_killed",
    "kill_timeout",
    "start_delay",
    "fails_task",
    "failed_sibling",
];

/// What of a service and its checks decides something: names of fields without underscores and capitals.
const OF_SERVICES: &[&str] = &[
    "provider",
    "portlabel",
    "addressmode",
    "taskname",
    "onupdate",
    "type",
    "protocol",
    "method",
    "interval",
    "timeout",
    "initialstatus",
    "successbeforepassing",
    "failuresbeforecritical",
    "failuresbeforewarning",
    "grpcusetls",
    "tlsskipverify",
    "limit",
    "grace",
    "ignorewarnings",
];

/// The rule of a field of a service.
fn of_service(key: &str) -> Rule {
    let key = key.replace('_', "").to_ascii_lowercase();
    match key.as_str() {
        "checks" | "checkrestart" => Rule::Service,
        key if OF_SERVICES.contains(&key) => Rule::Show,
        _ => Rule::HideAll,
    }
}

/// The rule of a map's value.
pub(super) fn of_entry(rule: Rule, key: &str) -> Rule {
    match rule {
        Rule::EventDetails if OWN_WORDS.contains(&key) => Rule::Show,
        Rule::EventDetails => Rule::HideTexts,
        Rule::DriverConfig if is_allowed(key) => Rule::Show,
        Rule::DriverConfig if is_checked(key) => Rule::Checked,
        Rule::Service => of_service(key),
        Rule::DriverConfig
        | Rule::Show
        | Rule::HideTexts
        | Rule::HideAll
        | Rule::Checked
        | Rule::HidePairs => rule,
    }
}

/// Whether the rules of maps look at keys.
pub(super) fn hides_keys(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::EventDetails | Rule::DriverConfig | Rule::Service
    )
}

/// Whether the agent's settings decide about what a driver that is known has under this name.
fn is_allowed(name: &str) -> bool {
    let own = |field: &Field| field.name == name && matches!(field.rule, FieldRule::Allowed);
    SCHEMAS.iter().any(|schema| any(schema.fields, &own))
}

/// Whether a driver that is known offers this among others.
fn is_choice(text: &str) -> bool {
    let own =
        |field: &Field| matches!(field.rule, FieldRule::OneOf(choices) if choices.contains(&text));
    SCHEMAS.iter().any(|schema| any(schema.fields, &own))
}

/// Whether there is such a field, or one in its blocks.
fn any(fields: &[Field], such: &dyn Fn(&Field) -> bool) -> bool {
    fields.iter().any(|field| {
        such(field)
            || match field.kind {
                Kind::Block(fields) | Kind::Blocks(fields) => any(fields, such),
                Kind::String
                | Kind::Bool
                | Kind::Number
                | Kind::ListOfString
                | Kind::MapOfString
                | Kind::Refused(_)
                | Kind::Duration => false,
            }
    })
}

/// Whether a driver that is known wants something else than any text under this name.
fn is_checked(name: &str) -> bool {
    SCHEMAS.iter().any(|schema| checks(schema.fields, name))
}

fn checks(fields: &[Field], name: &str) -> bool {
    fields.iter().any(|field| match field.kind {
        Kind::Bool | Kind::Number | Kind::Duration => field.name == name,
        Kind::String => {
            field.name == name && matches!(field.rule, FieldRule::PortPair | FieldRule::OneOf(_))
        }
        Kind::ListOfString => field.name == name && matches!(field.rule, FieldRule::Capabilities),
        Kind::MapOfString | Kind::Refused(_) => false,
        Kind::Block(fields) | Kind::Blocks(fields) => checks(fields, name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is somebody else's data or words is hidden; what it stands in is shown.
    #[test]
    fn possible_secret_is_hidden() {
        let table = [
            ("Job", "ID", Rule::Show),
            ("Job", "Priority", Rule::HideTexts),
            ("Job", "Meta", Rule::HideAll),
            ("TaskGroup", "Name", Rule::Show),
            ("TaskGroup", "Count", Rule::HideTexts),
            ("TaskGroup", "Meta", Rule::HideAll),
            ("Task", "Name", Rule::Show),
            ("Task", "Config", Rule::DriverConfig),
            ("Task", "KillTimeout", Rule::HideTexts),
            ("Task", "Env", Rule::HideAll),
            ("Network", "Mode", Rule::Show),
            ("Network", "Device", Rule::HideAll),
            ("Resources", "CPU", Rule::HideTexts),
            ("MachineResources", "network_modes", Rule::Show),
            ("Resources", "NUMA", Rule::HideAll),
            ("Probe", "last_error", Rule::HideTexts),
            ("Probe", "found", Rule::Show),
            ("NodeEvent", "message", Rule::HideTexts),
            ("NodeEvent", "subsystem", Rule::Show),
            ("TaskConfig", "user", Rule::Show),
            ("TaskConfig", "config", Rule::DriverConfig),
            ("TaskConfig", "env", Rule::HideTexts),
            ("TaskRecord", "hooks_done", Rule::HideAll),
            ("TaskRecord", "state", Rule::HideTexts),
            ("TaskSpec", "driver", Rule::Show),
            ("TaskSpec", "env", Rule::HideTexts),
            ("TaskEvent", "Details", Rule::EventDetails),
            ("TaskEvent", "DisplayMessage", Rule::HideTexts),
            ("HookOutput", "env", Rule::HideAll),
            ("HookOutput", "mounts", Rule::HideTexts),
            ("Config", "host_env", Rule::HidePairs),
            ("Config", "alloc_root", Rule::Show),
            ("Config", "node_secret", Rule::HideTexts),
            ("NodeInput", "result", Rule::Show),
            ("NodeEffect", "probe", Rule::Show),
            ("NodeEffect", "words", Rule::HideTexts),
            ("BuildTaskDir", "user", Rule::Show),
            ("WritePayload", "path", Rule::HideTexts),
            ("Template", "DestPath", Rule::Show),
            ("Template", "EmbeddedTmpl", Rule::HideTexts),
            ("FetchArtifacts", "artifacts", Rule::HideTexts),
            ("Artifact", "GetterSource", Rule::HideTexts),
            ("Artifact", "GetterOptions", Rule::HideTexts),
            ("Artifact", "GetterHeaders", Rule::HideTexts),
            ("HookOutput", "message", Rule::HideTexts),
            ("Reply", "index", Rule::Show),
            ("VariableKey", "path", Rule::Show),
            ("VariableMeta", "modify_index", Rule::Show),
            ("Variable", "items", Rule::HideTexts),
            ("PutVariable", "items", Rule::HideTexts),
            ("Notification", "alloc", Rule::Show),
            ("Notification", "event", Rule::HideTexts),
            ("Unheard", "of", Rule::HideTexts),
            ("RemotePrevious", "token", Rule::HideTexts),
            ("AllocIndexes", "migrate_tokens", Rule::HideTexts),
        ];
        for (owner, field, rule) in table {
            assert_eq!(fields(owner).rule(field), rule, "{owner}.{field}");
        }
    }

    #[test]
    fn driver_config_shows_checked_values_only() {
        for (name, rule) in [
            ("kill_after", Rule::Checked),
            ("exit_code", Rule::Checked),
            ("ipc_mode", Rule::Show),
            ("cap_add", Rule::Checked),
            ("volumes", Rule::Show),
            ("runtime", Rule::Show),
            ("driver", Rule::Show),
            ("image", Rule::DriverConfig),
            ("password", Rule::DriverConfig),
            ("command", Rule::DriverConfig),
            ("args", Rule::DriverConfig),
            ("unheard_of", Rule::DriverConfig),
        ] {
            assert_eq!(of_entry(Rule::DriverConfig, name), rule, "{name}");
        }
        assert_eq!(of_entry(Rule::EventDetails, "exit_code"), Rule::Show);
        assert_eq!(
            of_entry(Rule::EventDetails, "exit_message"),
            Rule::HideTexts
        );
        assert!(is_checked_text("5") && is_checked_text("5s") && !is_checked_text("hunter2"));
        assert!(is_checked_text("tmpfs"));
    }
}
