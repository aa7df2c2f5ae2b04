//! How mistakes are reported.

use super::super::error::MAX_ISSUES;
use super::{bad, good, in_config};

#[test]
fn mistake_is_shown_with_line_and_advice() {
    let text = "job \"j\" {\n  group \"web\" {\n\tcuont = 3\n  }\n}\n";
    assert_eq!(
        bad(text),
        "test.nomad:3:2: unknown attribute \"cuont\" in group \"web\"\n  \
         3 | \tcuont = 3\n    | \t^\n  Did you mean \"count\"?"
    );
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let text = r#"job "j" {
  typ = "batch"
  group "g" {
    count = 1.5
    restart {
      mode = "fial"
    }
    task "t" {
      kill_timeout = "5"
      resource {
        cpu = 1
      }
      env = { A = null }
    }
  }
}
"#;
    let message = bad(text);
    let expected = [
        "2:3: unknown attribute \"typ\" in job \"j\"",
        "4:13: count: a whole number is needed, not 1.5",
        "6:14: mode cannot be \"fial\"",
        "Did you mean \"fail\"?",
        "9:22: kill_timeout: \"5\" is no duration: a unit is missing",
        "10:7: unknown block \"resource\" in task \"t\"",
        "Did you mean \"resources\"?",
        "13:13: env: \"A\": a string is needed, not null",
    ];
    for part in expected {
        assert!(message.contains(part), "{part}\n---\n{message}");
    }
}

#[test]
fn malformed_blocks_are_refused() {
    let table = [
        (
            "update {}\nupdate {}",
            "3:1: only one \"update\" is allowed",
            "in line 2",
        ),
        (
            "group {}",
            "2:1: a group block needs exactly one label",
            "group \"example\"",
        ),
        (
            "update \"x\" {}",
            "2:1: \"update\" takes no label",
            "Leave \"x\" out.",
        ),
        (
            "update = 3",
            "2:1: \"update\" is a block in job \"j\"",
            "update { … }",
        ),
        (
            "type {\n}",
            "2:1: \"type\" is an attribute in job \"j\"",
            "type = …",
        ),
        (
            "type = \"a\"\ntype = \"b\"",
            "3:1: this cannot be read",
            "once in a block",
        ),
        (
            "update { a = 1 b = 2 }",
            "2:16: this cannot be read",
            "each on its own line",
        ),
        (
            "periodic {\ncron = \"a\"\nmissed = \"never\"\n}",
            "4:10: ",
            "run-once",
        ),
        (
            "periodic {\ncron = \"a\"\ncrons = []\n}",
            "2:1: cron and crons cannot both",
            "crons.",
        ),
        (
            "group \"g\" {\nnetwork {}\nnetwork {}\n}",
            "4:1: only one \"network\"",
            "",
        ),
        (
            "group \"g\" {\nnetwork {\nport \"a\" {}\nport \"a\" {}\n}\n}",
            "two ports have the label \"a\"",
            "",
        ),
        (
            "group \"g\" {\nvolume \"v\" {}\nvolume \"v\" {}\n}",
            "another volume \"v\" before",
            "",
        ),
        (
            "group \"g\" {\ntask \"t\" {\nlifecycle {}\n}\n}",
            "4:1: lifecycle has no hook",
            "poststop",
        ),
        (
            "priority = \"high\"",
            "2:12: priority: \"high\" is not a number",
            "",
        ),
        (
            "priority = attr.x",
            "priority: a number is needed, not a run-time reference",
            "",
        ),
        (
            "all_at_once = 1",
            "true or false is needed, not a number",
            "",
        ),
        (
            "datacenters = \"dc1\"",
            "a list of strings is needed, not a string",
            "",
        ),
        (
            "dynamic \"group\" {}",
            "the dynamic block has no for_each",
            "",
        ),
        (
            "dynamic \"group\" {\nfor_each = 1\ncontent {}\n}",
            "for_each needs a list or a map",
            "",
        ),
        (
            "meta { a = 1 }\nmeta = {}",
            "only one \"meta\" is allowed",
            "",
        ),
        (
            "constraint {\nis_set = true\nregexp = \"a\"\n}",
            "several operators in one constraint",
            "",
        ),
        (
            "name = \"a${[1]}\"",
            "2:12: within a text a string is needed, not a list",
            "",
        ),
        ("name = \"abc", "this cannot be read", ""),
        ("name = local.x", "there is no local.x", "locals { x = … }"),
        ("name = [1][3]", "there is no item 3 in a list of 1", ""),
        (
            "name = {ab = 1}.ac",
            "the map has no \"ac\"",
            "Did you mean \"ab\"?",
        ),
    ];
    for (text, expected, help) in table {
        let message = bad(&format!("job \"j\" {{\n{text}\n}}\n"));
        assert!(
            message.contains(expected) && message.contains(help),
            "{text}\n---\n{message}"
        );
    }
}

