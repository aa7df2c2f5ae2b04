//! Tokens of tasks: what they say, who can check them, where they are written, and who is notified.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use drover_core::effect::request::SessionProgram;
use drover_core::effect::{DriverEffect, TaskConfig, request};
use drover_core::ids::{AllocId, LaunchId, Run, SessionId, TaskKey};
use drover_core::model::authority::Authority;
use drover_core::op::Op;
use drover_core::paths::task_path::{Base, TaskPath};
use drover_core::time::{Span, Timestamp};
use drover_core::work::{IdentityWork, Issuing};
use drover_io_real::dirs::AllocDirs;
use drover_io_real::identity::{Issuer, Key};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use tempfile::TempDir;

const ALLOC: AllocId = AllocId(7);
const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

struct World {
    dir: TempDir,
    dirs: AllocDirs,
    issuer: Issuer,
}

fn key() -> TaskKey {
    TaskKey {
        alloc: ALLOC,
        task: "web".into(),
    }
}

fn asked(name: &str, ttl: i64, path: Option<&str>, variable: Option<&str>) -> Issuing {
    Issuing {
        authority: Authority::Node,
        region: "global".to_owned(),
        namespace: "default".to_owned(),
        job: "shop".to_owned(),
        group: "front".to_owned(),
        user: String::new(),
        identities: vec![IdentityWork {
            name: name.to_owned(),
            audience: Vec::new(),
            ttl: Span::secs(ttl),
            file: path.map(|path| TaskPath {
                base: Base::Task,
                path: path.to_owned(),
            }),
            variable: variable.map(str::to_owned),
        }],
    }
}

fn start() -> DriverEffect {
    DriverEffect::Start(request::Start {
        op: Op(1),
        launch: LaunchId(1),
        config: Arc::new(TaskConfig {
            run: Run(1),
            ..TaskConfig::default()
        }),
    })
}

impl World {
    fn new() -> World {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("allocs");
        fs::create_dir(&root).unwrap();
        let dirs = AllocDirs::new(Arc::new(File::open(&root).unwrap().into()));
        dirs.build_alloc(ALLOC).unwrap();
        dirs.build_task(ALLOC, "web", None).unwrap();
        let issuer = issuer(&dir);
        World { dir, dirs, issuer }
    }

    fn path(&self, path: &str) -> PathBuf {
        let own = self.dir.path().join("allocs").join(ALLOC.to_string());
        own.join("web").join(path)
    }

    fn issue(&self, asked: &Issuing) -> std::io::Result<()> {
        self.issuer.issue(&self.dirs, &key(), asked, NOW)
    }

    /// The variables of the next start.
    fn started(&self) -> BTreeMap<String, String> {
        let mut effect = start();
        self.issuer.complete(&key(), &mut effect);
        let DriverEffect::Start(request::Start { config, .. }) = effect else {
            panic!("it is a start");
        };
        config.env.clone()
    }
}

fn issuer(dir: &TempDir) -> Issuer {
    Issuer::new(Key::of(File::open(dir.path()).unwrap().as_fd()).unwrap())
}

fn decoded(part: &str) -> Vec<u8> {
    BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()
}

/// The header and the claims of a token whose signature is that of the published key.
fn checked(token: &str, keys: &Value) -> (Value, Value) {
    let (reported, signature) = token.rsplit_once('.').unwrap();
    let public = decoded(keys["keys"][0]["x"].as_str().unwrap());
    let public = UnparsedPublicKey::new(&ED25519, public);
    public
        .verify(reported.as_bytes(), &decoded(signature))
        .unwrap();
    assert!(public.verify(b"other", &decoded(signature)).is_err());
    let (header, claims) = reported.split_once('.').unwrap();
    let read = |part| serde_json::from_slice(&decoded(part)).unwrap();
    (read(header), read(claims))
}

