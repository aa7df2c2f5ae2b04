//! What is not there: routes that Nomad has and this agent does not offer are answered 501 with their
//! name, so that nobody takes them for a job or a node that is unknown; all others 404, in words.

use axum::extract::Request;
use axum::http::StatusCode;
use drover_core::text::quote;

use super::errors::ApiError;

/// Routes of Nomad that are not offered: `*` stands for one segment, a `**` at the end for any number
/// of them. A job's own routes are in [`super::job`], since ids of jobs have slashes.
const NOT_OFFERED: &[(&str, &str)] = &[
    ("agent/force-leave", "agents that leave a cluster"),
    ("agent/join", "agents that join a cluster"),
    ("agent/keyring/**", "keyrings"),
    (
        "agent/monitor/export",
        "logs of the past, which the journal of the system has",
    ),
    ("agent/pprof/**", "profiles of the agent"),
    ("agent/reload", "reloading the agent's configuration"),
    ("client/allocation/*/pause", "pausing tasks"),
    ("client/identity", "identities of nodes"),
    ("operator/**", "operating servers"),
    ("plugin/**", "CSI plugins"),
    ("raft/**", "operating servers"),
    ("volume/csi/**", "volumes of storage plugins"),
    ("volumes/**", "volumes of storage plugins"),
];

/// What of an unknown path is shown again.
const SHOWN: usize = 100;

/// Not offered, in words: what, and where it was asked for.
pub(super) fn not_offered(what: &str, path: &str) -> ApiError {
    let words = format!("Drover does not offer {what} ({})", shown(path));
    ApiError::new(StatusCode::NOT_IMPLEMENTED, words)
}

/// Answers a request for which there is no route.
pub(super) async fn answer(request: Request) -> ApiError {
    let path = request.uri().path();
    if path == "/ui" || path.starts_with("/ui/") {
        return not_offered("a web interface", path);
    }
    match offered_by_nomad(path) {
        Some(what) => not_offered(what, path),
        None => ApiError::not_found(format!("there is no route {}", shown(path))),
    }
}

fn shown(path: &str) -> String {
    let cut = path
        .char_indices()
        .nth(SHOWN)
        .map_or(path.len(), |(at, _)| at);
    quote(path.get(..cut).unwrap_or_default())
}

/// What Nomad offers at this path, if this agent does not.
pub(super) fn offered_by_nomad(path: &str) -> Option<&'static str> {
    let path = path.strip_prefix("/v1/")?;
    let is_there = |pattern: &str| {
        let mut segments = path.split('/');
        for wanted in pattern.split('/') {
            match (wanted, segments.next()) {
                ("**", _) => return true,
                ("*", Some(segment)) if !segment.is_empty() => {}
                (wanted, Some(segment)) if wanted == segment => {}
                (_, Some(_) | None) => return false,
            }
        }
        segments.next().is_none()
    };
    let found = NOT_OFFERED.iter().find(|(pattern, _)| is_there(pattern));
    found.map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_nomad_route_is_recognized() {
        for (path, what) in [
            ("/v1/client/allocation/x/pause", Some("pausing tasks")),
            ("/v1/raft/peer", Some("operating servers")),
            (
                "/v1/agent/monitor/export",
                Some("logs of the past, which the journal of the system has"),
            ),
            ("/v1/jobs/statuses", None),
            (
                "/v1/agent/reload",
                Some("reloading the agent's configuration"),
            ),
            ("/v1/client/allocation/x/pause/y", None),
            ("/v1/client/allocation//pause", None),
            ("/v2/search", None),
            ("/v1/nothing", None),
        ] {
            assert_eq!(offered_by_nomad(path), what, "{path}");
        }
    }
}
