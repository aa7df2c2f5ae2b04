use super::*;

fn found(expression: &str, text: &str) -> Option<bool> {
    compile(expression).ok().map(|r| r.is_match(text))
}

#[track_caller]
fn yes(expression: &str, texts: &[&str]) {
    for text in texts {
        assert_eq!(found(expression, text), Some(true), "{expression} {text:?}");
    }
}

#[track_caller]
fn no(expression: &str, texts: &[&str]) {
    for text in texts {
        assert_eq!(
            found(expression, text),
            Some(false),
            "{expression} {text:?}"
        );
    }
}

#[test]
fn unanchored_expression_matches_anywhere() {
    yes("b", &["b", "abc", "ab"]);
    no("b", &["", "ac"]);
    yes("", &["", "x"]);
    yes("^a", &["abc"]);
    no("^a", &["ba"]);
    yes("a$", &["ba"]);
    no("a$", &["ab", "a\n"]);
    yes("^$", &[""]);
    no("^$", &["x"]);
    yes(r"\Aab\z", &["ab"]);
    no(r"\Aab\z", &["abc", "xab"]);
}

#[test]
fn repetitions_are_matched() {
    yes("^ab*c$", &["ac", "abc", "abbbc"]);
    yes("^ab+c$", &["abc", "abbc"]);
    no("^ab+c$", &["ac"]);
    yes("^ab?c$", &["ac", "abc"]);
    no("^ab?c$", &["abbc"]);
    yes("^a{2,3}$", &["aa", "aaa"]);
    no("^a{2,3}$", &["a", "aaaa"]);
    yes("^a{2}$", &["aa"]);
    yes("^a{2,}$", &["aa", "aaaaa"]);
    no("^a{2,}$", &["a"]);
    yes("^a{0}b$", &["b"]);
    yes("^(ab){2}$", &["abab"]);
    yes("^a+?b*?$", &["ab", "aa"]);
    yes("^(a*)*$", &["", "aaa"]);
    yes("^(a|b*)+c$", &["abbac", "c"]);
}

#[test]
fn braces_with_a_backslash_are_text() {
    yes(r"^\{}$", &["{}"]);
    yes(r"^a\{x\}$", &["a{x}"]);
}

#[test]
fn alternatives_and_groups_are_matched() {
    yes("^(linux|darwin)$", &["linux", "darwin"]);
    no("^(linux|darwin)$", &["windows", "linuxdarwin"]);
    yes("^a|b$", &["ax", "xb"]);
    yes("^(?:a|)b$", &["ab", "b"]);
    yes("^(?P<os>li)(?<rest>nux)$", &["linux"]);
    yes("^(a|b|c)d$", &["ad", "bd", "cd"]);
}

#[test]
fn character_classes_are_matched() {
    yes("^[a-c]+$", &["abc"]);
    no("^[a-c]+$", &["abd"]);
    yes("^[^a-c]$", &["d", "é", "\n"]);
    yes("^[]a]+$", &["]a"]);
    yes(r"^[\[a]+$", &["[a"]);
    yes("^[a-]+$", &["a-"]);
    yes(r"^[\d\-x]+$", &["1-x"]);
    yes(r"^[\D]$", &["a", "é"]);
    no(r"^[\D]$", &["5"]);
    yes(r"^[\W]+$", &[" -["]);
    no(r"^[\W]+$", &["_", "a", "0"]);
    yes("^[[:alpha:][:digit:]]+$", &["a1Z"]);
    yes(r"^\d+\.\d+$", &["10.25"]);
    no(r"^\d+\.\d+$", &["10x25", "٣.٣"]);
    yes(r"^\w\s\S$", &["_ x", "a\tb"]);
    yes("^.$", &["é", "x"]);
    no("^.$", &["\n", "xy"]);
    yes("(?s)^.$", &["\n"]);
}

#[test]
fn escaped_letters_match() {
    let known = [
        (r"\t", "\t"),
        (r"\n", "\n"),
        (r"\r", "\r"),
        (r"\f", "\u{c}"),
        (r"\v", "\u{b}"),
        (r"\a", "\u{7}"),
        (r"\.", "."),
        (r"\$", "$"),
    ];
    for (escape, letter) in known {
        yes(&format!("^{escape}$"), &[letter]);
        yes(&format!("^[{escape}]$"), &[letter]);
    }
    assert_eq!(found(r"\e", "e"), None);
}

