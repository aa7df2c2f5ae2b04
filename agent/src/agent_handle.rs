//! The handle of the agent's core, for all requests of people and programs.

pub use drover_io_real::agent_handle::{
    AgentHandle, AgentStopped, CoreMetrics, Message, Question, RequestInbox,
};
