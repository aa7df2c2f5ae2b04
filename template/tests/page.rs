//! The page about templates is the one that the program's table makes.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may panic")]

use std::fs;
use std::path::Path;

/// `DROVER_WRITE_PAGE=1` writes it.
#[test]
fn documentation_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/templates.md");
    let page = drover_template::page();
    if std::env::var_os("DROVER_WRITE_PAGE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    assert!(
        written == page,
        "write docs/templates.md again: DROVER_WRITE_PAGE=1 cargo test -p drover-template --test page"
    );
}
