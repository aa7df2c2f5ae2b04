//! Query parameters that most reads have in common.

use std::time::Duration;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use drover_core::text::{parse_duration, quote};

use super::access::Principal;
use super::errors::ApiError;
use super::filter::{Filter, Row};
use super::serve::Caller;
use crate::acl::Capability;

/// The longest that a blocking query waits, and how long it waits unless told otherwise.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// Parameters that are on or off, of any route: one that is neither is an error everywhere.
const SWITCHES: [&str; 19] = [
    "all",
    "diffs",
    "follow",
    "force",
    "global",
    "include_children",
    "meta",
    "no_shutdown_delay",
    "os",
    "plain",
    "purge",
    "related",
    "reschedule",
    "resources",
    "reverse",
    "task_states",
    "tty",
    "until_end",
    "ws_handshake",
];
/// More parameters than this nobody means.
const MAX_PARAMS: usize = 64;

/// The query of one request, and whose it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Params {
    given: Vec<(String, String)>,
    /// Answer when the state's index is above this one; 0 for at once.
    pub(super) index: u64,
    /// How long to wait for that.
    pub(super) wait: Duration,
    /// Whether the answer is indented.
    pub(super) pretty: bool,
    /// How many elements a page has at most; 0 for no pages.
    pub(super) per_page: usize,
    /// Which elements of a list are answered; all unless given.
    pub(super) filter: Option<Filter>,
    /// The connection that it came over.
    pub(super) caller: Caller,
    /// Whose it is.
    pub(super) principal: Principal,
}

impl Params {
    /// Reads the parameters that all reads have in common.
    ///
    /// # Errors
    /// The first one that makes no sense.
    pub(super) fn parse(given: Vec<(String, String)>) -> Result<Params, ApiError> {
        if given.len() > MAX_PARAMS {
            return Err(ApiError::bad("too many query parameters"));
        }
        let mut params = Params {
            given,
            wait: MAX_WAIT,
            ..Params::default()
        };
        if let Some(index) = params.non_empty("index") {
            params.index = index.parse().map_err(|_| ApiError::bad("Invalid index"))?;
        }
        if let Some(wait) = params.non_empty("wait") {
            let span = parse_duration(wait).map_err(|_| ApiError::bad("Invalid wait time"))?;
            let nanos = u64::try_from(span.0).map_err(|_| ApiError::bad("Invalid wait time"))?;
            params.wait = Duration::from_nanos(nanos).min(MAX_WAIT);
        }
        if let Some(count) = params.non_empty("per_page") {
            let words = "Expect a number for `per_page` query string parameter";
            params.per_page = count.parse().map_err(|_| ApiError::bad(words))?;
        }
        if !matches!(params.get("stale"), None | Some("" | "true" | "false")) {
            let words = "Expect `true` or `false` for `stale` query string parameter";
            return Err(ApiError::bad(words));
        }
        for name in SWITCHES {
            for value in params.all(name) {
                switch(name, value)?;
            }
        }
        params.pretty = params.get("pretty").is_some_and(|value| value != "0");
        Ok(params)
    }