#[test]
fn named_classes_are_matched() {
    let classes = [
        ("alnum", "0 9 A Z a z", "/ : @ [ ` {"),
        ("alpha", "A Z a z", "0 9 @ [ ` {"),
        ("digit", "0 9", "/ : a"),
        ("lower", "a z", "A ` {"),
        ("upper", "A Z", "a @ ["),
        ("punct", "! / : @ [ ` { ~", "0 A a"),
        ("word", "0 9 A Z _ a z", "/ : - `"),
        ("xdigit", "0 9 A F a f", "G g / :"),
    ];
    for (name, members, others) in classes {
        let (class, not) = (format!("^[[:{name}:]]$"), format!("^[^[:{name}:]]$"));
        for member in members.split(' ') {
            yes(&class, &[member]);
            no(&not, &[member]);
        }
        for other in others.split(' ') {
            no(&class, &[other]);
            yes(&not, &[other]);
        }
    }
    yes("^[[:space:]]{6}$", &["\t\n\u{b}\u{c}\r "]);
    yes("^[[:blank:]]{2}$", &["\t "]);
    no("^[[:blank:]]$", &["\n", "x"]);
    no("^[[:space:]]$", &["\u{8}", "\u{e}", "x"]);
}

#[test]
fn word_boundaries_are_matched() {
    yes(r"\bcat\b", &["cat", "a cat.", "cat-nap"]);
    no(r"\bcat\b", &["concat", "cat_"]);
    yes(r"\Bcat", &["concat"]);
}

#[test]
fn case_insensitive_flag_is_honoured() {
    yes("(?i)linux", &["LINUX", "lInUx"]);
    yes("(?i)[a-c]+$", &["ABC"]);
    no("(?i)[^a]", &["A", "a"]);
    yes("a(?i:b)c", &["aBc"]);
    no("a(?i:b)c", &["abC"]);
    yes("a(?i)b(?-i)c", &["aBc"]);
    no("a(?i)b(?-i)c", &["abC"]);
    yes("^((?i)a)b$", &["Ab"]);
    no("^((?i)a)b$", &["AB"]);
    no("(?i)é", &["É"]);
}

#[test]
fn unknown_syntax_is_refused() {
    for bad in [
        "a{",
        "a{x}",
        "[[a]",
        "[a&&b]",
        "(",
        ")",
        "(a",
        "a)",
        "[",
        "[a",
        "[]",
        "[z-a]",
        r"[\d-z",
        r"[a-\d]",
        "*",
        "+a",
        "a|*",
        "a{3,2}",
        "a{99999999999}",
        r"\",
        r"\p{L}",
        r"\1",
        r"\Q",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?P=x)",
        "(?",
        "[[:nope:]]",
        r"[\p]",
        r"\é",
    ] {
        assert!(compile(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn hostile_expression_is_refused_or_fast() {
    assert!(compile(&"a".repeat(MAX_LENGTH)).is_ok());
    assert!(compile(&"a".repeat(MAX_LENGTH + 1)).is_err());
    assert!(compile(&"(".repeat(MAX_LENGTH)).is_err());
    assert!(compile("((a{1000}){1000}){1000}").is_err());
    assert!(compile("(?:(?:(?:(?:){1000}){1000}){1000}){1000}").is_err());
    assert!(compile("(((((){1000}){1000}){1000}){1000}){1000}").is_err());
    assert_eq!(
        found("^(a*)*(a*)*(a|a)*b$", &"a".repeat(20_000)),
        Some(false)
    );
    assert_eq!(found("(x+x+)+y", &"x".repeat(20_000)), Some(false));
}

#[test]
fn adjacent_groups_are_not_nested() {
    let deep = |depth: usize| "(".repeat(depth) + &")".repeat(depth);
    yes(&deep(50), &[""]);
    assert!(compile(&deep(51)).is_err());
    yes(&"(a)".repeat(60), &[&"a".repeat(60)]);
    yes(&"(?i)".repeat(60), &[""]);
}
