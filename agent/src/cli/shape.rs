//! `-t TEMPLATE`: an answer through a template of Go's, whose `.` is the answer as `-json` shows it.

use drover_template::{Answers, Limits, Options, Rendering, Template};
use serde_json::Value;

use super::exit_code::Failure;

/// An answer is never larger, nor what a user makes of it at a terminal.
const LIMITS: Limits = Limits {
    input: 1 << 20,
    output: 256 << 20,
    memory: 1 << 30,
    steps: 400_000_000,
};

/// What a template makes of an answer.
///
/// # Errors
/// Its syntax is wrong, something in it fails, or it asks for what templates of tasks may read.
pub(super) fn rendered(template: &str, answer: &Value) -> Result<String, Failure> {
    let wrong = |error: drover_template::Error| Failure::new(format!("-t: {error}"));
    let options = Options {
        limits: LIMITS,
        ..Options::default()
    };
    let template = Template::parse(template, options).map_err(wrong)?;
    let rendering = template.render_with(answer, &Answers::default());
    match rendering.map_err(wrong)? {
        Rendering::Done { text, .. } => Ok(String::from_utf8_lossy(&text).into_owned()),
        Rendering::Waiting { .. } => Err(Failure::new(
            "-t: the template asks for more than the answer: files, variables, services and the time \
             are for templates of tasks",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn template_sees_the_answer() {
        let answer = json!({
            "ID": "web", "Priority": 50, "Index": u64::MAX, "Share": 0.5, "Stop": false,
            "TaskGroups": [{"Name": "a"}, {"Name": "b"}], "Meta": null,
        });
        for (template, wanted) in [
            (
                "{{ .ID }} {{ .Priority }} {{ .Index }}",
                "web 50 18446744073709551615",
            ),
            ("{{ .Share }} {{ .Stop }}", "0.5 false"),
            ("{{ range .TaskGroups }}{{ .Name }}\n{{ end }}", "a\nb\n"),
            (
                "{{ range $i, $g := .TaskGroups }}{{ $i }}{{ $.ID }}{{ end }}",
                "0web1web",
            ),
            ("{{ if .Meta }}x{{ else }}none{{ end }}", "none"),
            (
                "{{ len .TaskGroups }} {{ index .TaskGroups 1 | toJSON }}",
                "2 {\"Name\":\"b\"}",
            ),
            (
                "{{ define \"x\" }}<{{ . }}>{{ end }}{{ template \"x\" .ID }}",
                "<web>",
            ),
        ] {
            assert_eq!(
                rendered(template, &answer).as_deref(),
                Ok(wanted),
                "{template}"
            );
        }
    }

    #[test]
    fn mistake_of_template_is_reported_with_its_place() {
        for (template, words) in [
            ("{{ .ID", "line 1"),
            ("a\n{{ nofunc }}", "line 2"),
            ("{{ .ID.Name }}", "line 1"),
            ("{{ file \"/etc/passwd\" }}", "asks for more"),
            ("{{ key \"a\" }}", "-t: "),
        ] {
            let why = rendered(template, &json!({"ID": "web"}))
                .unwrap_err()
                .message;
            assert!(
                why.starts_with("-t: ") && why.contains(words),
                "{template}: {why}"
            );
        }
    }
}
