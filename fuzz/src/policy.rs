//! Policies of access control: whatever is written is read or refused with a reason, and who denies wins.

use drover::acl::{Capability, Level, Policy, Rights, VariableCapability};

/// The text of a policy.
///
/// # Panics
/// Something does not hold.
pub fn policy(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    let policy = match Policy::parse(text) {
        Ok(policy) => policy,
        Err(why) => return assert!(!why.to_string().is_empty()),
    };
    let once = Rights::of([&policy]);
    // Who has a policy twice has no more rights, and is never management.
    assert_eq!(once, Rights::of([&policy, &policy]), "{text:?}");
    assert!(!once.is_management());
    let deny = "namespace \"default\" {\n policy = \"deny\"\n}\nnode {\n policy = \"deny\"\n}";
    let Ok(deny) = Policy::parse(deny) else {
        panic!("a policy that is none");
    };
    let denied = Rights::of([&policy, &deny]);
    for capability in Capability::ALL.iter().filter(|it| **it != Capability::Deny) {
        if once.may("default", *capability) {
            assert!(once.may_in_any(*capability), "{text:?}: {capability:?}");
        }
        assert!(
            !denied.may("default", *capability),
            "{text:?}: {capability:?}"
        );
    }
    assert!(!denied.node(Level::Read), "{text:?}");
    for path in ["", "a", "app/db", "nomad/jobs/web/g/t"] {
        let may = |capability| once.may_variable("default", path, capability);
        if may(VariableCapability::Read) || may(VariableCapability::Write) {
            assert!(may(VariableCapability::List), "{text:?}: {path}");
        }
        assert!(!denied.may_variable("default", path, VariableCapability::List));
    }
}