    /// The first value of a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut values = self.given.iter().filter(|(key, _)| key == name);
        values.next().map(|(_, value)| value.as_str())
    }

    /// The same for a list that begins with its last element unless `reverse` is asked for.
    pub(super) fn last_first(mut self) -> Params {
        let reverse = !self.flag("reverse");
        self.given.retain(|(name, _)| name != "reverse");
        self.given.push(("reverse".to_owned(), reverse.to_string()));
        self
    }

    /// Every value of a parameter.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let values = self.given.iter().filter(move |(key, _)| key == name);
        values.map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter, unless it is empty.
    pub(super) fn non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// A parameter that is on or off; off unless given. Those of [`SWITCHES`] were checked.
    pub(super) fn flag(&self, name: &'static str) -> bool {
        let value = self.get(name).unwrap_or_default();
        switch(name, value).unwrap_or(false)
    }

    /// The namespace that is asked for; all of them for `*`.
    pub(super) fn namespace(&self) -> &str {
        self.non_empty("namespace").unwrap_or("default")
    }

    /// Whether things of this namespace are asked for, by somebody who may see them with this capability.
    pub(super) fn includes(&self, namespace: &str, capability: Capability) -> bool {
        let wanted = self.namespace();
        (wanted == "*" || wanted == namespace) && self.may(namespace, capability)
    }

    /// As [`Params::includes`], where naming no namespace means all of them.
    pub(super) fn includes_all_by_default(&self, namespace: &str, capability: Capability) -> bool {
        match self.non_empty("namespace") {
            Some(_) => self.includes(namespace, capability),
            None => self.may(namespace, capability),
        }
    }

    /// The names of the policies of whoever asks; none where they may see all policies.
    pub(super) fn caller_policies(&self) -> Option<Vec<String>> {
        self.principal.policies()
    }

    /// Whether whoever asks may do something in a namespace.
    pub(super) fn may(&self, namespace: &str, capability: Capability) -> bool {
        self.principal.rights().may(namespace, capability)
    }

    /// What ids must begin with.
    pub(super) fn prefix(&self) -> &str {
        self.get("prefix").unwrap_or_default()
    }

    /// Whether an id begins as it is asked for.
    pub(super) fn is_prefix_of(&self, id: impl ToString) -> bool {
        let prefix = self.prefix();
        prefix.is_empty() || has_prefix(&id.to_string(), prefix)
    }

    /// Cuts one page out of what of a list the filter takes, and says where the next one begins. The list
    /// is in the order of its tokens.
    ///
    /// # Errors
    /// The filter cannot be evaluated over an element.
    pub(super) fn page<T: Row>(
        &self,
        mut items: Vec<T>,
        token: impl Fn(&T) -> String,
    ) -> Result<Page<T>, ApiError> {
        let reverse = self.flag("reverse");
        if reverse {
            items.reverse();
        }
        let start = self.non_empty("next_token").map(Place::of);
        let is_before = |item: &T| match &start {
            None => false,
            Some(start) => {
                let order = Place::of(&token(item)).cmp(start);
                if reverse {
                    order.is_gt()
                } else {
                    order.is_lt()
                }
            }
        };
        let most = match self.per_page {
            0 => usize::MAX,
            most => most,
        };
        let mut page = Page {
            items: Vec::new(),
            next: None,
        };
        for item in items.into_iter().skip_while(is_before) {
            if let Some(filter) = &self.filter
                && !filter.takes(&item)?
            {
                continue;
            }
            if page.items.len() == most {
                page.next = Some(token(&item));
                break;
            }
            page.items.push(item);
        }
        Ok(page)
    }
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    /// The token of the first element behind it.
    pub(super) next: Option<String>,
}

/// Where the element of a token stands in its list: by the index in front of the point, if there is one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    index: Option<u64>,
    names: Vec<String>,
}

impl Place {
    fn of(token: &str) -> Place {
        let (first, rest) = token.split_once('.').unwrap_or((token, ""));
        let index = first.parse().ok().filter(|_| !rest.is_empty());
        Place {
            index,
            names: match index {
                Some(_) => vec![rest.to_owned()],
                None => vec![first.to_owned(), rest.to_owned()],
            },
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Params, ApiError> {
        let Ok(Query(given)) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri) else {
            return Err(ApiError::bad("the query string makes no sense"));
        };
        let mut params = Params::parse(given)?;
        if let Some(expression) = params.non_empty("filter") {
            params.filter = Some(Filter::parse(expression)?);
        }
        params.caller = parts.extensions.get().cloned().unwrap_or_default();
        params.principal = parts.extensions.get().cloned().unwrap_or_default();
        Ok(params)
    }
}

/// On or off, in the spellings that Go takes; nothing is off.
fn switch(name: &'static str, value: &str) -> Result<bool, ApiError> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => {
            let shown = quote(other);
            let words =
                format!("Failed to parse value of {name:?} ({shown}): true or false is needed");
            Err(ApiError::bad(words))
        }
    }
}

/// Reads `%2F` and the like. None for what is no UTF-8 or no such code.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(out).ok()
}

/// Whether an id, which is a UUID, begins with a prefix of its hexadecimal digits.
pub(super) fn has_prefix(id: &str, prefix: &str) -> bool {
    let mut id = id.chars().filter(|c| *c != '-');
    let mut prefix = prefix.chars().filter(|c| *c != '-');
    prefix.all(|wanted| id.next() == Some(wanted.to_ascii_lowercase()))
}

/// Fails for a prefix that is none of a UUID, as Nomad does.
///
/// # Errors
/// The digits are odd in number, or are none.
pub(super) fn check_prefix(what: &str, prefix: &str) -> Result<(), ApiError> {
    let digits = prefix.chars().filter(|c| *c != '-');
    let why = if digits.clone().any(|c| !c.is_ascii_hexdigit()) {
        "index error: Invalid UUID: encoding/hex: invalid byte"
    } else if digits.count() % 2 == 1 {
        "index error: Input (without hyphens) must be even length"
    } else {
        return Ok(());
    };
    Err(ApiError::failed(format!("{what} lookup failed: {why}")))
}

