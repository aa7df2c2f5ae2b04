//! What a service leaves open, and what its checks inherit.

use super::fill;
use crate::model::value::Value;
use crate::time::SECOND;

/// Fills in a service whose default name is this.
pub(super) fn fill_service(service: &mut Value, name: &str) {
    fill(
        service,
        &[
            ("Name", Value::from(name)),
            ("Provider", Value::from("consul")),
            ("AddressMode", Value::from("auto")),
            ("OnUpdate", Value::from("require_healthy")),
        ],
    );
    let Value::Map(fields) = service else { return };
    let on_update = fields.get("OnUpdate").cloned().unwrap_or_default();
    let restart = fields.get("CheckRestart").cloned();
    let Some(Value::List(checks)) = fields.get_mut("Checks") else {
        return;
    };
    for check in checks {
        fill(check, &[("OnUpdate", on_update.clone())]);
        inherit_restart(check, restart.as_ref());
    }
}

/// What a check says of restarts, completed by what its service says.
fn inherit_restart(check: &mut Value, of_service: Option<&Value>) {
    let Value::Map(fields) = check else { return };
    if let Some(Value::Map(of_service)) = of_service {
        let own = fields.entry("CheckRestart".to_owned());
        let own = own.or_insert_with(|| Value::Map(Default::default()));
        let of_service = of_service
            .iter()
            .map(|(key, value)| (key.as_str(), value.clone()));
        fill(own, &of_service.collect::<Vec<_>>());
    }
    if let Some(own) = fields.get_mut("CheckRestart") {
        fill(
            own,
            &[
                ("Grace", Value::Int(SECOND)),
                ("IgnoreWarnings", Value::Bool(false)),
            ],
        );
    }
}
