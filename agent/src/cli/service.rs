//! `drover service`: list and info.

use drover_io_real::http_client::encoded;
use serde_json::Value;

use super::args::{ServiceCommand, ServiceInfoArgs, ServiceListArgs};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::table::{short, table};
use crate::http::dto::ServiceInstance;

/// Runs one of the commands.
///
/// # Errors
/// There is no such service, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, command: ServiceCommand) -> Outcome {
    match command {
        ServiceCommand::List(args) => list(cx, args).await,
        ServiceCommand::Info(args) => info(cx, args).await,
    }
}

async fn list(cx: &mut Context, args: ServiceListArgs) -> Outcome {
    let all: Value = cx.client.get("/v1/services", &[]).await?;
    if args.shape.is_asked() {
        return cx.show(&args.shape, &all);
    }
    let shown = names(&all);
    cx.screen.print_line(match shown.is_empty() {
        true => "No service registrations found",
        false => &shown,
    })?;
    Ok(0)
}

/// Names and tags; nothing if there are none.
fn names(all: &Value) -> String {
    let lists = all.as_array().into_iter().flatten();
    let services = lists.filter_map(|one| one["Services"].as_array()).flatten();
    let row = |service: &Value| {
        let tags = service["Tags"].as_array().into_iter().flatten();
        let tags: Vec<&str> = tags.filter_map(Value::as_str).collect();
        let name = service["ServiceName"].as_str().unwrap_or_default();
        [name.to_owned(), format!("[{}]", tags.join(","))]
    };
    let rows: Vec<[String; 2]> = services.map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    table(["Service Name", "Tags"], rows)
}

async fn info(cx: &mut Context, args: ServiceInfoArgs) -> Outcome {
    let path = format!("/v1/service/{}", encoded(&args.service));
    if args.shape.is_asked() {
        let (all, next): (Value, _) = cx.page(&path, &[], &args.page).await?;
        cx.show(&args.shape, &all)?;
        cx.note_next(next.as_deref());
        return Ok(0);
    }
    let (all, next): (Vec<ServiceInstance>, _) = cx.page(&path, &[], &args.page).await?;
    if all.is_empty() {
        let words = format!("No service registrations found for \"{}\"", args.service);
        return Err(Failure::new(words));
    }
    cx.screen.print_line(&instances(&all, args.verbose))?;
    cx.note_next(next.as_deref());
    Ok(0)
}

fn instances(all: &[ServiceInstance], verbose: bool) -> String {
    let row = |one: &ServiceInstance| {
        let address = match one.address.contains(':') {
            true => format!("[{}]:{}", one.address, one.port),
            false => format!("{}:{}", one.address, one.port),
        };
        [
            one.job_id.clone(),
            address,
            format!("[{}]", one.tags.join(",")),
            short(&one.node_id, verbose),
            short(&one.alloc_id, verbose),
        ]
    };
    let header = ["Job ID", "Address", "Tags", "Node ID", "Alloc ID"];
    table(header, all.iter().map(row))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn service_list_shows_tags() {
        let all = json!([{ "Namespace": "default", "Services": [
            { "ServiceName": "web-http", "Tags": ["golden", "v1"] },
            { "ServiceName": "db", "Tags": [] },
        ] }]);
        let shown = names(&all);
        let lines: Vec<&str> = shown.lines().collect();
        let wanted = [
            "Service Name  Tags",
            "web-http      [golden,v1]",
            "db            []",
        ];
        assert_eq!(lines, wanted);
        assert_eq!(names(&json!([])), "");
    }

    #[test]
    fn service_instance_shows_address() {
        let one = ServiceInstance {
            job_id: "web".to_owned(),
            address: "::1".to_owned(),
            port: 80,
            tags: vec!["a".to_owned()],
            node_id: "0123456789".to_owned(),
            alloc_id: "9876543210".to_owned(),
            ..ServiceInstance::default()
        };
        let shown = instances(&[one], false);
        let last = shown.lines().last();
        assert_eq!(last, Some("web     [::1]:80  [a]   01234567  98765432"));
    }
}
