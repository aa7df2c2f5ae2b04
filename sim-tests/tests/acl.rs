//! Access control of the API: one first token, and none that comes back.

use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::agent::requests::{
    ApplyAclPolicy, BootstrapAcl, CreateAclToken, DeleteAclPolicy, DeleteAclToken, Request,
    UpdateAclToken,
};
use drover_core::ids::AccessorId;
use drover_core::model::acl::{AclPolicy, AclToken, SecretDigest, TokenType};
use drover_core::store::{Key, Saved};
use drover_core::time::{Instant, Now, Span, Timestamp};
use drover_io_sim::Sim;
use drover_sim_tests::inspect::{Inspect, SOON, accepts, refuses};
use drover_sim_tests::{each_crash, for_seeds};

fn token(secret: u8) -> AclToken {
    AclToken {
        accessor: AccessorId(secret.into()),
        digest: SecretDigest([secret; 32]),
        name: "ci".to_owned(),
        policies: ["deploy".into()].into(),
        ..AclToken::default()
    }
}

fn first(secret: u8) -> Request {
    let token = AclToken {
        policies: [].into(),
        ..token(secret)
    };
    BootstrapAcl { token }.into()
}

fn create(token: AclToken) -> Request {
    CreateAclToken { token }.into()
}

/// A token that expires after this many seconds.
fn for_seconds(sim: &Sim, secret: u8, seconds: i64) -> Request {
    create(AclToken {
        expires: Some(Timestamp(sim.world.now().wall.0 + seconds * 1_000_000_000)),
        ..token(secret)
    })
}

fn delete(secret: u8) -> Request {
    let accessor = AccessorId(secret.into());
    DeleteAclToken { accessor }.into()
}

fn policy(rules: &str) -> Request {
    let policy = AclPolicy {
        name: "deploy".into(),
        rules: rules.into(),
        ..AclPolicy::default()
    };
    ApplyAclPolicy { policy }.into()
}

/// Whether the secret of a token lets somebody in.
fn lets_in(sim: &Sim, secret: u8) -> bool {
    let digest = SecretDigest([secret; 32]);
    sim.view()
        .is_some_and(|view| view.acl_token_of(&digest).is_some())
}

fn is_management(sim: &Sim, secret: u8) -> bool {
    let digest = SecretDigest([secret; 32]);
    let token = sim.view().and_then(|view| view.acl_token_of(&digest));
    token.is_some_and(|it| it.token.token_type == TokenType::Management)
}

#[test]
fn first_token_is_made_once() {
    for_seeds(40, |sim| {
        accepts(sim, first(1))?;
        sim.expect_that(is_management(sim, 1), "it may do everything")?;
        refuses(sim, first(2), "bootstrap already done")?;
        sim.restart()?;
        refuses(sim, first(2), "bootstrap already done")?;
        // Nor when it is gone.
        accepts(sim, delete(1))?;
        sim.restart()?;
        refuses(sim, first(2), "bootstrap already done")
    });
}

#[test]
fn first_token_is_made_once_however_the_agent_dies() {
    let crashes = each_crash(6, |sim| {
        sim.ask(first(1));
        sim.run(SOON)?;
        // Who died before the answer may not have begun: then somebody asks again.
        sim.ask(first(2));
        sim.run(SOON)?;
        let one = is_management(sim, 1) != is_management(sim, 2);
        sim.expect_that(one, "there is one first token")?;
        sim.converge()
    });
    assert!(crashes > 3, "{crashes}");
}

#[test]
fn deleted_token_is_refused_after_restart() {
    for_seeds(40, |sim| {
        accepts(sim, create(token(1)))?;
        sim.expect_that(lets_in(sim, 1), "it lets in")?;
        sim.restart()?;
        sim.expect_that(lets_in(sim, 1), "and does after a restart")?;
        accepts(sim, delete(1))?;
        sim.expect_that(!lets_in(sim, 1), "it does not any more")?;
        refuses(sim, delete(1), "not found")?;
        sim.restart()?;
        sim.expect_that(!lets_in(sim, 1), "nor after a restart")
    });
}

#[test]
fn expired_token_is_removed_at_its_time() {
    for_seeds(40, |sim| {
        let expiring = for_seconds(sim, 1, 60);
        accepts(sim, expiring)?;
        accepts(sim, create(token(2)))?;
        sim.run(Span::secs(300))?;
        sim.expect_that(!lets_in(sim, 1), "its time is over")?;
        sim.expect_that(lets_in(sim, 2), "the other one has none")?;
        sim.restart()?;
        sim.converge()?;
        sim.expect_that(!lets_in(sim, 1), "it is gone for good")?;
        // Its secret is free again.
        accepts(sim, create(token(1)))
    });
}

