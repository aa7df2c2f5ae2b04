//! What to do when an agent does not let somebody do something: words for people below its own.

/// What a refusal means for whoever asked, if there is something to say. `source` is the option or variable
/// that the token was from, and `variable` the one that sets a token for this agent.
pub(super) fn hint(
    status: u16,
    body: &str,
    source: Option<&str>,
    variable: &str,
) -> Option<String> {
    let says = |words| body.contains(words);
    match (status, source) {
        (400, _) if says("ACL support disabled") => Some(
            "Access control is off. acl { enabled = true } in the agent's configuration switches it on \
             (docs/access.md)."
                .to_owned(),
        ),
        (403, Some(source)) if says("ACL token not found") => Some(format!(
            "The agent does not know the token of {source}: it is another agent's, has expired, or was deleted."
        )),
        (403, Some(source)) if says("Permission denied") => Some(format!(
            "The token of {source} does not have this right. \"drover acl token self\" shows its policies."
        )),
        (403, None) if says("Permission denied") => Some(format!(
            "No token was shown: set {variable} to one. {WITHOUT_TOKEN}"
        )),
        _ => None,
    }
}

/// The way in that is always open to whoever runs the agent.
pub(super) const WITHOUT_TOKEN: &str = "On the agent's machine its own user needs none: \
     -address unix://DATA_DIR/api.sock (docs/access.md).";

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn hint_says_which_variable_is_meant() {
        for (status, body, source, words) in [
            (403, "Permission denied", None, "set NOMAD_TOKEN to one"),
            (403, "Permission denied", Some("-token"), "token of -token"),
            (403, "ACL token not found", Some("-token"), "has expired"),
            (400, "ACL support disabled", None, "enabled = true"),
        ] {
            let hinted = hint(status, body, source, "NOMAD_TOKEN").unwrap_or_default();
            assert!(hinted.contains(words), "{hinted}");
        }
    }

    #[test]
    fn other_answers_have_no_hint() {
        let unknown_host = "the Host header names neither this machine's address nor a known name";
        for (status, body) in [(404, "ACL token not found"), (403, unknown_host)] {
            assert_eq!(hint(status, body, None, "NOMAD_TOKEN"), None);
        }
    }
}