/// Reads the id of a path.
///
/// # Errors
/// It is no UUID.
pub(super) fn uuid<T: core::str::FromStr>(what: &str, text: &str) -> Result<T, ApiError> {
    let words = || format!("{what} lookup failed: index error: UUID must be 36 characters");
    text.parse().map_err(|_| ApiError::failed(words()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &[(&str, &str)]) -> Result<Params, ApiError> {
        let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
        Params::parse(query.iter().map(own).collect())
    }

    #[test]
    fn bad_parameters_have_nomad_messages() {
        let message = |query| {
            let failed = params(&[query]).map(drop);
            failed.map_err(|e| (e.status.as_u16(), e.message))
        };
        assert_eq!(
            message(("index", "-1")),
            Err((400, "Invalid index".to_owned()))
        );
        assert_eq!(
            message(("wait", "soon")),
            Err((400, "Invalid wait time".to_owned()))
        );
        assert_eq!(
            message(("wait", "-1s")),
            Err((400, "Invalid wait time".to_owned()))
        );
        assert!(message(("stale", "maybe")).is_err());
        assert!(message(("per_page", "x")).is_err());
    }

    #[test]
    fn boolean_in_any_go_spelling_is_parsed() {
        let purge = |value| params(&[("purge", value)]).map(|params| params.flag("purge"));
        for on in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(purge(on), Ok(true), "{on}");
        }
        for off in ["", "0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(purge(off), Ok(false), "{off}");
        }
        assert_eq!(params(&[]).map(|params| params.flag("purge")), Ok(false));
    }

    #[test]
    fn invalid_boolean_is_refused() {
        let long = "x".repeat(100_000);
        for name in SWITCHES {
            for bad in ["yes", "tRUE", "2", " true", long.as_str()] {
                let refused = params(&[(name, bad)]).unwrap_err();
                assert_eq!(refused.status.as_u16(), 400, "{name}={bad}");
                assert!(refused.message.contains(name) && refused.message.len() < 300);
            }
        }
    }

    #[test]
    fn blocking_query_wait_is_bounded() {
        assert_eq!(params(&[("wait", "2h")]).map(|p| p.wait), Ok(MAX_WAIT));
        assert_eq!(
            params(&[("wait", "10ms")]).map(|p| p.wait),
            Ok(Duration::from_millis(10))
        );
    }

    #[test]
    fn page_begins_at_next_token() {
        let page = |query: &[(&str, &str)]| {
            let list = vec!["default.a", "default.b", "default.c"];
            let page = params(query).unwrap().page(list, |item| (*item).to_owned());
            let page = page.unwrap();
            (page.items, page.next)
        };
        let own = |token: &str| Some(token.to_owned());
        let first = page(&[("per_page", "2")]);
        assert_eq!(first, (vec!["default.a", "default.b"], own("default.c")));
        let second = page(&[("per_page", "2"), ("next_token", "default.c")]);
        assert_eq!(second, (vec!["default.c"], None));
        // What the token was of may be gone by now.
        let gone = page(&[("per_page", "1"), ("next_token", "default.aa")]);
        assert_eq!(gone, (vec!["default.b"], own("default.c")));
        let back = [
            ("per_page", "1"),
            ("reverse", "true"),
            ("next_token", "default.b"),
        ];
        assert_eq!(page(&back), (vec!["default.b"], own("default.a")));
    }

    #[test]
    fn token_with_an_index_is_ordered_by_its_number() {
        assert!(Place::of("9.x") < Place::of("10.a"));
        assert!(Place::of("10.a") < Place::of("10.b"));
        assert!(Place::of("default.a") < Place::of("default2.a"));
    }

    #[test]
    fn id_prefix_ignores_dashes_and_case() {
        let id = "01234567-89ab-cdef-0123-456789abcdef";
        assert!(has_prefix(id, "0123456789AB"));
        assert!(has_prefix(id, "01234567-89"));
        assert!(!has_prefix(id, "0223"));
        assert!(check_prefix("alloc", "012").is_err());
        assert!(check_prefix("alloc", "zz").is_err());
        assert_eq!(percent_decode("a%2Fb%zz"), None);
        assert_eq!(percent_decode("a%2Fb").as_deref(), Some("a/b"));
    }
}
