//! What probes make of clouds' services: stand-ins on the loopback address.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod machines;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use drover_core::fingerprint::Fingerprint;
use drover_io_real::fingerprint::{Clouds, PROBES, ProbeError, Settings};
use machines::{Machine, print};
use rustix::net::{AddressFamily, SocketType};

/// What a stand-in answers to a question: the first line, and all headers in small letters.
type Answer = Box<dyn Fn(&str, &[String]) -> Vec<u8> + Send>;

/// A service that answers until the test ends.
fn serve(answer: Answer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            if let Some((line, headers)) = question(&stream) {
                let _ = stream.write_all(&answer(&line, &headers));
            }
        }
    });
    address
}

fn question(stream: &TcpStream) -> Option<(String, Vec<String>)> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut headers = Vec::new();
    for line in lines {
        let line = line.ok()?;
        if line.is_empty() {
            return Some((first, headers));
        }
        headers.push(line.to_ascii_lowercase());
    }
    None
}

fn ok(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn status(code: u16) -> Vec<u8> {
    format!("HTTP/1.1 {code} No\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

fn query(name: &str, base: String, timeout: Duration) -> Result<Fingerprint, ProbeError> {
    let clouds = Clouds {
        aws: base.clone(),
        gce: base.clone(),
        azure: base.clone(),
        digitalocean: base,
        timeout,
    };
    let settings = Settings {
        clouds,
        ..Settings::default()
    };
    let machine = Machine::empty();
    let probe = PROBES.iter().find(|probe| probe.name == name).unwrap();
    probe.query(&machine.context(settings))
}

fn ask(name: &str, answer: Answer) -> Result<Fingerprint, ProbeError> {
    query(
        name,
        format!("http://{}", serve(answer)),
        Duration::from_secs(20),
    )
}

/// Answers a table of paths to those who send a header.
fn table(header: &'static str, paths: &'static [(&str, &str)]) -> Answer {
    Box::new(move |line, headers| {
        if !header.is_empty() && !headers.iter().any(|sent| sent == header) {
            return status(401);
        }
        let path = line.split(' ').nth(1).unwrap_or_default();
        let known = paths.iter().find(|(known, _)| *known == path);
        known.map_or_else(|| status(404), |(_, body)| ok(body))
    })
}

#[test]
fn aws_metadata_with_token_is_read() {
    let paths = table(
        "x-aws-ec2-metadata-token: secret==",
        &[
            ("/latest/meta-data/ami-id", "ami-0001"),
            ("/latest/meta-data/instance-type", "m7g.large"),
            ("/latest/meta-data/instance-id", "i-0123"),
            (
                "/latest/meta-data/placement/availability-zone",
                "eu-west-1b",
            ),
            ("/latest/meta-data/local-ipv4", "192.0.2.33\n"),
        ],
    );
    let answer: Answer = Box::new(move |line, headers| match line {
        "PUT /latest/api/token HTTP/1.1" => {
            let life = headers
                .iter()
                .any(|sent| sent == "x-aws-ec2-metadata-token-ttl-seconds: 60");
            if life { ok("secret==") } else { status(400) }
        }
        line => paths(line, headers),
    });
    let expected = "\
platform.aws.ami-id = ami-0001
platform.aws.instance-type = m7g.large
platform.aws.placement.availability-zone = eu-west-1b
unique.network.ip-address = 192.0.2.33
unique.platform.aws.instance-id = i-0123
unique.platform.aws.local-ipv4 = 192.0.2.33
link aws.ec2 = eu-west-1b.i-0123
";
    assert_eq!(print(&ask("env_aws", answer).unwrap()), expected);
}

#[test]
fn aws_metadata_v1_is_read() {
    let answer = table("", &[("/latest/meta-data/ami-id", "ami-0002")]);
    let found = ask("env_aws", answer).unwrap();
    assert_eq!(print(&found), "platform.aws.ami-id = ami-0002\n");
}

#[test]
fn token_with_newline_is_not_sent() {
    let answer: Answer = Box::new(|line, headers| match line {
        "PUT /latest/api/token HTTP/1.1" => ok("a\r\nx-evil: 1"),
        _ if headers.iter().any(|sent| sent.contains("evil")) => ok("evil"),
        _ => status(404),
    });
    assert_eq!(ask("env_aws", answer).unwrap(), Fingerprint::default());
}

#[test]
fn gce_metadata_is_read() {
    let answer = table(
        "metadata-flavor: google",
        &[
            ("/computeMetadata/v1/instance/id", "4711"),
            (
                "/computeMetadata/v1/instance/hostname",
                "a.c.example.internal",
            ),
            (
                "/computeMetadata/v1/instance/zone",
                "projects/12/zones/us-east1-c",
            ),
            (
                "/computeMetadata/v1/instance/machine-type",
                "projects/12/machineTypes/e2-small",
            ),
            (
                "/computeMetadata/v1/instance/tags?alt=json",
                r#"["web","unique.one"]"#,
            ),
            (
                "/computeMetadata/v1/instance/network-interfaces/?recursive=true&alt=json",
                r#"[{"accessConfigs":[{"externalIp":"203.0.113.5","type":"X"}],
                    "ip":"192.0.2.5","network":"projects/12/networks/default","mtu":1460}]"#,
            ),
        ],
    );
    let expected = "\
platform.gce.machine-type = e2-small
platform.gce.network.default = true
platform.gce.tag.web = true
platform.gce.zone = us-east1-c
unique.network.ip-address = 192.0.2.5
unique.platform.gce.hostname = a.c.example.internal
unique.platform.gce.id = 4711
unique.platform.gce.network.default.external-ip.0 = 203.0.113.5
unique.platform.gce.network.default.ip = 192.0.2.5
unique.platform.gce.tag.one = true
link gce = 4711
";
    assert_eq!(print(&ask("env_gce", answer).unwrap()), expected);
}

#[test]
fn azure_metadata_is_read() {
    let answer: Answer = Box::new(|line, headers| {
        if !headers.iter().any(|sent| sent == "metadata: true") {
            return status(400);
        }
        let body = if line.contains("/metadata/instance/compute?") {
            r#"{"location":"westeurope","name":"vm1","resourceGroupName":"rg","vmId":"02aab8a4",
                "vmSize":"Standard_B1s","zone":"","tagsList":[{"name":"team","value":"a"}]}"#
        } else {
            r#"{"interface":[{"ipv4":{"ipAddress":[{"privateIpAddress":"192.0.2.4",
                "publicIpAddress":""}]},"ipv6":{"ipAddress":[]},"macAddress":"02005E005304"}]}"#
        };
        let (one, two) = body.split_at(40);
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:X};x=y\r\n{two}\r\n0\r\n\r\n",
            one.len(),
            two.len()
        )
        .into_bytes()
    });
    let expected = "\
platform.azure.location = westeurope
platform.azure.resource-group = rg
platform.azure.tag.team = a
platform.azure.vm-size = Standard_B1s
unique.network.ip-address = 192.0.2.4
unique.platform.azure.id = 02aab8a4
unique.platform.azure.local-ipv4 = 192.0.2.4
unique.platform.azure.mac = 02005E005304
unique.platform.azure.name = vm1
link azure = 02aab8a4
";
    assert_eq!(print(&ask("env_azure", answer).unwrap()), expected);
}

