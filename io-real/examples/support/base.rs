//! Who a plugin is, and its configuration.

use std::sync::Arc;

use drover_core::model::value::Value;
use drover_io_real::plugin::msgpack;
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use super::mischief::Mischief;
use super::proto::base::base_plugin_server::BasePlugin;
use super::proto::base::{
    ConfigSchemaRequest, ConfigSchemaResponse, PluginInfoRequest, PluginInfoResponse, PluginType,
    SetConfigRequest, SetConfigResponse,
};
use super::proto::hclspec::{Attr, Default, Literal, Object, Spec, spec::Block};

/// The answers of a plugin about itself.
pub(crate) struct Base {
    /// What it does wrong.
    pub(crate) mischief: Mischief,
    /// What it is for.
    pub(crate) kind: PluginType,
    /// Its name.
    pub(crate) name: &'static str,
    /// What may stand in its configuration.
    pub(crate) schema: Spec,
    /// Where its configuration goes.
    pub(crate) config: Arc<watch::Sender<Value>>,
}

#[tonic::async_trait]
impl BasePlugin for Base {
    async fn plugin_info(
        &self,
        _: Request<PluginInfoRequest>,
    ) -> Result<Response<PluginInfoResponse>, Status> {
        self.mischief.at("PluginInfo").await?;
        let api = if self.mischief.is("api") {
            "v7.0.0"
        } else {
            "v0.1.0"
        };
        Ok(Response::new(PluginInfoResponse {
            r#type: self.kind.into(),
            plugin_api_versions: vec![api.to_owned()],
            plugin_version: "v0.1.0".to_owned(),
            name: self.name.to_owned(),
        }))
    }

    async fn config_schema(
        &self,
        _: Request<ConfigSchemaRequest>,
    ) -> Result<Response<ConfigSchemaResponse>, Status> {
        self.mischief.at("ConfigSchema").await?;
        let spec = Some(self.schema.clone());
        Ok(Response::new(ConfigSchemaResponse { spec }))
    }

    async fn set_config(
        &self,
        request: Request<SetConfigRequest>,
    ) -> Result<Response<SetConfigResponse>, Status> {
        self.mischief.at("SetConfig").await?;
        let config = msgpack::decode(&request.get_ref().msgpack_config)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        self.config.send_replace(config);
        Ok(Response::new(SetConfigResponse {}))
    }
}

/// A schema of these parts.
pub(crate) fn object<const N: usize>(parts: [(&str, Spec); N]) -> Spec {
    let attributes = parts.map(|(name, spec)| (name.to_owned(), spec)).into();
    spec(Block::Object(Object { attributes }))
}

/// One value.
pub(crate) fn attr(name: &str, kind: &str, required: bool) -> Spec {
    spec(Block::Attr(Attr {
        name: name.to_owned(),
        r#type: kind.to_owned(),
        required,
    }))
}

/// One value, and what it is if it is not given.
pub(crate) fn attr_or(name: &str, kind: &str, default: &str) -> Spec {
    let value = default.to_owned();
    spec(Block::Default(Box::new(Default {
        primary: Some(Box::new(attr(name, kind, false))),
        default: Some(Box::new(spec(Block::Literal(Literal { value })))),
    })))
}

fn spec(block: Block) -> Spec {
    Spec { block: Some(block) }
}
