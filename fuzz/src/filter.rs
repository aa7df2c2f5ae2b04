//! Filter expressions: whatever is asked for is answered or refused with a reason, and the opposite is answered with
//! the opposite.

use drover::http::untrusted;
use serde_json::{Value, json};

/// A filter expression.
///
/// # Panics
/// Something does not hold.
pub fn filter(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    let object = object();
    let taken = untrusted::filter(text, &object);
    if let Err(why) = &taken {
        assert!(!why.is_empty());
    }
    // What is too long or too deep with more around it is refused.
    let opposite = untrusted::filter(&format!("not ({text})"), &object);
    if let (Ok(taken), Ok(opposite)) = (&taken, &opposite) {
        assert_ne!(taken, opposite, "{text:?}");
    }
    let twice = untrusted::filter(&format!("({text}) and ({text})"), &object);
    if let (Ok(taken), Ok(twice)) = (&taken, &twice) {
        assert_eq!(taken, twice, "{text:?}");
    }
}

/// Something with a field of each kind.
fn object() -> Value {
    json!({
        "ID": "calc",
        "Type": "batch",
        "Priority": 50,
        "Share": 0.5,
        "Stop": false,
        "Datacenters": ["dc1", "dc2"],
        "Meta": { "owner": "me", "a.b": "dotted", "x/y": "slashed" },
        "Periodic": null,
        "TaskStates": {
            "a": { "State": "dead", "Failed": true },
            "b": { "State": "running", "Failed": false, "Events": [{ "Type": "Started", "Time": 1 }] },
        },
    })
}
