//! A compose file with a web page and its database, imported and run by an engine of the tests' own. Without root or an
//! engine, the test says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "../../io-real/tests/common/engine.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod engine;
mod support;

use engine::{Engine, IMAGE};
use support::Lone;

const NETWORK: &str = "shop_default";

/// The network of the engine; removed when dropped, with the containers in it.
struct Network<'a>(&'a Engine);

impl<'a> Network<'a> {
    /// The network, if this machine lets the engine make one; else says why not.
    fn make(engine: &'a Engine) -> Option<Network<'a>> {
        let made = engine.docker(&["network", "create", NETWORK]);
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr);
            eprintln!("skipped: the engine makes no networks here: {why}");
            return None;
        }
        Some(Network(engine))
    }
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        // An agent that is still there may start containers again.
        for _ in 0..20 {
            let all = self.0.docker(&["ps", "-aq"]).stdout;
            for id in String::from_utf8_lossy(&all).split_whitespace() {
                self.0.docker(&["rm", "-f", id]);
            }
            if self.0.docker(&["network", "rm", NETWORK]).status.success() {
                return;
            }
        }
    }
}

/// The database is ready only after a while; the page shows what is in it, which the migration put there.
fn compose_file() -> String {
    format!(
        "name: shop\n\
         x-usual: &usual {{ image: \"{IMAGE}\", restart: always, stop_grace_period: 1s }}\n\
         services:\n\
         \x20 web:\n\
         \x20   <<: *usual\n\
         \x20   command: [sh, -c, \"cat /data/migrated; busybox wget -q -O - http://db:5432/row; exec sleep 1000\"]\n\
         \x20   volumes: [\"data:/data:ro\"]\n\
         \x20   depends_on:\n\
         \x20     db: {{ condition: service_healthy }}\n\
         \x20     migrate: {{ condition: service_completed_successfully }}\n\
         \x20 migrate:\n\
         \x20   image: \"{IMAGE}\"\n\
         \x20   command: sh -c 'busybox wget -q -O - http://db:5432/row && echo migrated > /data/migrated'\n\
         \x20   volumes: [\"data:/data\"]\n\
         \x20   depends_on: {{ db: {{ condition: service_healthy }} }}\n\
         \x20 db:\n\
         \x20   <<: *usual\n\
         \x20   command: [sh, -c, \"sleep 2; echo row > /data/row; exec busybox httpd -f -p 5432 -h /data\"]\n\
         \x20   volumes: [\"data:/data\"]\n\
         \x20   healthcheck: {{ test: busybox wget -q -O /dev/null http://127.0.0.1:5432/row, interval: 1s }}\n\
         volumes: {{ data: }}\n"
    )
}

#[test]
fn imported_page_finds_its_database_by_name() {
    let Some(engine) = Engine::start(false) else {
        return;
    };
    let Some(_network) = Network::make(&engine) else {
        return;
    };
    let lone = Lone::configured(&format!(
        "plugin \"docker\" {{\nconfig {{\nendpoint = \"unix://{}\"\n}}\n}}\n",
        engine.socket().display()
    ));
    let compose = lone.world.file("compose.yml", &compose_file());
    let job = compose.with_file_name("shop.nomad.hcl");
    let (compose, job) = (compose.to_str().unwrap(), job.to_str().unwrap());
    lone.run(&["job", "import", compose, "-o", job]).ok();
    let again = lone.run(&["job", "import", compose, "-o", job]).failed();
    assert!(again.contains("is there already"), "{again}");
    let volume = "name = \"shop-data\"\ntype = \"host\"\nplugin_id = \"mkdir\"\n";
    let volume = lone.world.file("volume.hcl", volume);
    lone.run(&["volume", "create", volume.to_str().unwrap()])
        .ok();
    lone.run(&["job", "run", "-detach", job]).ok();
    let web = lone.agent.wait_for("/v1/job/shop/allocations", |all| {
        let all = all.as_array()?.iter();
        let web = all.filter(|alloc| alloc["TaskGroup"] == "web");
        let mut web = web.filter(|alloc| alloc["TaskStates"]["web"]["State"] == "running");
        Some(web.next()?["ID"].as_str()?.to_owned())
    });
    let mut seen = String::new();
    while !seen.contains("row") {
        seen = lone.run(&["alloc", "logs", &web, "web"]).ok();
    }
    assert_eq!(seen, "migrated\nrow");
    lone.run(&["job", "stop", "-detach", "shop"]).ok();
    lone.agent.wait_for("/v1/job/shop/allocations", |all| {
        let all = all.as_array()?;
        let over = |alloc: &serde_json::Value| alloc["ClientStatus"] == "complete";
        all.iter().all(over).then_some(())
    });
}
