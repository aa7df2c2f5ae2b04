//! Telling a web server.

use super::message::Message;
use super::settings::{WebhookSettings, check_template};
use super::target::Trouble;

pub(super) async fn send(webhook: &WebhookSettings, message: &Message) -> Result<(), Trouble> {
    let body = match &webhook.template {
        None => message.json(),
        Some(text) => rendered(text, message).map_err(|why| Trouble {
            is_final: true,
            ..Trouble::passing(why)
        })?,
    };
    let answer = webhook.to.post(&webhook.content_type, body.into()).await;
    let answer = answer.map_err(Trouble::passing)?;
    match answer.is_taken() {
        true => Ok(()),
        false => Err(Trouble {
            why: answer.in_words(),
            is_final: answer.is_final(),
            pause: answer.retry_after,
        }),
    }
}

fn rendered(text: &str, message: &Message) -> Result<Vec<u8>, String> {
    message.rendered(&check_template(text)?)
}
