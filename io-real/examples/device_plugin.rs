//! An example of a plugin of devices: files that are handed to tasks as if they were devices. A
//! device is healthy while its file is there.
//!
//! Its configuration: `dir`, where the files are, `files`, their names, and `poll_ms`, how often it
//! looks.

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drover_core::model::value::Value;
use support::base::{Base, attr, attr_or, object};
use support::mischief::Mischief;
use support::proto::base::PluginType;
use support::proto::base::base_plugin_server::BasePluginServer;
use support::proto::device::device_plugin_server::{DevicePlugin, DevicePluginServer};
use support::proto::device::{
    ContainerReservation, DetectedDevice, DeviceGroup, DeviceGroupStats, DeviceStats,
    FingerprintRequest, FingerprintResponse, Mount, ReserveRequest, ReserveResponse, StatsRequest,
    StatsResponse,
};
use support::proto::structs::attribute::Value as AttributeValue;
use support::proto::structs::{Attribute, StatObject, StatValue};
use support::serve::{Answers, serve};
use tokio::sync::{mpsc, watch};
use tokio::time::interval;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{StreamExt, once, pending};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// The devices' group.
const GROUP: (&str, &str, &str) = ("example", "file", "plain");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mischief = Mischief::from_env();
    let config = Arc::new(watch::Sender::new(Value::Null));
    let base = Base {
        mischief: mischief.clone(),
        kind: PluginType::Device,
        name: "example-files",
        schema: object([
            ("dir", attr("dir", "string", true)),
            ("files", attr_or("files", "list(string)", "[]")),
            ("poll_ms", attr_or("poll_ms", "number", "1000")),
        ]),
        config: config.clone(),
    };
    let files = Files {
        mischief: mischief.clone(),
        config,
    };
    let services = Server::builder()
        .add_service(BasePluginServer::new(base))
        .add_service(DevicePluginServer::new(files));
    serve(&mischief, services).await
}

#[derive(Clone)]
struct Files {
    mischief: Mischief,
    config: Arc<watch::Sender<Value>>,
}

impl Files {
    /// Each file's name, and where it is.
    fn paths(&self) -> BTreeMap<String, PathBuf> {
        let config = self.config.borrow();
        let Some(config) = config.as_map() else {
            return BTreeMap::new();
        };
        let dir = config.get("dir").and_then(Value::as_str);
        let dir = PathBuf::from(dir.unwrap_or_default());
        let files = config.get("files").and_then(Value::as_list);
        let names = files.into_iter().flatten().filter_map(Value::as_str);
        names
            .map(|name| (name.to_owned(), dir.join(name)))
            .collect()
    }

    fn poll(&self) -> Duration {
        let config = self.config.borrow();
        let millis = config.as_map().and_then(|map| map.get("poll_ms")?.as_int());
        let millis = millis.and_then(|millis| u64::try_from(millis).ok());
        Duration::from_millis(millis.unwrap_or(1000).max(1))
    }

    fn fingerprint(&self) -> FingerprintResponse {
        let mut devices: Vec<DetectedDevice> = Vec::new();
        for (id, path) in self.paths() {
            let healthy = path.exists();
            let reported = if healthy { "" } else { "there is no such file" };
            devices.push(DetectedDevice {
                id,
                healthy,
                health_description: reported.to_owned(),
                hw_locality: None,
            });
        }
        if self.mischief.is("duplicate") {
            devices.extend(devices.clone());
        }
        let size = Attribute {
            value: Some(AttributeValue::IntVal(1)),
            unit: "MiB".to_owned(),
        };
        let (vendor, kind, name) = GROUP;
        FingerprintResponse {
            device_group: vec![DeviceGroup {
                vendor: vendor.to_owned(),
                device_type: kind.to_owned(),
                device_name: name.to_owned(),
                devices,
                attributes: [("size".to_owned(), size)].into(),
            }],
        }
    }

