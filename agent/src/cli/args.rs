//! Arguments.
/// x
#[derive(Debug)]
pub struct AgentArgs;
/// x
#[derive(Debug)]
pub struct UpArgs;
