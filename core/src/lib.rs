//! The decisions of the Drover node agent; pure.
