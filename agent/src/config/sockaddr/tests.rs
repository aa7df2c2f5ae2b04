//! Templates of addresses, on a machine that is made up.

use drover_io_real::fingerprint::Interface;

use super::evaluate;

const UP: u32 = 0x1043;

fn interface(name: &str, ip: &str, prefix: u8, is_default: bool) -> Interface {
    Interface {
        name: name.to_owned(),
        ip: ip.parse().unwrap(),
        prefix,
        flags: if name == "lo" { 0x49 } else { UP },
        is_default,
    }
}

/// A machine with a loopback, two private networks, an address that floats between machines, a public address, and an
/// interface that is down.
fn machine() -> Vec<Interface> {
    let mut down = interface("eth9", "10.9.9.9", 8, false);
    down.flags = 0;
    vec![
        interface("lo", "127.0.0.1", 8, false),
        interface("lo", "::1", 128, false),
        interface("eth1", "192.168.7.5", 24, false),
        interface("eth0", "10.1.2.100", 32, true),
        interface("eth0", "10.1.2.3", 16, true),
        interface("eth0", "fd00::3", 64, true),
        interface("eth0", "fe80::3", 64, true),
        interface("wan", "8.8.4.4", 29, false),
        interface("wan", "169.254.1.1", 16, false),
        down,
    ]
}

#[test]
fn template_stands_for_what_this_machine_has() {
    for (text, expected) in [
        ("{{ GetPrivateIP }}", "10.1.2.3"),
        ("{{GetPrivateIP}}:4646", "10.1.2.3:4646"),
        (
            "{{- GetPrivateIPs -}}",
            "10.9.9.9 10.1.2.3 192.168.7.5 10.1.2.100 fd00::3",
        ),
        ("{{ GetPublicIP }}", "8.8.4.4"),
        ("{{ GetPublicIPs }}", "8.8.4.4"),
        ("{{ GetInterfaceIP \"eth1\" }}", "192.168.7.5"),
        ("{{ GetInterfaceIP \"^(ens|eth0)\" }}", "10.1.2.3"),
        (
            "{{ GetInterfaceIPs `eth0` }}",
            "10.1.2.3 10.1.2.100 fd00::3 fe80::3",
        ),
        ("{{ GetPrivateInterfaces | attr \"name\" }}", "eth0"),
        (
            "{{ GetDefaultInterfaces | exclude \"type\" \"ipv4\" | include \"flags\" \"forwardable|up\" | join \
             \"address\" \" \" }}",
            "fd00::3 fe80::3",
        ),
        (
            "{{ GetAllInterfaces | include \"network\" \"192.168.0.0/16|8.0.0.0/8\" | sort \"-name\" | join \
             \"address\" \", \" }}",
            "8.8.4.4, 192.168.7.5",
        ),
        (
            "{{ GetAllInterfaces | include \"name\" \"^eth[0-9]$\" | exclude \"rfc\" \"4193\" | exclude \"flag\" \
             \"down\" | exclude \"flag\" \"link-local unicast\" | sort \"size\" | join \"name\" \" \" }}",
            "eth0 eth1 eth0",
        ),
        (
            "{{ GetAllInterfaces | include \"flags\" \"loopback\" | limit 1 | attr \"string\" }}",
            "127.0.0.1/8",
        ),
        (
            "{{ GetAllInterfaces | include \"rfc\" \"1918\" | sort \"default,address\" | offset 2 | attr \
             \"network\" }}",
            "10.0.0.0",
        ),
        (
            "{{ GetAllInterfaces | include \"address\" \"^8\\\\.8\" | attr \"type\" }}",
            "IPv4",
        ),
        (
            "{{ GetAllInterfaces | include \"rfcs\" \"3927|6598\" | attr \"mask_bits\" }}",
            "16",
        ),
        (
            "{{ GetPrivateInterfaces | include \"RFC\" \"1918\" | sort \"-Size\" | attr \"Address\" }}",
            "10.1.2.100",
        ),
        (
            "{{ GetAllInterfaces | include \"size\" \"32\" | attr \"string\" }}",
            "10.1.2.100",
        ),
        (
            "{{ GetAllInterfaces | include \"address\" \"/24$\" | attr \"string\" }}",
            "192.168.7.5/24",
        ),
        (
            "{{ GetAllInterfaces | include \"address\" \"^(8|fd|10.1.2.3/)\" | sort \"-private\" | join \
             \"address\" \" \" }}",
            "8.8.4.4 10.1.2.3 fd00::3",
        ),
        (
            "{{ GetAllInterfaces | include \"rfc\" \"1918\" | sort \"name\" | unique \"name\" | join \"name\" \
             \" \" }}",
            "eth0 eth1 eth9",
        ),
        ("no template", "no template"),
    ] {
        assert_eq!(
            evaluate(text, &machine()).as_deref(),
            Ok(expected),
            "{text}"
        );
    }
}