#[test]
fn malformed_top_level_is_refused() {
    assert!(bad("").contains("the file holds no job"));
    assert!(bad("job \"a\" {}\njob \"b\" {}\n").contains("2:1: a file holds one job only"));
    assert!(bad("job {}\n").contains("a job block needs exactly one label"));
    let unknown = bad("jobb \"a\" {}\n");
    assert!(
        unknown.contains("\"jobb\" cannot stand at the top"),
        "{unknown}"
    );
    assert!(unknown.contains("Did you mean \"job\"?"), "{unknown}");
}

#[test]
fn duration_without_unit_is_warned_about() {
    let job = |value: &str| {
        format!(
            "job \"j\" {{\n group \"g\" {{\n task \"t\" {{\n  kill_timeout = {value}\n}}\n}}\n}}\n"
        )
    };
    let parsed = good(&job("5"));
    let span = parsed.job.task_groups[0].tasks[0].kill_timeout;
    assert_eq!(span.map(|span| span.0), Some(5));
    assert_eq!(
        parsed.warnings[0].to_string(),
        "test.nomad:4:18: kill_timeout = 5 is 5ns: numbers are nanoseconds\n  \
         4 |   kill_timeout = 5\n    |                  ^\n  Write \"5s\" for seconds."
    );
    assert!(good(&job("5000000000")).warnings.is_empty());
    assert!(good(&job("\"5s\"")).warnings.is_empty());
}

#[test]
fn ignored_block_is_warned_about() {
    let parsed = good(
        "job \"j\" {\n group \"g\" {\n task \"t\" {\n resources {\n iops = 3\n network {\n mbits = 1\n}\n}\n}\n}\n}\n",
    );
    let message: Vec<&str> = parsed
        .warnings
        .iter()
        .map(|issue| issue.message.as_str())
        .collect();
    assert_eq!(
        message,
        [
            "\"iops\" is ignored: it is not managed",
            "\"mbits\" is ignored: bandwidth is not managed",
            "\"network\" is ignored: it has no effect any more",
        ]
    );
}

#[test]
fn number_of_reported_mistakes_is_bounded() {
    let text = format!("job \"j\" {{\n{}}}\n", "group {}\n".repeat(500));
    let message = bad(&text);
    assert_eq!(
        message.matches("needs exactly one label").count(),
        MAX_ISSUES
    );
    assert!(
        message.ends_with("more mistakes are not shown"),
        "{message}"
    );
}

