//! Lines that plugins print, and lines that no plugin should.

use super::*;

const GOOD: &str = "1|2|unix|/tmp/plugin123|grpc|";

#[test]
fn handshake_gives_plugin_address() {
    let unix = Address::Unix(PathBuf::from("/tmp/plugin123"));
    for line in [
        GOOD,
        "1|2|unix|/tmp/plugin123|grpc",
        "  1|2|unix|/tmp/plugin123|grpc||true\r\n",
    ] {
        assert_eq!(parse(line.as_bytes()), Ok(unix.clone()), "{line}");
    }
    let tcp = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 10000)));
    assert_eq!(parse(b"1|2|tcp|127.0.0.1:10000|grpc|"), Ok(tcp));
}

#[test]
fn handshake_errors_are_named() {
    use HandshakeError as E;
    let certificate = format!("1|2|unix|/s|grpc|{}", "A".repeat(51));
    let deep = format!("1|2|unix|/{}|grpc|", "a".repeat(200));
    type Wanted = fn(&E) -> bool;
    let table: [(&str, Wanted); 16] = [
        ("", |e| matches!(e, E::Garbage(_))),
        ("hello", |e| matches!(e, E::Garbage(_))),
        ("a|b|c|d|e", |e| matches!(e, E::Garbage(_))),
        ("1|2|unix", |e| matches!(e, E::Garbage(_))),
        ("2|2|unix|/s|grpc|", |e| matches!(e, E::CoreVersion(_))),
        ("1|1|unix|/s|grpc|", |e| matches!(e, E::Protocol(_))),
        ("1|02|unix|/s|grpc|", |e| matches!(e, E::Protocol(_))),
        ("1|2|udp|/s|grpc|", |e| matches!(e, E::Network(_))),
        ("1|2|unix|s|grpc|", |e| matches!(e, E::Address(_))),
        ("1|2|tcp|127.0.0.1|grpc|", |e| matches!(e, E::Address(_))),
        ("1|2|tcp|8.8.8.8:53|grpc|", |e| matches!(e, E::Address(_))),
        ("1|2|unix|/s", |e| matches!(e, E::Transport(_))),
        ("1|2|unix|/s|netrpc|", |e| matches!(e, E::Transport(_))),
        ("1|2|unix|/\0|grpc|", |e| matches!(e, E::Address(_))),
        (&certificate, |e| matches!(e, E::Encrypted)),
        (&deep, |e| matches!(e, E::Address(_))),
    ];
    for (line, is_wanted) in table {
        match parse(line.as_bytes()) {
            Ok(address) => panic!("{line:?} was taken for {address}"),
            Err(error) => assert!(is_wanted(&error), "{line:?}: {error:?}"),
        }
    }
    assert_eq!(parse(&vec![b'x'; MAX_LINE + 1]), Err(E::TooLong));
    assert!(matches!(parse(b"1|2|unix|/\xff|grpc"), Err(E::Garbage(_))));
}

#[test]
fn arbitrary_lines_are_safe() {
    let mut random = crate::plugin::fuzz::Random::new(7);
    let mut good = 0;
    for _ in 0..20_000 {
        let line = random.mutated(GOOD.as_bytes());
        match parse(&line) {
            // What is accepted says the same when it is told in full again.
            Ok(address) => {
                good += 1;
                let network = match address {
                    Address::Unix(_) => "unix",
                    Address::Tcp(_) => "tcp",
                };
                let again = format!("1|2|{network}|{address}|grpc|");
                assert_eq!(parse(again.as_bytes()), Ok(address));
            }
            Err(error) => assert!(error.to_string().len() < 600),
        }
    }
    assert!(good > 100, "only {good} of the lines were good");
}
