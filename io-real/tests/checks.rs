//! Checks of services: what services are asked, over a connection of this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::effect::{CheckEffect, Probe, ProbeKind};
use drover_core::ids::AllocId;
use drover_core::input::ProbeAnswer;
use drover_core::model::check::HttpRequest;
use drover_core::op::Op;
use drover_core::time::Span;
use drover_io_real::checks::Checks;
use drover_io_real::driver::Inbox;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;

#[tokio::test]
async fn header_of_check_replaces_usual_one_whatever_its_case() {
    let (inbox, mut reported) = unbounded_channel();
    let checks = Checks::new(Inbox::new(inbox));
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let headers = [("Host", "web.example"), ("USER-AGENT", "tester")];
    let request = HttpRequest {
        method: "GET".to_owned(),
        path: "/".to_owned(),
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..HttpRequest::default()
    };
    let probe = Arc::new(Probe {
        host: "127.0.0.1".to_owned(),
        port: service.local_addr().unwrap().port(),
        timeout: Span::secs(60),
        how: ProbeKind::Http(request),
    });
    let (op, alloc) = (Op(1), AllocId(1));
    checks.carry_out(CheckEffect::Run {
        op,
        alloc,
        check: 0,
        probe,
    });
    let (connection, _) = service.accept().await.unwrap();
    let mut connection = BufReader::new(connection);
    let (mut head, mut line) = (Vec::new(), String::new());
    while connection.read_line(&mut line).await.unwrap() > 2 {
        head.push(std::mem::take(&mut line).trim().to_lowercase());
    }
    head.sort_unstable();
    assert_eq!(
        head,
        ["get / http/1.1", "host: web.example", "user-agent: tester"]
    );
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    connection.write_all(answer).await.unwrap();
    let Some(Input::Check(reported)) = reported.recv().await else {
        panic!("no answer of a check");
    };
    let (code, body) = (200, String::new());
    assert_eq!(reported.result, Ok(ProbeAnswer::Http { code, body }));
}
