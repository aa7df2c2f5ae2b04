//! What drivers put into the details of a refusal: whether trying again may help.

use prost::Message;
use tonic::{Code, Status};

use super::proto::structs::RecoverableError;

/// The last part of the name under which the detail is sent.
const NAME: &str = "hashicorp.nomad.plugins.shared.structs.RecoverableError";

/// A status as it lies in a response's trailer.
#[derive(Clone, PartialEq, Message)]
struct Details {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// Whether a refusal says that trying again may help. What cannot be read does not say so.
pub(super) fn is_recoverable(status: &Status) -> bool {
    if status.code() != Code::FailedPrecondition {
        return false;
    }
    let Ok(details) = Details::decode(status.details()) else {
        return false;
    };
    details.details.iter().any(|detail| {
        let name = detail.type_url.rsplit('/').next();
        let read = || RecoverableError::decode(detail.value.as_slice());
        name == Some(NAME) && read().is_ok_and(|error| error.recoverable)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: Code, recoverable: bool) -> Status {
        let detail = prost_types::Any {
            type_url: format!("type.googleapis.com/{NAME}"),
            value: RecoverableError { recoverable }.encode_to_vec(),
        };
        let details = Details {
            code: code.into(),
            message: "no".to_owned(),
            details: vec![detail],
        };
        Status::with_details(code, "no", details.encode_to_vec().into())
    }

    #[test]
    fn only_marked_errors_are_recoverable() {
        assert!(is_recoverable(&status(Code::FailedPrecondition, true)));
        assert!(!is_recoverable(&status(Code::FailedPrecondition, false)));
        assert!(!is_recoverable(&status(Code::Internal, true)));
        let garbage = Status::with_details(Code::FailedPrecondition, "no", vec![0xff; 9].into());
        assert!(!is_recoverable(&garbage));
    }
}
