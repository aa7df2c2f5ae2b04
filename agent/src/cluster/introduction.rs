//! What introduces a node to servers that do not know it: a token that people made at the servers (`nomad node intro
//! create`). It is good for some minutes, and for the first registration only: from then on the node has an identity.

use std::path::PathBuf;

use drover_rpc::msgpack::Secret;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

/// The file below the data directory, as Nomad's client calls it.
pub(crate) const FILE: &str = "intro_token.jwt";

/// The longest token that is read.
const LONGEST: u64 = 64 * 1024;

/// Where the token is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Introduction {
    /// The token itself, if it was given at the start.
    pub(crate) given: Secret,
    /// Where one is looked for else, each time anew.
    pub(crate) file: PathBuf,
}

impl Introduction {
    /// The token; empty for none.
    pub(super) async fn token(&self) -> Secret {
        if !self.given.is_empty() {
            return self.given.clone();
        }
        match self.read().await {
            Ok(text) => text.trim().into(),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Secret::default(),
            Err(why) => {
                let file = self.file.display();
                tracing::warn!(
                    "the token that introduces the node cannot be read from {file}: {why}"
                );
                Secret::default()
            }
        }
    }

    async fn read(&self) -> std::io::Result<String> {
        let mut text = String::new();
        let file = File::open(&self.file).await?;
        file.take(LONGEST).read_to_string(&mut text).await?;
        Ok(text)
    }
}