#[test]
fn token_that_expires_while_no_agent_runs_is_removed_by_the_next() {
    for_seeds(40, |sim| {
        let expiring = for_seconds(sim, 1, 60);
        accepts(sim, expiring)?;
        sim.crash();
        sim.run(Span::secs(300))?;
        sim.restart()?;
        sim.until(SOON, |sim| !lets_in(sim, 1))
    });
}

#[test]
fn changed_token_keeps_its_secret_and_its_change() {
    for_seeds(40, |sim| {
        accepts(sim, create(token(1)))?;
        let change = UpdateAclToken {
            accessor: AccessorId(1),
            name: "ci".to_owned(),
            token_type: TokenType::Client,
            policies: ["read".into()].into(),
        };
        accepts(sim, change.clone())?;
        sim.restart()?;
        let digest = SecretDigest([1; 32]);
        let known = sim.view().and_then(|view| view.acl_token_of(&digest));
        let policies = known.map(|known| known.token.policies.clone());
        sim.expect_that(
            policies == Some(change.policies.clone()),
            "it is as it was changed",
        )?;
        let nothing = UpdateAclToken {
            policies: [].into(),
            ..change.clone()
        };
        refuses(sim, nothing, "at least one policy")?;
        let unknown = UpdateAclToken {
            accessor: AccessorId(9),
            ..change
        };
        refuses(sim, unknown, "not found")
    });
}

#[test]
fn secret_has_one_token() {
    for_seeds(40, |sim| {
        accepts(sim, create(token(1)))?;
        let same_secret = AclToken {
            accessor: AccessorId(2),
            ..token(1)
        };
        refuses(sim, create(same_secret), "this secret already")?;
        let same_accessor = AclToken {
            digest: SecretDigest([2; 32]),
            ..token(1)
        };
        refuses(sim, create(same_accessor), "this accessor")?;
        let expired = for_seconds(sim, 3, 0);
        refuses(sim, expired, "expired from the start")
    });
}

#[test]
fn policies_stay_as_they_were_described_last() {
    for_seeds(40, |sim| {
        accepts(sim, policy("one"))?;
        accepts(sim, policy("two"))?;
        sim.restart()?;
        let rules = |sim: &Sim| {
            let known = sim.view()?.acl_policies().get("deploy")?;
            Some(known.policy.rules.clone())
        };
        sim.expect_that(
            rules(sim) == Some(Arc::from("two")),
            "it says what it said last",
        )?;
        let name: Arc<str> = "deploy".into();
        accepts(sim, DeleteAclPolicy { name: name.clone() })?;
        refuses(sim, DeleteAclPolicy { name }, "not found")?;
        sim.restart()?;
        sim.expect_that(rules(sim).is_none(), "it is gone")
    });
}

/// An agent that finds this.
fn restored(sim: &Sim, saved: Saved) -> Agent {
    let now = Now {
        at: Instant(1),
        wall: Timestamp(1),
    };
    Agent::restore(sim.config().clone(), saved, now)
}

/// Of a policy that is lost nobody knows what it forbade.
#[test]
fn token_with_unreadable_policy_is_refused() {
    for_seeds(1, |sim| {
        accepts(sim, first(1))?;
        accepts(sim, create(token(2)))?;
        accepts(sim, policy("one"))?;
        let view = sim.view();
        let tokens = view.map(|view| view.acl_tokens().clone());
        let mut saved = Saved {
            acl_tokens: tokens.unwrap_or_default(),
            ..Saved::default()
        };
        let agent = restored(sim, saved.clone());
        sim.expect_that(agent.view().acl_tokens().len() == 2, "both are there")?;
        saved.unreadable.insert(Key::AclPolicy("deploy".into()));
        let agent = restored(sim, saved);
        let known: Vec<AccessorId> = agent.view().acl_tokens().keys().copied().collect();
        sim.expect_that(known == [AccessorId(1)], "that of the policy is not")
    });
}

#[test]
fn unreadable_bootstrap_record_counts_as_bootstrapped() {
    for_seeds(1, |sim| {
        let saved = Saved {
            unreadable: [Key::AclBootstrap].into(),
            ..Saved::default()
        };
        let agent = restored(sim, saved);
        sim.expect_that(agent.view().acl_bootstrapped().is_some(), "there was one")
    });
}

/// Who waits for the time of a token is called back when the wall clock is set.
#[test]
fn clock_that_is_set_expires_tokens_at_once() {
    for_seeds(40, |sim| {
        let expiring = for_seconds(sim, 1, 36_000);
        accepts(sim, expiring)?;
        sim.world.scene.jump_wall(Span::secs(72_000));
        sim.until(SOON, |sim| !lets_in(sim, 1))?;
        // And does not come back, once that is saved.
        sim.run(SOON)?;
        sim.world.scene.jump_wall(Span::secs(-72_000));
        sim.restart()?;
        sim.expect_that(!lets_in(sim, 1), "it is gone for good")
    });
}
