//! Artifacts of a task, as hooks fetch them: what is reported when they cannot be had. No process that fetches is started here.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod rendering;

use drover_core::effect::HookEffect;
use drover_core::model::artifact::Artifact;
use drover_core::op::Op;
use drover_core::work::{FetchArtifacts, HookWork};
use rendering::{ALLOC, World};

#[tokio::test]
async fn first_failure_of_several_artifacts_is_reported() {
    let mut world = World::new();
    // The first is refused at once. The second is cancelled then, or it is refused for another reason: files of the node
    // are no artifacts.
    let artifacts = ["https://example.com/a.tar.bz2", "/etc/hostname"].map(|source| Artifact {
        getter_source: source.to_owned(),
        relative_dest: "local".to_owned(),
        ..Artifact::default()
    });
    let work = FetchArtifacts {
        artifacts: artifacts.to_vec(),
        root: "/alloc/1".to_owned(),
        user: String::new(),
    };
    world.hooks.carry_out(HookEffect::Run {
        op: Op(1),
        alloc: ALLOC,
        task: Some("web".into()),
        work: HookWork::FetchArtifacts(work),
    });
    let failure = world.answer().await.unwrap_err();
    let message = &failure.message;
    assert!(message.contains("tar.bz2 is not unpacked"), "{message}");
    assert!(!failure.recoverable, "it is tried again in vain");
}
