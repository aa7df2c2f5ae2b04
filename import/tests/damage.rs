//! Damaged files are refused or read, and never bring the reader down; what is read becomes HCL.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use drover_import::{Source, import};

mod support;

use support::{Numbers, damaged};

const TRIES: u64 = 4_000;

const FILES: [(&str, &str); 6] = [
    ("compose.yml", include_str!("examples/shop/compose.yml")),
    (
        "compose.yml",
        include_str!("examples/everything/compose.yml"),
    ),
    ("compose.yaml", include_str!("examples/once/compose.yaml")),
    (
        "backup.service",
        include_str!("examples/units/backup.service"),
    ),
    (
        "api@one.service",
        include_str!("examples/units/api@one.service"),
    ),
    (
        "page.container",
        include_str!("examples/quadlet/page.container"),
    ),
];

#[test]
fn damaged_files_are_refused_or_become_hcl() {
    let mut numbers = Numbers(26);
    let (mut read, mut refused) = (0, 0);
    for at in 0..TRIES {
        let (name, text) = FILES[usize::try_from(at).unwrap() % FILES.len()];
        let text = damaged(text, &mut numbers);
        let timer = damaged(include_str!("examples/units/backup.timer"), &mut numbers);
        let mut sources = vec![Source {
            name,
            directory: "/srv/x",
            text: &text,
        }];
        if !name.contains("compose") && at % 2 == 0 {
            sources.push(Source {
                name: "backup.timer",
                directory: "/srv/x",
                text: &timer,
            });
        }
        match import(&sources) {
            Ok(found) => {
                read += 1;
                let parsed = found.parse::<hcl_edit::structure::Body>();
                assert!(parsed.is_ok(), "{at}: {parsed:?}\n{text}\n----\n{found}");
            }
            Err(error) => {
                refused += 1;
                assert!(
                    !error.message.is_empty() && !error.to_string().contains('\n'),
                    "{at}: {error}"
                );
            }
        }
    }
    // Damage of both kinds was tried.
    assert!(
        read > 500 && refused > 500,
        "{read} were read, and {refused} were refused"
    );
}
