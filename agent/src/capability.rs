//! The words of the policy language: Nomad's capabilities, and the shorthands for several of them.

use std::collections::BTreeSet;

/// The capabilities of one kind of rule, with their names.
macro_rules! capabilities {
    ($(#[$doc:meta])* $kind:ident { $($(#[$of:meta])* $name:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $kind { $($(#[$of])* $name,)* }

        impl $kind {
            /// All of them.
            pub const ALL: &[$kind] = &[$($kind::$name,)*];
            /// Their names, in the same order.
            pub const NAMES: &[&str] = &[$($text,)*];

            /// The one of this name.
            pub fn named(name: &str) -> Option<$kind> {
                let at = Self::NAMES.iter().position(|known| *known == name)?;
                Self::ALL.get(at).copied()
            }
        }
    };
}

capabilities! {
    /// What may be done in a namespace.
    #[expect(missing_docs, reason = "their names say it")]
    Capability {
        /// Nothing may be done, whatever other rules allow.
        Deny = "deny",
        ListJobs = "list-jobs",
        ParseJob = "parse-job",
        ReadJob = "read-job",
        SubmitJob = "submit-job",
        DispatchJob = "dispatch-job",
        ReadLogs = "read-logs",
        ReadFs = "read-fs",
        AllocExec = "alloc-exec",
        /// Exec in tasks that see the file system of the host.
        AllocNodeExec = "alloc-node-exec",
        AllocLifecycle = "alloc-lifecycle",
        SentinelOverride = "sentinel-override",
        CsiRegisterPlugin = "csi-register-plugin",
        CsiWriteVolume = "csi-write-volume",
        CsiReadVolume = "csi-read-volume",
        CsiListVolume = "csi-list-volume",
        CsiMountVolume = "csi-mount-volume",
        ListScalingPolicies = "list-scaling-policies",
        ReadScalingPolicy = "read-scaling-policy",
        ReadJobScaling = "read-job-scaling",
        ScaleJob = "scale-job",
        SubmitRecommendation = "submit-recommendation",
        HostVolumeCreate = "host-volume-create",
        HostVolumeRegister = "host-volume-register",
        HostVolumeRead = "host-volume-read",
        HostVolumeWrite = "host-volume-write",
        HostVolumeDelete = "host-volume-delete",
    }
}

capabilities! {
    /// What may be done with a variable.
    #[expect(missing_docs, reason = "their names say it")]
    VariableCapability {
        /// Nothing may be done, whatever other rules allow.
        Deny = "deny",
        /// Its path and times may be seen, its content may not.
        List = "list",
        Read = "read",
        Write = "write",
        Destroy = "destroy",
    }
}

capabilities! {
    /// What a job may do with a host volume.
    #[expect(missing_docs, reason = "their names say it")]
    HostVolumeCapability {
        /// Nothing may be done, whatever other rules allow.
        Deny = "deny",
        MountReadonly = "mount-readonly",
        MountReadwrite = "mount-readwrite",
    }
}

capabilities! {
    /// What may be done with a node pool.
    #[expect(missing_docs, reason = "their names say it")]
    PoolCapability {
        /// Nothing may be done, whatever other rules allow.
        Deny = "deny",
        Read = "read",
        Write = "write",
        Delete = "delete",
    }
}

/// How far the right to something goes that there is once. Where policies differ, the last of these wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Plugins may be listed, and not looked at.
    List,
    /// All may be seen.
    Read,
    /// All may be seen and changed.
    Write,
    /// Nothing may be done, whatever other rules allow.
    Deny,
}

impl Level {
    /// The words for levels; `list` is for plugins alone.
    pub const NAMES: &[&str] = &["read", "write", "deny"];
    /// The words for levels of plugins.
    pub const PLUGIN_NAMES: &[&str] = &["list", "read", "write", "deny"];

    /// The level of this name.
    pub(super) fn named(name: &str) -> Option<Level> {
        match name {
            "list" => Some(Level::List),
            "read" => Some(Level::Read),
            "write" => Some(Level::Write),
            "deny" => Some(Level::Deny),
            _ => None,
        }
    }
}

/// The shorthands for capabilities of a namespace.
pub const NAMESPACE_POLICIES: &[&str] = &["read", "write", "scale", "deny"];

const SCALE: [Capability; 4] = [
    Capability::ListScalingPolicies,
    Capability::ReadScalingPolicy,
    Capability::ReadJobScaling,
    Capability::ScaleJob,
];

const READ: [Capability; 9] = [
    Capability::ListJobs,
    Capability::ParseJob,
    Capability::ReadJob,
    Capability::CsiListVolume,
    Capability::CsiReadVolume,
    Capability::ReadJobScaling,
    Capability::ListScalingPolicies,
    Capability::ReadScalingPolicy,
    Capability::HostVolumeRead,
];

/// What `write` has on top of `read`.
const WRITE: [Capability; 14] = [
    Capability::ScaleJob,
    Capability::SubmitJob,
    Capability::DispatchJob,
    Capability::ReadLogs,
    Capability::ReadFs,
    Capability::AllocExec,
    Capability::AllocLifecycle,
    Capability::CsiMountVolume,
    Capability::CsiWriteVolume,
    Capability::SubmitRecommendation,
    Capability::HostVolumeCreate,
    Capability::HostVolumeRegister,
    Capability::HostVolumeWrite,
    Capability::HostVolumeDelete,
];

/// What a shorthand stands for in the rule of a namespace.
pub(super) fn of_namespace(policy: &str) -> BTreeSet<Capability> {
    match policy {
        "deny" => [Capability::Deny].into(),
        "read" => READ.into(),
        "write" => READ.into_iter().chain(WRITE).collect(),
        "scale" => SCALE.into(),
        _ => BTreeSet::new(),
    }
}

/// What a shorthand stands for in the rule of a host volume.
pub(super) fn of_host_volume(policy: &str) -> BTreeSet<HostVolumeCapability> {
    use HostVolumeCapability::{Deny, MountReadonly, MountReadwrite};
    match policy {
        "deny" => [Deny].into(),
        "read" => [MountReadonly].into(),
        "write" => [MountReadonly, MountReadwrite].into(),
        _ => BTreeSet::new(),
    }
}

/// What a shorthand stands for in the rule of a node pool.
pub(super) fn of_pool(policy: &str) -> BTreeSet<PoolCapability> {
    use PoolCapability::{Delete, Deny, Read, Write};
    match policy {
        "deny" => [Deny].into(),
        "read" => [Read].into(),
        "write" => [Read, Write, Delete].into(),
        _ => BTreeSet::new(),
    }
}

/// What one capability of a variable, of a host volume or of a namespace brings along.
pub(super) fn implied(capabilities: &mut BTreeSet<VariableCapability>) {
    use VariableCapability::{List, Read, Write};
    if capabilities.contains(&Read) || capabilities.contains(&Write) {
        capabilities.insert(List);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorthand_stands_for_what_it_does_in_nomad() {
        let read = of_namespace("read");
        let write = of_namespace("write");
        assert!(read.is_subset(&write) && of_namespace("scale").is_subset(&write));
        for secret in [
            Capability::ReadLogs,
            Capability::ReadFs,
            Capability::AllocExec,
        ] {
            assert!(!read.contains(&secret) && write.contains(&secret));
        }
        assert!(!write.contains(&Capability::AllocNodeExec));
        assert!(!write.contains(&Capability::SentinelOverride));
        for name in Capability::NAMES {
            assert!(Capability::named(name).is_some(), "{name}");
        }
        assert_eq!(Capability::named("Deny"), None);
    }
}
