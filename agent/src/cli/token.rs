//! The token that a command shows to the agent. It is sent to the configured address alone, and nobody
//! reads it on a screen.

use std::fmt;

use hyper::header::HeaderValue;

use super::exit_code::Failure;

/// A secret of the command line, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A token, and where it was found.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// Marked as sensitive, so that it is left out where a request is printed.
    pub(super) header: HeaderValue,
    /// The option or the variable.
    pub(super) source: &'static str,
}

impl Token {
    /// The first of the option and these variables that is there; none if that is empty.
    ///
    /// # Errors
    /// It cannot be sent.
    pub(super) fn find(
        option: &'static str,
        given: Option<&Secret>,
        variables: &[&'static str],
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Token>, Failure> {
        let given = given.map(|secret| (option, secret.0.clone()));
        let mut variables = variables.iter();
        let found = given.or_else(|| variables.find_map(|name| Some((*name, env(name)?))));
        let found = found.map(|(source, text)| (source, text.trim().to_owned()));
        let Some((source, text)) = found.filter(|(_, text)| !text.is_empty()) else {
            return Ok(None);
        };
        let words = format!("the token of {source} has characters that no header may have");
        let mut header = HeaderValue::from_str(&text).map_err(|_| Failure::new(words))?;
        header.set_sensitive(true);
        Ok(Some(Token { header, source }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLES: &[&str] = &["DROVER_TOKEN", "NOMAD_TOKEN"];

    fn found(given: Option<&str>, env: &[(&str, &str)]) -> Option<(String, &'static str)> {
        let given = given.map(|text| Secret::from(text.to_owned()));
        let env = |name: &str| {
            let found = env.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let token = Token::find("-token", given.as_ref(), VARIABLES, env).unwrap()?;
        Some((token.header.to_str().unwrap().to_owned(), token.source))
    }

    #[test]
    fn option_overrides_variables() {
        let both = [("NOMAD_TOKEN", " theirs\n"), ("DROVER_TOKEN", "ours")];
        assert_eq!(
            found(Some("given"), &both),
            Some(("given".to_owned(), "-token"))
        );
        assert_eq!(found(None, &both), Some(("ours".to_owned(), VARIABLES[0])));
        let theirs = Some(("theirs".to_owned(), VARIABLES[1]));
        assert_eq!(found(None, &both[..1]), theirs);
        assert_eq!(found(None, &[("DROVER_TOKEN", ""), both[0]]), None);
    }

    #[test]
    fn token_is_shown_nowhere() {
        let secret = Secret::from("hunter2\u{7f}".to_owned());
        let token = Token::find("-token", Some(&secret), &[], |_| None);
        let words = token.unwrap_err().message;
        assert!(
            words.contains("-token") && !words.contains("hunter2"),
            "{words}"
        );
        let secret = Secret::from("hunter2".to_owned());
        let token = Token::find("-token", Some(&secret), &[], |_| None).unwrap();
        let shown = format!("{secret:?} {token:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