    fn stats(&self) -> StatsResponse {
        let instances = self.paths().into_iter().filter_map(|(id, path)| {
            let size = path.metadata().ok()?.len();
            let used = StatValue {
                int_numerator_val: Some(i64::try_from(size).ok()?),
                int_denominator_val: Some(1 << 20),
                unit: "bytes".to_owned(),
                desc: "size of the file".to_owned(),
                ..StatValue::default()
            };
            let stats = DeviceStats {
                summary: Some(used.clone()),
                stats: Some(StatObject {
                    nested: BTreeMap::new(),
                    attributes: [("size".to_owned(), used)].into(),
                }),
                timestamp: Some(std::time::SystemTime::now().into()),
            };
            Some((id, stats))
        });
        let (vendor, kind, name) = GROUP;
        StatsResponse {
            groups: vec![DeviceGroupStats {
                vendor: vendor.to_owned(),
                r#type: kind.to_owned(),
                name: name.to_owned(),
                instance_stats: instances.collect(),
            }],
        }
    }
}

/// What `say` says, now and after each interval, until nobody listens.
fn repeat<T: Send + 'static>(
    every: Duration,
    mut say: impl FnMut() -> Option<T> + Send + 'static,
) -> Answers<T> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut ticks = interval(every);
        loop {
            ticks.tick().await;
            let Some(message) = say() else { return };
            if sender.send(Ok(message)).await.is_err() {
                return;
            }
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

#[tonic::async_trait]
impl DevicePlugin for Files {
    type FingerprintStream = Answers<FingerprintResponse>;
    type StatsStream = Answers<StatsResponse>;

    async fn fingerprint(
        &self,
        _: Request<FingerprintRequest>,
    ) -> Result<Response<Self::FingerprintStream>, Status> {
        self.mischief.at("Fingerprint").await?;
        let files = self.clone();
        if self.mischief.is("flood") {
            // As fast as it is taken, and each time other than before.
            let mut count = 0;
            let flood = std::iter::from_fn(move || {
                count += 1;
                let mut message = files.fingerprint();
                message.device_group[0].device_name = format!("flood {count}");
                Some(Ok(message))
            });
            return Ok(Response::new(Box::pin(tokio_stream::iter(flood))));
        }
        let mut reported = 0;
        let stream = repeat(self.poll(), move || {
            reported += 1;
            if reported > 1 && files.mischief.is("break") {
                std::process::exit(4);
            }
            // Those who end a stream say that they are done.
            let done = reported > 1 && files.mischief.is("close");
            (!done).then(|| files.fingerprint())
        });
        Ok(Response::new(stream))
    }

    async fn reserve(
        &self,
        request: Request<ReserveRequest>,
    ) -> Result<Response<ReserveResponse>, Status> {
        self.mischief.at("Reserve").await?;
        let paths = self.paths();
        let mut given = ContainerReservation::default();
        for id in &request.get_ref().device_ids {
            let path = paths.get(id).map(|path| path.display().to_string());
            let unknown = || Status::invalid_argument(format!("unknown device {id:?}"));
            given.mounts.push(Mount {
                task_path: format!("/dev/files/{id}"),
                host_path: path.ok_or_else(unknown)?,
                read_only: true,
            });
        }
        let ids = request.into_inner().device_ids.join(",");
        given.envs.insert("EXAMPLE_FILES".to_owned(), ids);
        let container_res = Some(given);
        Ok(Response::new(ReserveResponse { container_res }))
    }

    async fn stats(
        &self,
        request: Request<StatsRequest>,
    ) -> Result<Response<Self::StatsStream>, Status> {
        self.mischief.at("Stats").await?;
        let every = request.into_inner().collection_interval;
        let every = every.and_then(|every| Duration::try_from(every).ok());
        let every = every.filter(|every| !every.is_zero());
        let files = self.clone();
        if self.mischief.is("flood:Stats") {
            let flood = std::iter::from_fn(move || Some(Ok(files.stats())));
            return Ok(Response::new(Box::pin(tokio_stream::iter(flood))));
        }
        if self.mischief.is("garbage:Stats") {
            let mut message = files.stats();
            message.groups[0].vendor.clear();
            return Ok(Response::new(Box::pin(once(Ok(message)).chain(pending()))));
        }
        if self.mischief.is("end:Stats") {
            return Ok(Response::new(Box::pin(once(Ok(files.stats())))));
        }
        let every = every.unwrap_or(Duration::from_secs(1));
        Ok(Response::new(repeat(every, move || Some(files.stats()))))
    }
}