#[test]
fn hostile_file_is_refused() {
    let doubling: String = (1..60)
        .map(|n| format!(" a{n} = \"${{local.a{0}}}${{local.a{0}}}\"\n", n - 1))
        .collect();
    let lists: String = (1..60)
        .map(|n| format!(" a{n} = [local.a{0}, local.a{0}]\n", n - 1))
        .collect();
    let deep: String = (1..5000)
        .map(|n| format!(" a{n} = [local.a{}]\n", n - 1))
        .collect();
    for body in [doubling, lists, deep] {
        let message = bad(&format!(
            "locals {{\n a0 = \"xxxxxxxxxxxxxxxx\"\n{body}}}\njob \"j\" {{}}\n"
        ));
        assert!(
            message.contains("takes too much work or memory"),
            "{message}"
        );
    }
    let loops = "[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : 1]]]";
    assert!(bad(&in_config(loops)).contains("too much work"));
    let product = "setproduct(range(5000), range(5000))";
    assert!(bad(&in_config(product)).contains("too much work"));
    let padded = "join(\"\", [for x in range(60000) : format(\"%60000d\", x)])";
    assert!(bad(&in_config(padded)).contains("too much work"));
    let attempt = "try([for a in range(60000) : [for b in range(60000) : 1]], 1)";
    assert!(bad(&in_config(attempt)).contains("too much work"));
    let yaml = "yamldecode(\"a: &a [x,x,x,x,x,x,x,x,x]\\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\\ng: [*f,*f,*f,*f,*f,*f,*f,*f]\")";
    bad(&in_config(yaml));
    for (depth, taken) in [(20, true), (65, false), (250, false), (20_000, false)] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let yaml = in_config(&format!("yamldecode(\"{open}{close}\")"));
        // On a small stack, as the threads of an agent have it.
        let message = std::thread::Builder::new().stack_size(2 << 20);
        let message = message
            .spawn(move || {
                crate::jobspec::parse(&yaml, "test.nomad", &crate::jobspec::Options::default())
                    .is_ok()
            })
            .unwrap();
        assert_eq!(message.join().unwrap(), taken, "{depth} deep");
    }
    for nest in ["[", "(", "{a=", "upper(", "\"${", "!", "-", "[for x in "] {
        bad(&in_config(&nest.repeat(20_000)));
    }
    let blocks = "job \"j\" {\n".to_owned() + &"config {\n".repeat(20_000);
    bad(&blocks);
    bad(&" ".repeat(11 << 20));
    bad(&format!("{{{}", "\"a\":[".repeat(20_000)));
}

#[test]
fn common_syntax_mistake_gets_advice() {
    let job = |body: &str| format!("job \"x\" {{\n  group \"g\" {{\n{body}\n  }}\n}}\n");
    for (body, position, help) in [
        (
            "network { port \"http\" {} }",
            "3:",
            "Write\n    network {\n      port \"http\" {",
        ),
        (
            "task \"t\" {\n config {\n command = \"${X:-y}\"\n}\n}",
            "5:",
            "two dollars: $${X:-y}",
        ),
        ("count = 1,\nmeta {}", "3:", "no commas between them"),
        (
            "restart { attempts = 1, mode = \"fail\" }",
            "3:",
            "no commas between them",
        ),
        (
            "restart { attempts = 1 mode = \"fail\" }",
            "3:",
            "one attribute at most",
        ),
        ("\"count\" = 1", "3:", "has no quotes: count = "),
        ("count: 1", "3:", "written with =: count = "),
        ("task 't' {\n}", "3:", "double quotes: \"t\""),
    ] {
        let message = bad(&job(body));
        assert!(
            message.contains(&format!("test.nomad:{position}")),
            "{body}: {message}"
        );
        assert!(message.contains(help), "{body}: {message}");
    }
}

#[test]
fn advice_never_repeats_a_large_file() {
    let long = "y".repeat(100_000);
    for body in [
        format!("network {{ port \"{long}\" {{}} }}"),
        format!("a = \"${{{long}:-{long}}}\""),
        format!("\"{long}\" = 1"),
        format!("{long}: 1"),
        format!("task '{long}' {{}}"),
        format!("a = 1, {long}"),
    ] {
        let text = format!("job \"x\" {{\n{body}\n}}\n");
        let message = bad(&text);
        assert!(message.len() < 1000, "{} bytes", message.len());
    }
}
