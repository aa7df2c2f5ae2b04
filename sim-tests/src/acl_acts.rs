//! Random worlds in which people make policies and tokens of the API, and take them away.

use drover_core::time::Span;
use drover_io_sim::Dice;
use drover_io_sim::script::{
    Act, ApplyAclPolicy, BootstrapAcl, CreateAclToken, DeleteAclPolicy, DeleteAclToken,
    UpdateAclToken, What,
};

/// The secrets of random worlds: so few that one is used again.
const SECRETS: usize = 3;

/// In some worlds.
pub(crate) fn acts_of_acl(dice: &mut Dice, acts: &mut Vec<Act>) {
    if dice.below(8, "access control", "") != 1 {
        return;
    }
    for _ in 0..dice.below(12, "acts of access control", "") {
        let pause = dice.one_of(&[0, 0, 5_000, 60_000], "pause of access control", "");
        let act = Act {
            pause: Span::millis(pause.unwrap_or(0)),
            steps: 0,
            what: act(dice),
        };
        let at = dice.below(acts.len() + 1, "when of access control", "");
        acts.insert(at, act);
    }
}

fn act(dice: &mut Dice) -> What {
    let secret = u8::try_from(dice.below(SECRETS, "secret", "")).unwrap_or(0);
    let policies = ["read", "deploy"];
    let policy = policies[dice.below(2, "policy", "")].to_owned();
    match dice.below(10, "about access control", "") {
        0 | 1 => BootstrapAcl { secret }.into(),
        2..=4 => {
            let ttls = [None, Some(60), Some(1), Some(3600)];
            let ttl = dice.one_of(&ttls, "time of a token", "").flatten();
            CreateAclToken {
                secret,
                policy,
                ttl,
            }
            .into()
        }
        5 => {
            let policy = (dice.below(3, "everything", "") > 0).then_some(policy);
            UpdateAclToken { secret, policy }.into()
        }
        6 | 7 => DeleteAclToken { secret }.into(),
        8 => {
            let rules = format!("rules {}", dice.below(2, "rules", ""));
            ApplyAclPolicy {
                name: policy,
                rules,
            }
            .into()
        }
        _ => DeleteAclPolicy { name: policy }.into(),
    }
}
