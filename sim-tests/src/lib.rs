//! Scenarios and properties: the core against the simulated world.