#[test]
fn template_that_finds_nothing_is_no_empty_address() {
    for text in [
        "{{ GetInterfaceIP \"eth7\" }}",
        "{{ GetInterfaceIP \"lo\" }}",
        "{{ GetAllInterfaces | include \"name\" \"^br\" | attr \"address\" }}",
    ] {
        let why = evaluate(text, &machine()).unwrap_err();
        assert!(why.contains("no such address"), "{text}: {why}");
    }
    for text in [
        "{{ GetPublicIP }}",
        "{{ GetPublicIP }}:4646",
        "a-{{ GetPublicIPs }}",
    ] {
        let why = evaluate(text, &[]).unwrap_err();
        assert_eq!(
            why,
            "this machine has no such address: write the address itself"
        );
    }
}

#[test]
fn unsupported_template_function_is_refused_by_name() {
    for (text, words) in [
        ("{{ GetPrivatIP }}", "did you mean GetPrivateIP?"),
        ("{{ env \"HOME\" }}", "\"env\" is not evaluated here"),
        ("{{ GetPrivateIP | join \"name\" \" \" }}", "is a text"),
        ("{{ GetAllInterfaces }}", "add | attr \"address\""),
        (
            "{{ GetAllInterfaces | math \"network\" \"+1\" }}",
            "\"math\" is not evaluated",
        ),
        (
            "{{ GetAllInterfaces | attr \"octets\" }}",
            "no such attribute",
        ),
        (
            "{{ GetAllInterfaces | include \"port\" \"1\" | attr \"name\" }}",
            "no such selector",
        ),
        (
            "{{ GetAllInterfaces | include \"rfc\" \"1\" | attr \"name\" }}",
            "only 1918",
        ),
        (
            "{{ GetAllInterfaces | include \"name\" \"(\" | attr \"name\" }}",
            "no regular expression",
        ),
        (
            "{{ GetAllInterfaces | include \"network\" \"x\" | attr \"name\" }}",
            "no network",
        ),
        (
            "{{ GetAllInterfaces | include \"type\" \"unix\" | attr \"name\" }}",
            "no type",
        ),
        (
            "{{ GetAllInterfaces | include \"flags\" \"fast\" | attr \"name\" }}",
            "no flag",
        ),
        (
            "{{ GetAllInterfaces | sort \"speed\" | attr \"name\" }}",
            "no such key",
        ),
        (
            "{{ GetAllInterfaces | include \"size\" \"wide\" | attr \"name\" }}",
            "no size",
        ),
        (
            "{{ GetAllInterfaces | unique \"type\" | attr \"name\" }}",
            "only address, name",
        ),
        (
            "{{ GetAllInterfaces | limit x | attr \"name\" }}",
            "a number is needed",
        ),
        (
            "{{ GetAllInterfaces | limit | attr \"name\" }}",
            "does not have these arguments",
        ),
        ("{{ GetInterfaceIP \"(\" }}", "no regular expression"),
        ("{{ GetInterfaceIP \"eth0 }}", "\" is missing"),
        ("{{ GetPrivateIP", "}} is missing"),
        ("{{ }}", "a step of it is empty"),
    ] {
        let why = evaluate(text, &machine()).unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
    }
    let many = format!("{{{{ GetAllInterfaces {} }}}}", "| limit 1 ".repeat(40));
    assert!(evaluate(&many, &machine()).unwrap_err().contains("steps"));
    let long = format!("{{{{ {} }}}}", "x".repeat(5000));
    assert!(evaluate(&long, &machine()).unwrap_err().contains("longer"));
}
