//! Plugins that are drivers.
