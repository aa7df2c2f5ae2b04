use super::*;
use crate::model::identity::{Identity, RenewMode};

fn found(change: impl FnOnce(&mut Identity)) -> Vec<String> {
    let mut identity = Identity {
        file: true,
        ..Identity::default()
    };
    change(&mut identity);
    task_with(|task| task.identity = Some(identity))
}

#[test]
fn identity_name_is_validated() {
    assert_eq!(found(|_| {}).len(), 0);
    assert_eq!(found(|one| one.name = "vault-1_b".into()).len(), 0);
    for odd in ["a/b", "a b", "..", "a\0"] {
        assert!(!found(|one| one.name = odd.into()).is_empty(), "{odd:?}");
    }
    let two = task_with(|task| {
        task.identity = Some(Identity::default());
        let name = "default".to_owned();
        task.identities = vec![Identity {
            name,
            ..Identity::default()
        }];
    });
    assert_eq!(two.len(), 1, "{two:?}");
}

#[test]
fn identity_file_is_validated() {
    assert_eq!(found(|one| one.filepath = "local/token".into()).len(), 0);
    for out in [
        "../alloc/data/token",
        "../../x",
        "local/../..",
        "alloc/../../x/y",
    ] {
        assert_eq!(found(|one| one.filepath = out.into()).len(), 1, "{out}");
    }
    let lone = found(|one| (one.file, one.filepath) = (false, "local/token".into()));
    assert_eq!(lone.len(), 1);
    let same = task_with(|task| {
        let of = |name: &str| Identity {
            name: name.to_owned(),
            file: true,
            filepath: "local/token".to_owned(),
            ..Identity::default()
        };
        task.identities = vec![of("a"), of("b")];
    });
    assert_eq!(same.len(), 1, "{same:?}");
}

#[test]
fn identity_ttl_and_change_mode_are_validated() {
    assert_eq!(found(|one| one.ttl = Span::secs(2)).len(), 0);
    assert_eq!(found(|one| one.ttl = Span::secs(1)).len(), 1);
    assert_eq!(found(|one| one.ttl = Span::secs(-5)).len(), 1);
    assert_eq!(found(|one| one.change_mode = RenewMode::Signal).len(), 1);
    let signal = |one: &mut Identity| {
        one.change_mode = RenewMode::Signal;
        one.change_signal = "SIGHUP".to_owned();
    };
    assert_eq!(found(signal).len(), 0);
    let claims = Some(Value::Map(BTreeMap::new()));
    assert_eq!(found(|one| one.extra_claims = claims).len(), 1);
    let many = vec!["a".to_owned(); 33];
    assert_eq!(found(|one| one.audience = many).len(), 1);
}
