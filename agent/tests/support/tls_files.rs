//! Settings of TLS, and the files that they name.

use std::fs;
use std::path::Path;

use crate::authority::{Authority, Signed};

/// The settings of TLS with this authority, whose files are put into a folder.
pub(crate) fn tls(folder: &Path, ca: &Authority, own: &Signed, http: bool) -> String {
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    format!(
        "tls {{\n http = {http}\n rpc = true\n verify_server_hostname = true\n verify_https_client = {http}\n \
         ca_file = \"{}\"\n cert_file = \"{}\"\n key_file = \"{}\"\n}}\n",
        put("ca.pem", &ca.pem),
        put("cert.pem", &own.certificate),
        put("key.pem", &own.key),
    )
}
