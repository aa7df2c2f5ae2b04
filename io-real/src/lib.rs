//! The real world of the Drover node agent: processes, cgroups, disk.

pub mod cgroup;
pub mod shim;
