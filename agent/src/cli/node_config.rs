//! `drover node config`: which servers the agent has.

use hyper::Method;

use super::args::NodeConfigArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;

/// Runs the command.
///
/// # Errors
/// The agent does not answer, or refuses other servers.
pub(super) async fn run(cx: &mut Context, args: NodeConfigArgs) -> Outcome {
    if args.servers {
        let servers: Vec<String> = cx.client.get("/v1/agent/servers", &[]).await?;
        cx.screen.print_line(&servers.join("\n"))?;
        return Ok(0);
    }
    if args.update_servers.is_empty() {
        return Err(Failure::new("Use -servers or -update-servers ADDRESS…"));
    }
    let servers = args.update_servers.iter();
    let query: Vec<(&str, &str)> = servers.map(|one| ("address", one.as_str())).collect();
    let sent = cx
        .client
        .send(Method::PUT, "/v1/agent/servers", &query, None)
        .await;
    sent.map_err(|failure| failure.answered_within("Error updating server list"))?;
    cx.screen.print_line("Updated server list")?;
    Ok(0)
}
