use super::*;
use crate::driver::config::{MOCK, MockConfig, RAW_EXEC, RawExecConfig, schema_for};
use crate::time::Span;

fn map<const N: usize>(fields: [(&str, Value); N]) -> BTreeMap<String, Value> {
    fields.map(|(k, v)| (k.to_owned(), v)).into()
}

fn list<const N: usize>(items: [&str; N]) -> Value {
    Value::List(items.map(Value::from).into())
}

fn reported(problems: &[ConfigProblem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn raw_exec<const N: usize>(fields: [(&str, Value); N]) -> Vec<String> {
    let mut config = map(fields);
    config
        .entry("command".to_owned())
        .or_insert(Value::from("/bin/true"));
    reported(&validate(&RAW_EXEC, &config))
}

fn mock<const N: usize>(fields: [(&str, Value); N]) -> Vec<String> {
    reported(&validate(&MOCK, &map(fields)))
}

#[test]
fn drivers_are_known_by_name() {
    assert_eq!(schema_for("raw_exec").map(|s| s.driver), Some("raw_exec"));
    assert_eq!(schema_for("mock").map(|s| s.driver), Some("mock_driver"));
    assert_eq!(
        schema_for("mock_driver").map(|s| s.driver),
        Some("mock_driver")
    );
    assert_eq!(schema_for("docker").map(|s| s.driver), Some("docker"));
    assert!(schema_for("qemu").is_none());
}

#[test]
fn unknown_option_suggests_nearest_name() {
    assert_eq!(
        raw_exec([("comand", Value::from("x"))]),
        ["comand: unknown option \"comand\" (did you mean \"command\"?)"]
    );
    assert_eq!(
        raw_exec([("image", Value::from("x"))]),
        ["image: unknown option \"image\""]
    );
    // What is missing is there under a wrong name.
    let config = map([("comand", Value::from("x"))]);
    assert_eq!(
        reported(&validate(&RAW_EXEC, &config)),
        ["comand: unknown option \"comand\" (did you mean \"command\"?)"]
    );
    let config = map([("image", Value::from("x"))]);
    assert_eq!(
        reported(&validate(&RAW_EXEC, &config)),
        ["image: unknown option \"image\"", "command: must be given"]
    );
    let inner = Value::Map(map([("runfor", Value::from("1s"))]));
    assert_eq!(
        mock([("exec_command", inner)]),
        ["exec_command.runfor: unknown option \"runfor\" (did you mean \"run_for\"?)"]
    );
}

#[test]
fn number_of_problems_is_bounded() {
    let config: BTreeMap<String, Value> = (0..10_000)
        .map(|n| (format!("k{n}"), Value::Int(1)))
        .collect();
    assert_eq!(validate(&RAW_EXEC, &config).len(), MAX_PROBLEMS);
}

#[test]
fn missing_command_is_refused() {
    let none = validate(&RAW_EXEC, &BTreeMap::new());
    assert_eq!(reported(&none), ["command: must be given"]);
    let null = validate(&RAW_EXEC, &map([("command", Value::Null)]));
    assert_eq!(reported(&null), ["command: must be given"]);
    for empty in ["", "  "] {
        assert_eq!(
            raw_exec([("command", Value::from(empty))]),
            ["command: must not be empty"]
        );
    }
    assert_eq!(
        raw_exec([("command", Value::from("/bin/true\n"))]),
        ["command: must not contain control characters"]
    );
}

#[test]
fn type_mismatch_reports_expected_and_found() {
    assert_eq!(
        raw_exec([("args", Value::from("one two"))]),
        ["args: expected a list of strings, found the string \"one two\""]
    );
    assert_eq!(
        raw_exec([("args", Value::List(vec![list(["x"])]))]),
        ["args[0]: expected a string, found a list"]
    );
    assert_eq!(
        raw_exec([("oom_score_adj", Value::from("lots"))]),
        ["oom_score_adj: expected a whole number, found the string \"lots\""]
    );
    assert_eq!(
        raw_exec([("oom_score_adj", Value::Float(1.5_f64.to_bits()))]),
        ["oom_score_adj: expected a whole number, found the number 1.5"]
    );
    assert_eq!(
        mock([("start_error_recoverable", Value::Int(1))]),
        ["start_error_recoverable: expected a bool, found a number"]
    );
    assert_eq!(
        mock([("exec_command", Value::Int(1))]),
        ["exec_command: expected a block, found a number"]
    );
    assert_eq!(
        raw_exec([("cgroup_v1_override", list(["x"]))]),
        ["cgroup_v1_override: expected a map of strings, found a list"]
    );
}

#[test]
fn values_are_coerced_like_job_files() {
    let args = Value::List(vec![
        Value::Int(1),
        Value::Bool(true),
        Value::Float(2.5_f64.to_bits()),
    ]);
    let config = map([
        ("command", Value::from("x")),
        ("args", args),
        ("oom_score_adj", Value::from("5")),
    ]);
    let decoded = RawExecConfig::decode(&config).unwrap_or_default();
    assert_eq!(decoded.args, ["1", "true", "2.5"]);
    assert_eq!(decoded.oom_score_adj, 5);
    let whole = map([
        ("command", Value::from("x")),
        ("oom_score_adj", Value::Float(7.0_f64.to_bits())),
    ]);
    assert_eq!(
        RawExecConfig::decode(&whole).map(|config| config.oom_score_adj),
        Ok(7)
    );
    assert_eq!(
        mock([("start_error_recoverable", Value::from("true"))]).len(),
        0
    );
}

#[test]
fn invalid_raw_exec_config_is_refused() {
    assert_eq!(
        raw_exec([("work_dir", Value::from("local/x"))]),
        ["work_dir: must be an absolute path"]
    );
    assert_eq!(raw_exec([("work_dir", Value::from(""))]).len(), 0);
    assert_eq!(
        raw_exec([("oom_score_adj", Value::Int(-1))]),
        ["oom_score_adj: must be from 0 to 1000, is -1"]
    );
    assert_eq!(
        raw_exec([("args", list(["a\0b"]))]),
        ["args[0]: must not contain NUL"]
    );
    let v1 = Value::Map(map([("cpu", Value::from("x"))]));
    assert_eq!(
        raw_exec([
            ("cgroup_v1_override", v1.clone()),
            ("cgroup_v2_override", Value::from("y"))
        ]),
        ["cgroup_v1_override: only one of cgroup_v1_override and cgroup_v2_override may be given"]
    );
    assert_eq!(
        raw_exec([
            ("cgroup_v1_override", v1),
            ("cgroup_v2_override", Value::from(""))
        ])
        .len(),
        0
    );
}

#[test]
fn reference_is_accepted_in_job_and_refused_at_start() {
    let config = map([
        ("command", Value::from("${NOMAD_TASK_DIR}/run")),
        ("work_dir", Value::from("${NOMAD_TASK_DIR}")),
        ("oom_score_adj", Value::from("${NOMAD_META_adj}")),
        ("args", Value::from("${NOMAD_META_args}")),
    ]);
    assert_eq!(validate(&RAW_EXEC, &config), []);
    assert_eq!(
        reported(&RawExecConfig::decode(&config).err().unwrap_or_default()).len(),
        3
    );
}

#[test]
fn blocks_of_a_map_are_merged() {
    let blocks = Value::List(vec![
        Value::Map(map([
            ("cpu", Value::from("a")),
            ("memory", Value::from("m")),
        ])),
        Value::Map(map([("cpu", Value::from("b"))])),
    ]);
    let config = map([
        ("command", Value::from("x")),
        ("cgroup_v1_override", blocks),
    ]);
    let decoded = RawExecConfig::decode(&config).unwrap_or_default();
    let merged: Vec<(&str, &str)> = decoded
        .cgroup_v1_override
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(merged, [("cpu", "b"), ("memory", "m")]);
}

#[test]
fn durations_need_units_and_are_not_negative() {
    assert_eq!(
        mock([("run_for", Value::Int(5))]),
        ["run_for: expected a duration, found \"5\": a unit is missing (ns, us, ms, s, m or h)"]
    );
    assert_eq!(
        mock([("run_for", Value::from("-1s"))]),
        ["run_for: must not be negative"]
    );
    assert_eq!(
        mock([("run_for", list([]))]),
        ["run_for: expected a duration, found a list"]
    );
    assert_eq!(mock([("run_for", Value::Int(0))]).len(), 0);
    assert_eq!(mock([("run_for", Value::from(""))]).len(), 0);
}

#[test]
fn mock_decodes_every_option() {
    let exec = Value::List(vec![Value::Map(map([
        ("run_for", Value::from("1ms")),
        ("exit_code", Value::Int(3)),
    ]))]);
    let config = map([
        ("start_error", Value::from("no")),
        ("start_error_recoverable", Value::Bool(true)),
        ("start_block_for", Value::from("1s")),
        ("plugin_exit_after", Value::from("2s")),
        ("driver_ip", Value::from("10.0.0.1")),
        ("driver_advertise", Value::Bool(true)),
        ("driver_port_map", Value::from("http:80")),
        ("kill_after", Value::from("3s")),
        ("run_for", Value::from("1m30s")),
        ("exit_code", Value::from("-2")),
        ("exit_signal", Value::Int(9)),
        ("exit_err_msg", Value::from("bad")),
        ("signal_error", Value::from("deaf")),
        ("stdout_string", Value::from("out")),
        ("stdout_repeat", Value::Int(4)),
        ("stdout_repeat_duration", Value::from("10ms")),
        ("exec_command", exec),
    ]);
    let expected = MockConfig {
        start_error: Some("no".to_owned()),
        start_error_recoverable: true,
        start_block_for: Span::secs(1),
        plugin_exit_after: Some(Span::secs(2)),
        driver_ip: Some("10.0.0.1".to_owned()),
        driver_advertise: true,
        driver_port_map: Some(("http".to_owned(), 80)),
        kill_after: Span::secs(3),
        command: crate::driver::config::MockCommand {
            run_for: Span::secs(90),
            exit_code: -2,
            exit_signal: 9,
            exit_err_msg: Some("bad".to_owned()),
            signal_error: Some("deaf".to_owned()),
            stdout: crate::driver::config::MockOutput {
                text: "out".to_owned(),
                repeat: 4,
                gap: Span::millis(10),
            },
            stderr: crate::driver::config::MockOutput::default(),
        },
        exec_command: Some(crate::driver::config::MockCommand {
            run_for: Span::millis(1),
            exit_code: 3,
            ..crate::driver::config::MockCommand::default()
        }),
    };
    assert_eq!(MockConfig::decode(&config), Ok(expected));
    assert_eq!(
        MockConfig::decode(&BTreeMap::new()),
        Ok(MockConfig::default())
    );
}

#[test]
fn mock_refuses_unsupported_options() {
    for (field, value) in [
        ("driver_port_map", Value::from("http")),
        ("driver_port_map", Value::from(":80")),
        ("driver_port_map", Value::from("http:0")),
        ("exit_code", Value::Int(1 << 40)),
        ("exit_signal", Value::Int(-1)),
        ("stdout_repeat", Value::Int(-1)),
        (
            "exec_command",
            Value::List(vec![
                Value::Map(BTreeMap::new()),
                Value::Map(BTreeMap::new()),
            ]),
        ),
    ] {
        assert_eq!(mock([(field, value)]).len(), 1, "{field}");
    }
}
