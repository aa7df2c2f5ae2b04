//! What is shown: fields whose texts are names, ids and settings. Everything else is hidden, so a
//! field that is new, and that nobody thought of here, is hidden too.

use crate::driver::coerce::port_pair;
use crate::driver::config::schema_for;
use crate::driver::schema::{Field, Kind, Rule as FieldRule};
use crate::text::parse_duration;

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
    /// A value that the core checks for being a number and so on: shown if it is.
    Checked,
    /// The details of an event: those that are the core's own words are shown.
    EventDetails,
}

/// The rule of a field.
pub(super) fn of_field(owner: &str, field: &str) -> Rule {
    match owner {
        "JobKey" | "TaskKey" | "AllocRecord" | "AssignedPort" | "Evaluation" | "Deployment"
        | "Meta" | "Node" | "DriverInfo" | "DriverNetwork" | "Constraint" | "UpdateStrategy"
        | "ReschedulePolicy" | "PeriodicConfig" | "Port" | "Launch" | "Local" | "Ledger"
        | "InFlight" | "Agent" | "Broadcasts" | "Sender" | "Mark" | "Header" | "JobRecord"
        | "Saved" | "Restore" | "Handed" | "VariableKey" | "VariableMeta" | "ParameterizedJob"
        | "DispatchPayload" => Rule::Show,
        "Job" => job(field),
        "TaskGroup" => group(field),
        "Task" => task(field),
        "Network" if matches!(field, "Mode" | "Hostname") => Rule::Show,
        "Network" => Rule::HideAll,
        "Resources" if field == "NUMA" => Rule::HideAll,
        // Why a probe failed is somebody else's words.
        "Probe" if field == "trouble" => Rule::HideTexts,
        "NodeEvent" if field == "message" => Rule::HideTexts,
        // What the machine is and has, and what is asked of it: conditions look at all of it.
        "GroupId" | "DeviceRequest" | "Preference" | "AssignedDevices" | "Mount" | "DeviceNode"
        | "SaidGroup" | "SaidDevice" | "SaidAttribute" | "Attribute" | "Group" | "Device"
        | "Fingerprint" | "Processors" | "Core" | "Interface" | "Address" | "Probe"
        | "ProbeConfig" | "NodeEvent" | "DriverFingerprint" | "Machine" | "Fingerprints"
        | "FoundPlugin" | "Drivers" | "Driver" | "Devices" | "Plugin" => Rule::Show,
        "TaskConfig" => match field {
            "job" | "group" | "user" => Rule::Show,
            "config" => Rule::DriverConfig,
            _ => Rule::HideTexts,
        },
        "TaskRecord" if field == "hooks_done" => Rule::HideAll,
        // Names that stand elsewhere.
        "Reads" => Rule::HideTexts,
        "TaskSpec" if field == "driver" => Rule::Show,
        "TaskEvent" if field == "Details" => Rule::EventDetails,
        "HookOutput" if field == "env" => Rule::HideAll,
        "Config" if field == "host_env" => Rule::HidePairs,
        "Config" if matches!(field, "alloc_root" | "drivers" | "device_plugins") => Rule::Show,
        _ if matches!(
            field,
            "alloc" | "task" | "launch" | "tasks" | "signal" | "name"
        ) =>
        {
            Rule::Show
        }
        "NodeInput" => Rule::Show,
        "NodeEffect" if matches!(field, "probe" | "driver" | "plugin") => Rule::Show,
        "Dispatch" if field == "prefix" => Rule::Show,
        "Identity" if field == "ExtraClaims" => Rule::HideAll,
        "Identity" => Rule::Show,
        "BuildTaskDir" | "FetchArtifacts" if field == "user" => Rule::Show,
        "InheritDisk" if field == "from" => Rule::Show,
        // Where files are, and how a task is told of them: the core decides by it.
        "Template" if is_template_word(field) => Rule::Show,
        "Reply" => Rule::Show,
        _ => Rule::HideTexts,
    }
}

