//! How a plugin begins and ends: it looks whether it was started as one, listens, says where, and
//! serves until it is told to shut down.

use std::io::Write;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_stream::{Stream, pending};
use tonic::transport::server::Router;
use tonic::{Request, Response, Status, Streaming};

use super::mischief::Mischief;
use super::proto::health::health_check_response::ServingStatus;
use super::proto::health::health_server::{Health, HealthServer};
use super::proto::health::{HealthCheckRequest, HealthCheckResponse};
use super::proto::plugin::grpc_broker_server::{GrpcBroker, GrpcBrokerServer};
use super::proto::plugin::grpc_controller_server::{GrpcController, GrpcControllerServer};
use super::proto::plugin::grpc_stdio_server::{GrpcStdio, GrpcStdioServer};
use super::proto::plugin::{ConnInfo, Empty, StdioData, stdio_data::Channel};

/// With these the host says that it wants a plugin.
const COOKIE: (&str, &str) = (
    "NOMAD_PLUGIN_MAGIC_COOKIE",
    "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255",
);

/// A stream that a service answers with.
pub(crate) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Serves what `services` has, and what every plugin has, until the host says that it is enough.
pub(crate) async fn serve(
    mischief: &Mischief,
    services: Router,
) -> Result<(), Box<dyn std::error::Error>> {
    if std::env::var(COOKIE.0).as_deref() != Ok(COOKIE.1) {
        eprintln!(
            "This is a plugin: it is started by an agent that has it in its plugin directory."
        );
        std::process::exit(1);
    }
    let instead = mischief.at_start();
    let path = socket_path();
    let listener = UnixListener::bind(&path)?;
    let line = instead.unwrap_or_else(|| format!("1|2|unix|{}|grpc|", path.display()));
    // Whoever does not listen to garbage closes the pipe.
    let _ = writeln!(std::io::stdout(), "{line}");
    let _ = std::io::stdout().flush();
    eprintln!(r#"{{"@level":"info","@message":"an example plugin listens","@module":"example"}}"#);
    let enough = Arc::new(Notify::new());
    let served = services
        .add_service(HealthServer::new(Common(mischief.clone(), enough.clone())))
        .add_service(GrpcControllerServer::new(Common(
            mischief.clone(),
            enough.clone(),
        )))
        .add_service(GrpcStdioServer::new(Common(
            mischief.clone(),
            enough.clone(),
        )))
        .add_service(GrpcBrokerServer::new(Common(
            mischief.clone(),
            enough.clone(),
        )))
        .serve_with_incoming(UnixListenerStream::new(listener));
    tokio::select! {
        served = served => served?,
        // Without waiting for streams that never end.
        () = enough.notified() => {}
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

fn socket_path() -> PathBuf {
    let dir = std::env::var_os("PLUGIN_UNIX_SOCKET_DIR").or_else(|| std::env::var_os("TMPDIR"));
    let dir = dir.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    dir.join(format!("plugin{}", std::process::id()))
}

struct Common(Mischief, Arc<Notify>);

#[tonic::async_trait]
impl Health for Common {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        self.0.at("Check").await?;
        if request.get_ref().service != "plugin" {
            return Err(Status::not_found("there is one service, plugin"));
        }
        let status = ServingStatus::Serving.into();
        Ok(Response::new(HealthCheckResponse { status }))
    }
}

#[tonic::async_trait]
impl GrpcController for Common {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.0.at("Shutdown").await?;
        self.1.notify_one();
        Ok(Response::new(Empty {}))
    }
}

#[tonic::async_trait]
impl GrpcStdio for Common {
    type StreamStdioStream = Answers<StdioData>;

    async fn stream_stdio(
        &self,
        _: Request<()>,
    ) -> Result<Response<Self::StreamStdioStream>, Status> {
        let data = StdioData {
            channel: Channel::Stdout.into(),
            data: b"said through the plugin itself\n".to_vec(),
        };
        let stream = tokio_stream::StreamExt::chain(tokio_stream::once(Ok(data)), pending());
        Ok(Response::new(Box::pin(stream)))
    }
}

#[tonic::async_trait]
impl GrpcBroker for Common {
    type StartStreamStream = Answers<ConnInfo>;

    async fn start_stream(
        &self,
        _: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<Self::StartStreamStream>, Status> {
        Ok(Response::new(Box::pin(pending())))
    }
}
