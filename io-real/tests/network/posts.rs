//! Notices and logs on their way to a server of the operator's.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use drover_io_real::post::PostBox;
use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::time::sleep;
use turmoil::net::TcpListener;
use url::Url;

use crate::hosts::{Moment, Network, Trouble};
use crate::taker::Simulated;

/// Takes whatever is posted.
async fn serve() -> turmoil::Result {
    let listener = TcpListener::bind(("0.0.0.0", 80)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let answer = service_fn(|_| async { Ok::<_, Infallible>(Response::new(String::new())) });
        let served = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
        tokio::spawn(async move {
            // Whoever asks may be gone.
            let _ = served.await;
        });
    }
}

/// What becomes of a request in each ten seconds of two minutes.
fn answers(trouble: &[Moment]) -> Vec<bool> {
    let network = Network::new(5).host("hooks", serve);
    network.run(trouble, || async {
        let hook = PostBox {
            url: Url::parse("http://hooks/hook").unwrap(),
            headers: BTreeMap::new(),
            timeout: Duration::from_secs(5),
            ca_file: None,
        };
        let mut answers = Vec::new();
        for _ in 0..12 {
            let next = tokio::time::Instant::now() + Duration::from_secs(10);
            let answer = hook
                .post_over(Arc::new(Simulated), "text/plain", "a notice".into())
                .await;
            answers.push(answer.is_ok_and(|answer| answer.is_taken()));
            assert!(tokio::time::Instant::now() <= next, "it took too long");
            sleep(next - tokio::time::Instant::now()).await;
        }
        answers
    })
}

#[test]
fn request_without_answer_ends_in_time_and_the_next_ones_are_answered() {
    for (begins, ends) in [
        (
            Trouble::Part("client", "hooks"),
            Trouble::Heal("client", "hooks"),
        ),
        (
            Trouble::PartOneWay("hooks", "client"),
            Trouble::HealOneWay("hooks", "client"),
        ),
        (
            Trouble::Hold("client", "hooks"),
            Trouble::Release("client", "hooks"),
        ),
        (Trouble::Crash("hooks"), Trouble::Bounce("hooks")),
    ] {
        let trouble = [Moment::at_second(35, begins), Moment::at_second(75, ends)];
        let answers = answers(&trouble);
        assert_eq!(answers[..4], [true; 4], "before {begins:?}");
        assert_eq!(answers[4..7], [false; 3], "during {begins:?}");
        assert_eq!(answers[8..], [true; 4], "after {begins:?}");
    }
}
