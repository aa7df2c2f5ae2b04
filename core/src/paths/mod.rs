//! Paths that a job file names, as far as they are a task's own or its allocation's.

pub mod destination;
pub mod task_path;
