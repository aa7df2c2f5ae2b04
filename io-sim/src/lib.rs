//! A simulated world for the Drover node agent.
