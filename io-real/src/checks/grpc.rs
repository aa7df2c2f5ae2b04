//! Asking by gRPC's own protocol of health, `grpc.health.v1`, without TLS.

use drover_core::effect::Probe;
use drover_core::input::ProbeAnswer;
use tokio::net::TcpStream;

use super::authority;
use crate::plugin::health;

pub(super) async fn ask(
    stream: TcpStream,
    probe: &Probe,
    service: &str,
) -> Result<ProbeAnswer, String> {
    let answer = health(stream, &authority(probe), service).await;
    let (serves, status) = answer.map_err(|error| error.to_string())?;
    Ok(ProbeAnswer::Grpc { serves, status })
}
