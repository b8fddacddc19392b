//! TLS as sslyze judges it.

use gatewright_testbed::sslyze::{self, Scan, Served};

use crate::world::GATEWRIGHT;

#[test]
fn tls_is_done_as_mozillas_intermediate_configuration_wants_it() {
    let folder = tempfile::tempdir().unwrap();
    let scans = sslyze::judge(&GATEWRIGHT, folder.path()).unwrap();
    assert_eq!(scans.len(), Served::ALL.len());
    for (served, Scan { issues, text }) in scans {
        match served {
            Served::Ecdsa | Served::Rsa => {
                assert!(issues.is_empty(), "{served:?}: {issues:#?}\n{text}");
                // A server that takes nothing would be compliant, too.
                for expected in [
                    "TLS_AES_256_GCM_SHA384",
                    "TLS_AES_128_GCM_SHA256",
                    "TLS_CHACHA20_POLY1305_SHA256",
                    "_WITH_AES_256_GCM_SHA384",
                    "_WITH_AES_128_GCM_SHA256",
                    "_WITH_CHACHA20_POLY1305_SHA256",
                ] {
                    assert!(text.contains(expected), "{served:?}: no {expected}:\n{text}");
                }
            }
            // What it finds wrong here is about the certificate, and nothing else.
            Served::LongLived => assert!(
                matches!(issues.as_slice(), [only] if only.starts_with("maximum_certificate_lifespan")),
                "{issues:#?}\n{text}"
            ),
        }
    }
}
