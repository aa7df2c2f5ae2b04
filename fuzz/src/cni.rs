//! CNI: what plugins answer, and files that describe networks.

use drover_core::model::network::{MAX_DNS, is_name, is_server, is_word};
use drover_io_real::network::cni::answer::{complaint, network};
use drover_io_real::network::cni::list::List;

/// What a plugin says, of the network that it made or why it did not.
///
/// # Panics
/// Something does not hold.
pub fn cni_answer(bytes: &[u8]) {
    if let Some(why) = complaint(bytes) {
        assert!(!why.chars().any(char::is_control), "{why:?}");
        assert!(why.chars().count() < 1100, "{why:?}");
    }
    let Ok(answer) = serde_json::from_slice(bytes) else {
        return;
    };
    let Ok(made) = network(&answer) else {
        return;
    };
    let interface = made.interface.as_bytes();
    assert!((1..=15).contains(&interface.len()), "{made:?}");
    assert!(interface.iter().all(u8::is_ascii_graphic), "{made:?}");
    let dns = made.dns.unwrap_or_default();
    for some in [&dns.servers, &dns.searches, &dns.options] {
        assert!(some.len() <= MAX_DNS, "{dns:?}");
    }
    assert!(dns.servers.iter().all(|it| is_server(it)), "{dns:?}");
    let mut words = dns.searches.iter().chain(&dns.options);
    assert!(words.all(|it| is_word(it)), "{dns:?}");
}

/// A file that describes a network.
///
/// # Panics
/// Something does not hold.
pub fn cni_list(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    let Ok(list) = List::parse(text) else {
        return;
    };
    assert!(is_name(&list.name), "{list:?}");
    assert!((1..=32).contains(&list.plugins.len()), "{list:?}");
    for plugin in &list.plugins {
        let program = &plugin.program;
        assert!(
            !program.contains('/') && !program.starts_with('.'),
            "{program:?}"
        );
    }
    // As it is remembered. What is nested too deep is not.
    let kept = serde_json::to_vec(&list).unwrap_or_default();
    if let Ok(again) = serde_json::from_slice::<List>(&kept) {
        let programs = |list: &List| -> Vec<String> {
            list.plugins.iter().map(|it| it.program.clone()).collect()
        };
        assert_eq!(again.name, list.name);
        assert_eq!(programs(&again), programs(&list));
    }
}
