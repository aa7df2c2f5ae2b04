#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::format;

const UNTIDY: &str = r#"# a job
job "x"   "y"{
datacenters=["a","b" , ]   # c1
type="service" // c2
      priority   =   -50
a2 = b -c
a3 = !x&&y
a4 = x?-1:2
a5 = [for x in [1,2]:x if x>1]
a6 = {for k,v in m:k=>v...}
a7 = m [0].b .c[*].d.0.1
a8 = f( 1,2 , "${ a }" )
data = <<EOF
  hello  ${ x }
 EOF
destination = "x"
obj = {a:1,"b.c" = 2, (d)=3}
obj2 = {
a:1
longer = 2
"b.c" = 3 , /* x */
}
l = [{
x = 1
}, {
yy = 2
}]
env{ }
env { a=1 }


z = f(<<-E2
   a
   E2
, 2)
w = (
1 +
2
)
  /* multi
     line */
e = 1e-5-3
}"#;

const TIDY: &str = r#"# a job
job "x" "y" {
  datacenters = ["a", "b", ] # c1
  type        = "service"    // c2
  priority    = -50
  a2          = b - c
  a3          = !x && y
  a4          = x ? -1 : 2
  a5          = [for x in [1, 2] : x if x > 1]
  a6          = { for k, v in m : k => v... }
  a7          = m[0].b.c[*].d.0.1
  a8          = f(1, 2, "${ a }")
  data        = <<EOF
  hello  ${ x }
 EOF
  destination = "x"
  obj         = { a : 1, "b.c" = 2, (d) = 3 }
  obj2 = {
    a : 1
    longer = 2
    "b.c"  = 3, /* x */
  }
  l = [{
    x = 1
    }, {
    yy = 2
  }]
  env {}
  env { a = 1 }


  z = f(<<-E2
   a
   E2
  , 2)
  w = (
    1 +
    2
  )
  /* multi
     line */
  e = 1e-5 - 3
}"#;

fn formatted(text: &str) -> String {
    format(text, "x.hcl").unwrap()
}

#[test]
fn untidy_file_gets_canonical_layout() {
    assert_eq!(formatted(UNTIDY), TIDY);
}

#[test]
fn tidy_file_stays_as_it_is() {
    for text in [
        TIDY,
        "",
        "\n\n",
        "# only a comment",
        "\u{feff}a = 1\n",
        "a  = 1\r\nbb = <<E\r\n x\r\nE\r\n",
        "a = \"%{ if x ~}}\\\"${ \"}\" }%{ endif }\"\n",
        "a = \"$${\" # }\n",
        "q   = 100000 /* m */\nqqq = 2 # d\n",
    ] {
        assert_eq!(formatted(text), text);
    }
}

#[test]
fn line_ends_and_blank_lines_are_kept() {
    assert_eq!(
        formatted("a=1\r\n \t\r\n\r\n\tbb=2"),
        "a = 1\r\n\r\n\r\nbb = 2"
    );
    assert_eq!(formatted("a {\n\n\nb=1\n\n}\n"), "a {\n\n\n  b = 1\n\n}\n");
}

#[test]
fn text_that_is_no_hcl_is_refused_with_its_place() {
    let errors = format("job \"x\" {\n  a = \n}\n", "bad.hcl").unwrap_err();
    assert!(errors.to_string().starts_with("bad.hcl:2:"), "{errors}");
    for text in ["a = \"", "a = <<E\n", "/*", "a = [", "}", "a = \"${\""] {
        assert!(format(text, "x").is_err(), "{text}");
    }
}

#[test]
fn deeply_nested_text_ends_with_an_error() {
    let deep = format!("a = {}1{}", "\"${".repeat(5000), "}\"".repeat(5000));
    assert!(format(&deep, "x").is_err());
    let deep = format!("a = {}1{}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(format(&deep, "x").is_err());
}