#[test]
fn digitalocean_droplet_is_fingerprinted() {
    let answer = table(
        "",
        &[
            ("/metadata/v1/id", "2756294"),
            ("/metadata/v1/region", "nyc3"),
            (
                "/metadata/v1/interfaces/public/0/ipv4/address",
                "203.0.113.20",
            ),
        ],
    );
    let expected = "\
platform.digitalocean.region = nyc3
unique.platform.digitalocean.id = 2756294
unique.platform.digitalocean.public-ipv4 = 203.0.113.20
link digitalocean = 2756294
";
    assert_eq!(print(&ask("env_digitalocean", answer).unwrap()), expected);
}

fn clouds() -> impl Iterator<Item = &'static str> {
    let clouds = PROBES.iter().filter(|probe| probe.off_unless_enabled);
    clouds.map(|probe| probe.name)
}

#[test]
fn machine_outside_cloud_reports_reason() {
    // Nobody else can have the port, and nobody listens at it.
    let closed = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&closed, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = SocketAddr::try_from(rustix::net::getsockname(&closed).unwrap()).unwrap();
    for name in clouds() {
        let error = query(name, format!("http://{address}"), Duration::from_secs(20)).unwrap_err();
        assert!(
            matches!(error, ProbeError::Service { .. }),
            "{name}: {error}"
        );
        assert!(error.to_string().contains("refused"), "{name}: {error}");
    }
}

#[test]
fn silent_metadata_service_times_out() {
    // Connections are taken by the kernel, and nobody answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", silent.local_addr().unwrap());
    for name in clouds() {
        let error = query(name, base.clone(), Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("timed out"), "{name}: {error}");
    }
}

#[test]
fn invalid_metadata_is_error() {
    let answers: &[&[u8]] = &[
        b"",
        b"\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 500 No\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\xff\xff",
    ];
    for reported in answers {
        for name in clouds() {
            let answer: Answer = Box::new(|_, _| reported.to_vec());
            let error = ask(name, answer).unwrap_err();
            assert!(
                matches!(error, ProbeError::Service { .. }),
                "{name}: {error}"
            );
        }
    }
}

#[test]
fn invalid_metadata_json_is_error() {
    for name in ["env_azure", "env_gce"] {
        let answer: Answer = Box::new(|_, _| ok("{\"interface\": 7"));
        assert!(ask(name, answer).is_err(), "{name}");
    }
}

#[test]
fn endless_metadata_is_cut_off() {
    for name in clouds() {
        let answer: Answer = Box::new(|_, _| {
            let mut bytes = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
            bytes.resize(1 << 20, b'x');
            bytes
        });
        assert!(ask(name, answer).is_err(), "{name}");
    }
}

#[test]
fn metadata_url_must_be_http_address() {
    for base in [
        "",
        "http://",
        "http://metadata.example",
        "https://127.0.0.1",
        "127.0.0.1",
        "http://127.0.0.1/x",
    ] {
        let error = query("env_aws", base.to_owned(), Duration::from_secs(20)).unwrap_err();
        assert!(
            matches!(error, ProbeError::Setting { .. }),
            "{base}: {error}"
        );
    }
}
