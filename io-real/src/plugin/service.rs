//! The services that every plugin has beside its own: health, an end in order, what it prints,
//! and the broker of further connections.

use std::time::Duration;

use http::Uri;
use tokio::net::TcpStream;
use tonic::codegen::tokio_stream;

use super::error::PluginError;
use super::output::LogForwarder;
use super::proto::health::health_client::HealthClient;
use super::proto::health::{HealthCheckRequest, health_check_response::ServingStatus};
use super::proto::plugin::grpc_broker_client::GrpcBrokerClient;
use super::proto::plugin::grpc_controller_client::GrpcControllerClient;
use super::proto::plugin::grpc_stdio_client::GrpcStdioClient;
use super::proto::plugin::{ConnInfo, Empty};
use super::wire::{Limits, Wire};
use crate::abort_on_drop::AbortOnDrop;

/// How large a server's answer about its health may be, in bytes.
const MAX_HEALTH: usize = 4 * 1024;

/// The name under which a plugin says that it serves.
const SERVICE: &str = "plugin";

/// Asks whether the plugin serves, and opens what stays open.
pub(super) async fn begin(
    name: &str,
    wire: &Wire,
    tasks: &mut Vec<AbortOnDrop<()>>,
) -> Result<(), PluginError> {
    check(wire).await?;
    tasks.push(AbortOnDrop(tokio::spawn(stdio(name.to_owned(), wire))));
    tasks.push(AbortOnDrop(tokio::spawn(broker(wire))));
    Ok(())
}

/// Asks whether the plugin serves.
pub(super) async fn check(wire: &Wire) -> Result<(), PluginError> {
    let (channel, origin) = wire.channel();
    let mut client = HealthClient::with_origin(channel, origin);
    let service = SERVICE.to_owned();
    let answer = client.check(HealthCheckRequest { service });
    let answer = wire.call("Check", answer).await?;
    match answer.status() {
        ServingStatus::Serving => Ok(()),
        other => Err(PluginError::Invalid(format!(
            "its health is {}",
            other.as_str_name()
        ))),
    }
}

/// Asks a server of somebody else's whether it serves, over this socket: yes or no, and its own word.
///
/// # Errors
/// It does not say.
pub(crate) async fn health(
    socket: TcpStream,
    authority: &str,
    service: &str,
) -> Result<(bool, String), PluginError> {
    let unfit = |error: http::uri::InvalidUri| PluginError::Invalid(error.to_string());
    let origin = Uri::try_from(format!("http://{authority}")).map_err(unfit)?;
    let wire = Wire::over(socket, Limits::default()).await?;
    let (channel, _) = wire.channel();
    let mut client =
        HealthClient::with_origin(channel, origin).max_decoding_message_size(MAX_HEALTH);
    let service = service.to_owned();
    let answer = client.check(HealthCheckRequest { service });
    let status = wire.call("Check", answer).await?.status();
    let serves = status == ServingStatus::Serving;
    Ok((serves, status.as_str_name().to_owned()))
}

/// Asks the plugin to end. It may end before it has answered.
pub(super) async fn shutdown(wire: &Wire, timeout: Duration) {
    let (channel, origin) = wire.channel();
    let mut client = GrpcControllerClient::with_origin(channel, origin);
    let answer = client.shutdown(Empty {});
    if let Err(error) = wire.call_within("Shutdown", timeout, answer).await {
        tracing::debug!(%error, "a plugin did not acknowledge its shutdown");
    }
}

/// Tells again what a plugin prints through itself. Not all do.
fn stdio(name: String, wire: &Wire) -> impl Future<Output = ()> + Send + 'static {
    let (channel, origin) = wire.channel();
    let limit = wire.limits().message;
    async move {
        let mut client =
            GrpcStdioClient::with_origin(channel, origin).max_decoding_message_size(limit);
        let Ok(stream) = client.stream_stdio(()).await else {
            return;
        };
        let mut stream = stream.into_inner();
        let mut teller = LogForwarder::new(name);
        while let Ok(Some(data)) = stream.message().await {
            for line in String::from_utf8_lossy(&data.data).lines() {
                teller.log(line);
            }
        }
    }
}

/// Holds the broker's stream open, as plugins expect it. Nobody brokers anything.
fn broker(wire: &Wire) -> impl Future<Output = ()> + Send + 'static {
    let (channel, origin) = wire.channel();
    async move {
        let mut client = GrpcBrokerClient::with_origin(channel, origin);
        let nothing = tokio_stream::pending::<ConnInfo>();
        if let Ok(stream) = client.start_stream(nothing).await {
            let mut stream = stream.into_inner();
            while let Ok(Some(offer)) = stream.message().await {
                let (id, address) = (offer.service_id, offer.address);
                tracing::debug!(id, address, "a plugin offers an unexpected connection");
            }
        }
    }
}
