//! The page about templates, made from the table of functions, so that it is true.

use crate::functions::CHAPTERS;
use crate::options::{DEPTH, Limits, VALUE_DEPTH};

/// The page about templates, as Markdown.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(HEAD);
    page.push_str(&limits());
    page.push_str("\n## Functions\n\nArguments in brackets may be left out. What a pipeline passes on is the last argument.\n");
    for chapter in CHAPTERS {
        page.push_str(&format!("\n### {}\n\n| | |\n|---|---|\n", chapter.title));
        for function in chapter.functions {
            let usage = match chapter.title {
                "Refused" => function.name.to_owned(),
                _ => function.usage(),
            };
            let description = function.description.replace('|', "\\|");
            page.push_str(&format!("| `{usage}` | {description} |\n"));
        }
    }
    page
}

fn limits() -> String {
    let limits = Limits::default();
    format!(
        "\n## Limits\n\n\
         A template that reaches one fails with the name of the limit and its line.\n\n\
         | what | at most |\n|---|---|\n\
         | text of a template | {} MiB |\n\
         | what is rendered | {} MiB |\n\
         | all values made meanwhile | {} MiB |\n\
         | steps | {} |\n\
         | blocks, parentheses, templates inside of each other | {DEPTH} |\n\
         | lists and maps inside of each other | {VALUE_DEPTH} |\n",
        limits.input >> 20,
        limits.output >> 20,
        limits.memory >> 20,
        limits.steps,
    )
}

const HEAD: &str = include_str!("page.md");
