//! The functions, one line each.

use serde_json::json;

use super::super::Options;
use super::{bad, bad_with, good_with, in_config, value};

#[test]
fn functions_are_evaluated() {
    let table = [
        ("abs(-3)", json!(3)),
        ("base64encode(\"hé\")", json!("aMOp")),
        ("base64decode(\"aMOp\")", json!("hé")),
        ("ceil(1.2)", json!(2)),
        ("floor(-1.2)", json!(-2)),
        ("chomp(\"a\\n\\n\")", json!("a")),
        ("chunklist([1, 2, 3], 2)", json!([[1, 2], [3]])),
        ("cidrhost(\"10.12.112.0/20\", 16)", json!("10.12.112.16")),
        ("cidrhost(\"10.0.0.0/8\", -1)", json!("10.255.255.255")),
        ("cidrnetmask(\"172.16.0.0/12\")", json!("255.240.0.0")),
        (
            "cidrsubnet(\"172.16.0.0/12\", 4, 2)",
            json!("172.18.0.0/16"),
        ),
        (
            "cidrsubnet(\"fd00::/32\", 16, 162)",
            json!("fd00:0:a2::/48"),
        ),
        (
            "cidrsubnets(\"10.1.0.0/16\", 4, 4, 8)",
            json!(["10.1.0.0/20", "10.1.16.0/20", "10.1.32.0/24"]),
        ),
        ("coalesce(null, \"\", \"b\")", json!("b")),
        ("coalescelist([], [1])", json!([1])),
        ("compact([\"a\", \"\", \"b\"])", json!(["a", "b"])),
        ("concat([1], [2, 3])", json!([1, 2, 3])),
        ("contains([1, 2], 2)", json!(true)),
        ("csvdecode(\"a,b\\n1,2\\n\")", json!([{"a": "1", "b": "2"}])),
        ("distinct([2, 1, 2])", json!([2, 1])),
        ("element([1, 2, 3], 4)", json!(2)),
        ("flatten([[1, [2]], 3])", json!([1, 2, 3])),
        (
            "format(\"%s is %d, %05.2f, %-4s|%4s|%t %q %v %%\", \"a\", 3, 1.5, \"b\", \"c\", true, \"d\", [1])",
            json!("a is 3, 01.50, b   |   c|true \"d\" [1] %"),
        ),
        ("format(\"%[2]s%[1]s\", \"a\", \"b\")", json!("ba")),
        ("format(\"%#x\", 255)", json!("ff")),
        (
            "formatdate(\"YYYY-MM-DD'T'hh:mm EEE D MMM, H aa\", \"2024-02-29T13:04:05Z\")",
            json!("2024-02-29T13:04 Thu 29 Feb, 1 pm"),
        ),
        (
            "formatlist(\"%s-%s\", [\"a\", \"b\"], \"x\")",
            json!(["a-x", "b-x"]),
        ),
        ("indent(2, \"a\\nb\")", json!("a\n  b")),
        ("index([\"a\", \"b\"], \"b\")", json!(1)),
        ("join(\",\", [\"a\"], [\"b\"])", json!("a,b")),
        (
            "jsondecode(\"{\\\"a\\\": [1, null]}\")",
            json!({"a": [1, null]}),
        ),
        (
            "jsonencode({a = [1, \"<\"], b = null})",
            json!("{\"a\":[1,\"\\u003c\"],\"b\":null}"),
        ),
        ("keys({b = 1, a = 2})", json!(["a", "b"])),
        ("length({a = 1})", json!(1)),
        ("log(16, 2)", json!(4)),
        ("lookup({a = 1}, \"b\", 7)", json!(7)),
        ("lower(\"ÀB\")", json!("àb")),
        ("max(1, 3, 2)", json!(3)),
        ("min(2, 1)", json!(1)),
        ("md5(\"a\")", json!("0cc175b9c0f1b6a831c399e269772661")),
        ("merge({a = 1}, {b = 2}, {a = 3})", json!({"a": 3, "b": 2})),
        ("parseint(\"ff\", 16)", json!(255)),
        ("pow(2, 10)", json!(1024)),
        ("range(3)", json!([0, 1, 2])),
        ("range(3, 0)", json!([3, 2, 1])),
        ("range(0, 1, 0.5)", json!([0, 0.5])),
        (
            "regex_replace(\"a1b2\", \"([0-9])\", \"<$1>\")",
            json!("a<1>b<2>"),
        ),
        ("replace(\"aXbX\", \"X\", \"-\")", json!("a-b-")),
        ("reverse([1, 2])", json!([2, 1])),
        ("setintersection([1, 2, 3], [2, 3, 4])", json!([2, 3])),
        (
            "setproduct([\"a\", \"b\"], [1])",
            json!([["a", 1], ["b", 1]]),
        ),
        ("setunion([2, 1], [1, 3])", json!([1, 2, 3])),
        (
            "sha1(\"a\")",
            json!("86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        ),
        (
            "sha256(\"\")",
            json!("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ),
        ("substr(sha512(\"\"), 0, 8)", json!("cf83e135")),
        ("signum(-9)", json!(-1)),
        ("slice([1, 2, 3], 1, 3)", json!([2, 3])),
        ("sort([\"b\", \"a\"])", json!(["a", "b"])),
        ("split(\",\", \"a,b\")", json!(["a", "b"])),
        ("strlen(\"hé\")", json!(2)),
        ("strrev(\"abc\")", json!("cba")),
        ("substr(\"hello\", -3, -1)", json!("llo")),
        (
            "timeadd(\"2024-02-28T23:30:00Z\", \"1h\")",
            json!("2024-02-29T00:30:00Z"),
        ),
        (
            "timeadd(\"2024-01-01T00:00:00+02:00\", \"-1s\")",
            json!("2023-12-31T23:59:59+02:00"),
        ),
        ("title(\"hello world\")", json!("Hello World")),
        ("trim(\"?!a!?\", \"!?\")", json!("a")),
        ("trimprefix(\"abc\", \"a\")", json!("bc")),
        ("trimsuffix(\"abc\", \"c\")", json!("ab")),
        ("trimspace(\" a\\n\")", json!("a")),
        ("upper(\"a\")", json!("A")),
        ("urlencode(\"a b&c/é\")", json!("a+b%26c%2F%C3%A9")),
        ("strlen(uuidv4())", json!(36)),
        (
            "uuidv5(\"dns\", \"www.example.com\")",
            json!("2ed6657d-e927-568b-95e1-2665a8aea6a2"),
        ),
        ("values({b = 1, a = 2})", json!([2, 1])),
        (
            "yamldecode(\"a: [1, x]\\nb: true\")",
            json!({"a": [1, "x"], "b": true}),
        ),
        (
            "yamldecode(yamlencode({a = [1, {b = \"c: d\"}]}))",
            json!({"a": [1, {"b": "c: d"}]}),
        ),
        ("zipmap([\"a\", \"b\"], [1, 2])", json!({"a": 1, "b": 2})),
    ];
    for (expr, expected) in table {
        assert_eq!(value(expr), expected, "{expr}");
    }
}

#[test]
fn wrong_calls_are_refused() {
    let table = [
        (
            "uper(\"a\")",
            "there is no function uper\n",
            "Did you mean \"upper\"?",
        ),
        ("upper()", "upper: needs 1 argument, not 0", ""),
        ("length(\"abc\")", "not a string; use strlen", ""),
        ("bcrypt(\"a\")", "the function bcrypt is not supported", ""),
        ("file(\"/etc/hostname\")", "may not be used here", ""),
        ("range(1, 10000000)", "a range may have 65536 items", ""),
        (
            "cidrsubnet(\"10.0.0.0/30\", 4, 0)",
            "4 more bits do not fit",
            "",
        ),
        ("parseint(\"zz\", 10)", "is no whole number of base 10", ""),
        ("element([], 0)", "the list is empty", ""),
        ("1 / 0", "division by zero", ""),
        ("timeadd(\"yesterday\", \"1h\")", "is no time such as", ""),
        (
            "formatdate(\"YYYY\", \"2024-13-01T00:00:00Z\")",
            "is no time such as",
            "",
        ),
        ("format(\"%d\")", "there is no argument for %d", ""),
        (
            "format(\"a\", 1)",
            "1 arguments are given, but 0 are used",
            "",
        ),
    ];
    for (expr, expected, help) in table {
        let message = bad(&in_config(expr));
        assert!(
            message.contains(expected) && message.contains(help),
            "{expr}: {message}"
        );
    }
}

#[test]
fn file_function_reads_allowed_files() {
    let directory = std::env::temp_dir().join(format!("drover-jobspec-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("sub")).unwrap();
    std::fs::write(directory.join("a.txt"), "content").unwrap();
    std::fs::write(directory.join("sub/b.txt"), "more").unwrap();
    let options = Options {
        files: Some(directory.clone()),
        ..Options::default()
    };
    let config = |expr: &str| {
        let parsed = good_with(&in_config(expr), &options);
        serde_json::to_value(parsed.job.task_groups[0].tasks[0].config.get("x")).unwrap()
    };
    assert_eq!(config("file(\"a.txt\")"), json!("content"));
    assert_eq!(config("filebase64(\"a.txt\")"), json!("Y29udGVudA=="));
    assert_eq!(config("fileexists(\"nope\")"), json!(false));
    assert_eq!(
        config("fileset(\".\", \"**/*.txt\")"),
        json!(["a.txt", "sub/b.txt"])
    );
    assert_eq!(config("basename(\"a/b.c\")"), json!("b.c"));
    assert_eq!(config("dirname(\"a/b.c\")"), json!("a"));
    let message = bad_with(&in_config("file(\"nope\")"), &options);
    assert!(
        message.contains("file: \"nope\": No such file"),
        "{message}"
    );
    std::fs::remove_dir_all(directory).unwrap();
}