#[test]
fn token_claims_identify_task() {
    let world = World::new();
    world
        .issue(&asked("default", 3600, Some("secrets/nomad_token"), None))
        .unwrap();
    let path = world.path("secrets/nomad_token");
    let keys = world.issuer.keys();
    let (header, mut claims) = checked(&fs::read_to_string(&path).unwrap(), &keys);
    let kid = &keys["keys"][0]["kid"];
    assert_eq!(header, json!({ "alg": "EdDSA", "typ": "JWT", "kid": kid }));
    let jti = claims.as_object_mut().unwrap().remove("jti").unwrap();
    assert_eq!(jti.as_str().unwrap().len(), 36);
    assert_eq!(
        claims,
        json!({
            "aud": ["nomadproject.io"], "iat": 1_700_000_000, "nbf": 1_700_000_000,
            "exp": 1_700_003_600, "sub": "global:default:shop:front:web:default",
            "nomad_namespace": "default", "nomad_job_id": "shop", "nomad_task": "web",
            "nomad_allocation_id": ALLOC.to_string(),
        })
    );
    let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    // One for ever, for somebody, and in a variable alone.
    let mut other = asked("vault", 0, None, Some("NOMAD_TOKEN_vault"));
    other.identities[0].audience = vec!["vault.io".to_owned()];
    world.issue(&other).unwrap();
    let (_, claims) = checked(&world.started()["NOMAD_TOKEN_vault"], &keys);
    assert_eq!(claims["aud"], json!(["vault.io"]));
    assert_eq!(claims.get("exp"), None);
    assert!(claims["sub"].as_str().unwrap().ends_with(":web:vault"));
    assert!(!world.path("secrets/nomad_vault.jwt").exists());
}

#[test]
fn identity_variable_is_per_start() {
    let world = World::new();
    let env = asked("default", 60, None, Some("NOMAD_TOKEN"));
    world.issue(&env).unwrap();
    let mut other = start();
    let strange = TaskKey {
        task: "other".into(),
        ..key()
    };
    world.issuer.complete(&strange, &mut other);
    assert_eq!(other, start());
    assert_eq!(world.started().len(), 1);
    assert_eq!(world.started().len(), 0, "the next start has its own");
    world.issue(&env).unwrap();
    world.issuer.forget(ALLOC);
    assert_eq!(world.started().len(), 0, "the allocation is gone");
}

#[test]
fn session_in_task_has_its_identity_variables() {
    let world = World::new();
    world
        .issue(&asked("default", 60, None, Some("NOMAD_TOKEN")))
        .unwrap();
    let started = world.started();
    assert!(started.contains_key("NOMAD_TOKEN"), "{started:?}");
    let mut effect = DriverEffect::OpenSession(request::OpenSession {
        op: Op(2),
        launch: LaunchId(1),
        session: SessionId(1),
        program: Arc::new(SessionProgram {
            command: "/bin/sh".to_owned(),
            args: Vec::new(),
            tty: false,
            task: TaskConfig::default(),
        }),
    });
    world.issuer.complete(&key(), &mut effect);
    let DriverEffect::OpenSession(request::OpenSession { program, .. }) = effect else {
        panic!("it is a session");
    };
    assert_eq!(program.task.env, started);
}

#[test]
fn signing_key_survives_agent_and_is_private() {
    let world = World::new();
    let again = issuer(&world.dir);
    assert_eq!(again.keys(), world.issuer.keys());
    let file = world.dir.path().join("key");
    let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let seed = fs::read(&file).unwrap();
    assert_eq!(seed.len(), 32);
    let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let list = format!("{seed:?}").trim_matches(['[', ']']).to_owned();
    let encoded = BASE64_URL_SAFE_NO_PAD.encode(&seed);
    for shown in [format!("{again:?}"), again.keys().to_string()] {
        let mut forms = [&hex, &list, &encoded].into_iter();
        assert!(!forms.any(|it| shown.contains(it)), "the key is shown");
    }
    fs::write(&file, "short").unwrap();
    let dir = File::open(world.dir.path()).unwrap();
    assert!(
        Key::of(dir.as_fd()).is_err(),
        "a damaged key is not replaced"
    );
    fs::remove_file(&file).unwrap();
    assert_ne!(issuer(&world.dir).keys(), world.issuer.keys());
}

#[test]
fn token_file_follows_no_symlink() {
    let world = World::new();
    let outside = world.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, world.path("local/out")).unwrap();
    let asked = asked("default", 60, Some("local/out/token"), None);
    assert!(world.issue(&asked).is_err());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    let mut nobody = asked;
    nobody.user = "no-such-user".to_owned();
    assert!(world.issue(&nobody).is_err());
}
