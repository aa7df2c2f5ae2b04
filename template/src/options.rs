//! How a template is read, and how much it may use.

/// How a template is read and rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What opens an action; `{{` if empty.
    pub left: String,
    /// What closes an action; `}}` if empty.
    pub right: String,
    /// Whether a key that a map does not have is an error. Otherwise it is shown as `<no value>`,
    /// or as nothing in a map of texts.
    pub error_on_missing_key: bool,
    /// How much it may use.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            left: "{{".into(),
            right: "}}".into(),
            error_on_missing_key: false,
            limits: Limits::default(),
        }
    }
}

/// How much a template may use. What it reaches is an error that names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the template's text.
    pub input: usize,
    /// Bytes of what is rendered.
    pub output: usize,
    /// Bytes of all values that are made meanwhile, also of those that are gone again.
    pub memory: usize,
    /// Steps: actions, calls, turns of loops, and more for work on what is large.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input: 1 << 20,
            output: 16 << 20,
            memory: 64 << 20,
            steps: 4_000_000,
        }
    }
}

/// How deep blocks, parentheses and called templates may be inside of each other.
pub(crate) const DEPTH: usize = 100;

/// How deep lists and maps may be inside of each other.
pub(crate) const VALUE_DEPTH: usize = 64;
