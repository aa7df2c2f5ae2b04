//! Which variables of the agent's own environment its tasks see.
//!
//! Those of an allow list, which the operator may extend and shorten (`env.allowlist` and
//! `env.denylist` among the options of the block `client`). Nomad passes everything on that is not
//! on a list of known secrets; whatever such a list forgets, every task reads.

use std::collections::BTreeSet;

use crate::text::glob_match;

/// Variables that tasks see: where programs, files and users are, language and time. `*` stands
/// for any text.
pub const ALLOWED: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
];

/// Variables that hold secrets or licences as a rule. A pattern of the operator's list does not let
/// them pass; the name in full does.
const SECRET: &[&str] = &[
    "*_LICENSE",
    "*_LICENSE_PATH",
    "*_PASSWORD",
    "*_SECRET",
    "*_TOKEN",
    "*_TOKEN_FILE",
    "AWS_*",
    "AZURE_*",
    "CREDENTIALS_DIRECTORY",
    "DROVER_*",
    "GOOGLE_*",
    "NOMAD_*",
    "VAULT_*",
];

/// What the operator wants differently. Both lists hold names and patterns in which `*` stands for any
/// text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostEnvRules {
    /// Seen beside [`ALLOWED`].
    pub allow: BTreeSet<String>,
    /// Not seen, whatever the other list has.
    pub deny: BTreeSet<String>,
}

impl HostEnvRules {
    /// Whether tasks see a variable of this name.
    pub fn allows(&self, name: &str) -> bool {
        let listed = self.allow.contains(name)
            || matches_any(ALLOWED, name)
            || matches_any(&self.allow, name) && !matches_any(SECRET, name);
        listed && !matches_any(&self.deny, name)
    }
}

fn matches_any<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>, name: &str) -> bool {
    let mut patterns = patterns.into_iter();
    patterns.any(|pattern| glob_match(pattern.as_ref(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> HostEnvRules {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        HostEnvRules {
            allow: names(allow),
            deny: names(deny),
        }
    }

    #[test]
    fn unlisted_host_variable_is_hidden() {
        let rules = HostEnvRules::default();
        for name in ["PATH", "TZ", "LANG", "LC_ALL", "HOME"] {
            assert!(rules.allows(name), "{name}");
        }
        for name in [
            "DROVER_TOKEN",
            "NOMAD_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "DATABASE_URL",
            "NOTIFY_SOCKET",
            "PATHS",
            "path",
            "",
        ] {
            assert!(!rules.allows(name), "{name}");
        }
    }

    #[test]
    fn secret_host_variable_needs_exact_name() {
        let rules = rules(&["*", "NOMAD_TOKEN"], &[]);
        assert!(rules.allows("DATABASE_URL"));
        assert!(rules.allows("NOMAD_TOKEN"));
        assert!(!rules.allows("DROVER_TOKEN"));
        assert!(!rules.allows("MY_PASSWORD"));
    }

    #[test]
    fn deny_list_overrides_allow_list() {
        let rules = rules(&["MY_*", "MY_A"], &["MY_A", "LC_*"]);
        assert!(rules.allows("MY_B"));
        assert!(!rules.allows("MY_A"));
        assert!(!rules.allows("LC_ALL"));
    }
}