fn job(field: &str) -> Rule {
    match field {
        "ID" | "ParentID" | "Name" | "Namespace" | "Region" | "Datacenters" | "NodePool"
        | "Status" | "StatusDescription" => Rule::Show,
        "Priority" | "Version" | "SubmitTime" | "CreateIndex" | "ModifyIndex"
        | "JobModifyIndex" => Rule::HideTexts,
        _ => Rule::HideAll,
    }
}

fn group(field: &str) -> Rule {
    match field {
        "Name" => Rule::Show,
        "Count"
        | "ShutdownDelay"
        | "MaxRunDuration"
        | "StopAfterClientDisconnect"
        | "MaxClientDisconnect" => Rule::HideTexts,
        _ => Rule::HideAll,
    }
}

fn task(field: &str) -> Rule {
    match field {
        "Name" | "Driver" | "User" | "KillSignal" => Rule::Show,
        "Config" => Rule::DriverConfig,
        "KillTimeout" | "ShutdownDelay" => Rule::HideTexts,
        _ => Rule::HideAll,
    }
}

fn is_template_word(field: &str) -> bool {
    matches!(
        field,
        "SourcePath" | "DestPath" | "ChangeMode" | "ChangeSignal"
    )
}

/// The rule of a type that is the same wherever it stands; that of the field around it if none. Ids
/// and names of tasks and groups are what the core looks things up by: hidden, they could not be read again, or would
/// not be found.
pub(super) fn of_type(name: &str) -> Option<Rule> {
    match name {
        "AllocId" | "EvalId" | "DeploymentId" | "NodeId" | "LaunchId" | "TaskName"
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
        ("Effect", _) => Some(Rule::HideTexts),
        _ => None,
    }
}

/// Whether a text is what the core checks a value for.
pub(super) fn is_checked_text(text: &str) -> bool {
    text.parse::<i64>().is_ok() || parse_duration(text).is_ok() || port_pair(text).is_some()
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

/// The rule of a map's value.
pub(super) fn of_entry(rule: Rule, key: &str) -> Rule {
    match rule {
        Rule::EventDetails if OWN_WORDS.contains(&key) => Rule::Show,
        Rule::EventDetails => Rule::HideTexts,
        Rule::DriverConfig if is_checked(key) => Rule::Checked,
        Rule::DriverConfig
        | Rule::Show
        | Rule::HideTexts
        | Rule::HideAll
        | Rule::Checked
        | Rule::HidePairs => rule,
    }
}

/// Whether the rules of maps look at keys.
pub(super) fn looks_at_keys(rule: Rule) -> bool {
    matches!(rule, Rule::EventDetails | Rule::DriverConfig)
}

/// Whether a driver that is known wants something else than any text under this name.
fn is_checked(name: &str) -> bool {
    let known = ["raw_exec", "mock_driver"]
        .into_iter()
        .filter_map(schema_for);
    known.into_iter().any(|schema| checks(schema.fields, name))
}

fn checks(fields: &[Field], name: &str) -> bool {
    fields.iter().any(|field| match field.kind {
        Kind::Bool | Kind::Number | Kind::Duration => field.name == name,
        Kind::String => field.name == name && matches!(field.rule, FieldRule::PortPair),
        Kind::ListOfString | Kind::MapOfString => false,
        Kind::Block(fields) => checks(fields, name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is somebody else's data or words is hidden; what it stands in is shown.
    #[test]
    fn what_may_hold_a_secret_is_hidden() {
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
            ("Network", "DNS", Rule::HideAll),
            ("Resources", "CPU", Rule::HideTexts),
            ("Resources", "NUMA", Rule::HideAll),
            ("Probe", "trouble", Rule::HideTexts),
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
            ("LocalInput", "items", Rule::HideTexts),
            ("Told", "alloc", Rule::Show),
            ("Told", "event", Rule::HideTexts),
            ("Unheard", "of", Rule::HideTexts),
        ];
        for (owner, field, rule) in table {
            assert_eq!(of_field(owner, field), rule, "{owner}.{field}");
        }
    }

    #[test]
    fn of_a_drivers_configuration_only_what_is_checked_may_be_shown() {
        for (name, rule) in [
            ("kill_after", Rule::Checked),
            ("exit_code", Rule::Checked),
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
    }
}
