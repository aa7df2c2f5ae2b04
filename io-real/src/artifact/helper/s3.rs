//! Servers that speak S3: plain requests, signed (version 4 of the signature) if somebody asks.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::http::{Client, save};
use super::{Got, Progress};
use crate::artifact::source::Credentials;
use crate::artifact::sum::hex;
use crate::artifact::url::Url;
use crate::artifact::wire::Request;
use crate::http_client::encoded;
use crate::unpack::Trouble;

/// The sum of nothing, which is what a request like ours sends.
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

pub(super) fn download(
    url: &Url,
    region: &str,
    credentials: Option<&Credentials>,
    request: &Request,
    progress: &mut Progress,
) -> Result<Got, Trouble> {
    let limits = &request.limits;
    let mut url = url.clone();
    // As it is signed, so it must be sent.
    url.encode_path();
    if url.path().ends_with('/') {
        let why = "only single objects can be fetched, and this ends with a slash";
        return Err(Trouble::lasting(format!("{url}: {why}")));
    }
    let headers = match credentials {
        None => request.headers.clone(),
        Some(credentials) => {
            let mut headers = request.headers.clone();
            headers.extend(signed(&url, region, credentials, Timestamp::now()));
            headers
        }
    };
    let client = Client::new(limits.s3_time, request.insecure);
    let mut answer = client.get(&url, &headers)?;
    save(&mut answer, limits.http_bytes, progress)
}

/// The headers that say who asks, at this moment.
fn signed(
    url: &Url,
    region: &str,
    credentials: &Credentials,
    now: Timestamp,
) -> BTreeMap<String, String> {
    let (day, time) = moment(now);
    let mut headers = BTreeMap::from([
        ("host".to_owned(), url.authority().to_owned()),
        ("x-amz-content-sha256".to_owned(), NOTHING.to_owned()),
        ("x-amz-date".to_owned(), time.clone()),
    ]);
    if let Some(token) = &credentials.token {
        headers.insert("x-amz-security-token".to_owned(), token.clone());
    }
    let names: Vec<&str> = headers.keys().map(String::as_str).collect();
    let names = names.join(";");
    let lines: String = headers
        .iter()
        .map(|(name, value)| format!("{name}:{value}\n"))
        .collect();
    let mut query: Vec<String> = (url.query.iter())
        .map(|(key, value)| format!("{}={}", encoded(key), encoded(value)))
        .collect();
    query.sort();
    let query = query.join("&");
    let canonical = format!("GET\n{}\n{query}\n{lines}\n{names}\n{NOTHING}", url.path());
    let scope = format!("{day}/{region}/s3/aws4_request");
    let summed = hex(&Sha256::digest(canonical.as_bytes()));
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{summed}");
    let mut key = format!("AWS4{}", credentials.secret).into_bytes();
    for step in [day.as_str(), region, "s3", "aws4_request", text.as_str()] {
        key = mac(&key, step);
    }
    let (id, signature) = (&credentials.id, hex(&key));
    headers.remove("host");
    headers.insert(
        "authorization".to_owned(),
        format!(
            "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        ),
    );
    headers
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    // Keys of any length are fine.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// A moment as `20150830` and as `20150830T123600Z`.
fn moment(now: Timestamp) -> (String, String) {
    let shown = |format: &str| now.strftime(format).to_string();
    (shown("%Y%m%d"), shown("%Y%m%dT%H%M%SZ"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn s3_timestamps_match_calendar() {
        for (seconds, expected) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (1_440_938_160, "20150830T123600Z"),
            (1_735_689_599, "20241231T235959Z"),
        ] {
            let now = Timestamp::from_second(seconds).unwrap();
            assert_eq!(moment(now).1, expected);
        }
    }

    /// Worked out by another program that signs as version 4 says.
    #[test]
    fn s3_signature_matches_reference() {
        let url = Url::parse("http://127.0.0.1:9000/bucket/a%20b.txt?x=1").unwrap();
        let credentials = Credentials {
            id: "AKIDEXAMPLE".to_owned(),
            secret: "secret/key".to_owned(),
            token: None,
        };
        let headers = {
            let now = Timestamp::from_second(1_440_938_160).unwrap();
            signed(&url, "eu-west-1", &credentials, now)
        };
        let signature = headers["authorization"].rsplit('=').next().unwrap();
        assert_eq!(signature, EXPECTED);
        assert!(!headers.contains_key("host"), "the client says that itself");
    }

    const EXPECTED: &str = "0b2267ec1829b6da0984bfba4bb04916360175d3960e916a6d39b00e11ff1894";
}
