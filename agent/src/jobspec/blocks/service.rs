//! The `service` block, its checks, and identities.

use super::{Block, Kind, RENAMED, attr, many, one};

pub(super) const SERVICE: Block = Block::new(
    &[
        attr("name", "Name", Kind::Text),
        attr("provider", "Provider", Kind::Text),
        attr("port", "PortLabel", Kind::Text),
        attr("address_mode", "AddressMode", Kind::Text),
        attr("address", "Address", Kind::Text),
        attr("task", "TaskName", Kind::Text),
        attr("tags", "Tags", Kind::Texts),
        attr("canary_tags", "CanaryTags", Kind::Texts),
        attr("meta", "Meta", Kind::Pairs),
        attr("canary_meta", "CanaryMeta", Kind::Pairs),
        attr("tagged_addresses", "TaggedAddresses", Kind::Pairs),
        attr("on_update", "OnUpdate", Kind::Text),
        attr("enable_tag_override", "EnableTagOverride", Kind::Bool),
        attr("cluster", "Cluster", Kind::Text),
        attr("kind", "Kind", Kind::Text),
    ],
    &[
        many("check", "Checks", &CHECK),
        one("check_restart", "CheckRestart", &CHECK_RESTART),
        one("weights", "Weights", &WEIGHTS),
        one("identity", "Identity", &IDENTITY),
        one("connect", "Connect", &RENAMED),
    ],
);

const CHECK: Block = Block::new(
    &[
        attr("name", "Name", Kind::Text),
        attr("type", "Type", Kind::Text),
        attr("interval", "Interval", Kind::Span),
        attr("timeout", "Timeout", Kind::Span),
        attr("path", "Path", Kind::Text),
        attr("method", "Method", Kind::Text),
        attr("protocol", "Protocol", Kind::Text),
        attr("header", "Header", Kind::TextLists),
        attr("body", "Body", Kind::Text),
        attr("tls_server_name", "TLSServerName", Kind::Text),
        attr("tls_skip_verify", "TLSSkipVerify", Kind::Bool),
        attr("command", "Command", Kind::Text),
        attr("args", "Args", Kind::Texts),
        attr("port", "PortLabel", Kind::Text),
        attr("address_mode", "AddressMode", Kind::Text),
        attr("initial_status", "InitialStatus", Kind::Text),
        attr("success_before_passing", "SuccessBeforePassing", Kind::Int),
        attr(
            "failures_before_critical",
            "FailuresBeforeCritical",
            Kind::Int,
        ),
        attr(
            "failures_before_warning",
            "FailuresBeforeWarning",
            Kind::Int,
        ),
        attr("on_update", "OnUpdate", Kind::Text),
        attr("grpc_service", "GRPCService", Kind::Text),
        attr("grpc_use_tls", "GRPCUseTLS", Kind::Bool),
        attr("expose", "Expose", Kind::Bool),
        attr("notes", "Notes", Kind::Text),
        attr("task", "TaskName", Kind::Text),
    ],
    &[one("check_restart", "CheckRestart", &CHECK_RESTART)],
);

const CHECK_RESTART: Block = Block::new(
    &[
        attr("limit", "Limit", Kind::Int),
        attr("grace", "Grace", Kind::Span),
        attr("ignore_warnings", "IgnoreWarnings", Kind::Bool),
    ],
    &[],
);

const WEIGHTS: Block = Block::new(
    &[
        attr("passing", "Passing", Kind::Int),
        attr("warning", "Warning", Kind::Int),
    ],
    &[],
);

pub(super) const IDENTITY: Block = Block::new(
    &[
        attr("name", "Name", Kind::Text),
        attr("aud", "Audience", Kind::Texts),
        attr("change_mode", "ChangeMode", Kind::Text),
        attr("change_signal", "ChangeSignal", Kind::Text),
        attr("env", "Env", Kind::Bool),
        attr("file", "File", Kind::Bool),
        attr("filepath", "Filepath", Kind::Text),
        attr("ttl", "TTL", Kind::Span),
        attr("extra_claims", "ExtraClaims", Kind::Pairs),
    ],
    &[],
);
