//! An image for containers, written as the layout of the Open Container Initiative: no daemon is asked. It holds the
//! command, the certificates that browsers trust, and a folder for archives; there is no shell in it.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::Release;
use super::binary::BuiltCommand;
use super::checksum::sha256;
use super::tarball::{TarEntry, compress, pack_tar};

/// The user that the command runs as: nobody's number on a usual system.
const USER: u64 = 65_532;

/// A file of the layout, named by its hash.
struct OciBlob {
    kind: &'static str,
    content: Vec<u8>,
}

impl OciBlob {
    fn json(kind: &'static str, value: &Value) -> OciBlob {
        OciBlob {
            kind,
            content: value.to_string().into_bytes(),
        }
    }

    fn descriptor(&self) -> Value {
        json!({
            "mediaType": self.kind,
            "digest": format!("sha256:{}", sha256(&self.content)),
            "size": self.content.len(),
        })
    }

    fn entry(&self) -> TarEntry {
        let name = sha256(&self.content);
        TarEntry::file(format!("blobs/sha256/{name}"), self.content.clone())
    }
}

/// Makes the image.
pub(super) fn make(release: &Release, command: &BuiltCommand) -> Result<PathBuf> {
    let files = pack_tar(&image_entries(command), release.date)?;
    let layer = OciBlob {
        kind: "application/vnd.oci.image.layer.v1.tar+gzip",
        content: compress(&files)?,
    };
    let config = OciBlob::json(
        "application/vnd.oci.image.config.v1+json",
        &image_config(release, &sha256(&files)),
    );
    let manifest = OciBlob::json(
        "application/vnd.oci.image.manifest.v1+json",
        &json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor(),
            "layers": [layer.descriptor()],
        }),
    );
    let mut described = manifest.descriptor();
    if let Some(fields) = described.as_object_mut() {
        let name = json!({ "org.opencontainers.image.ref.name": release.version });
        fields.insert("annotations".to_owned(), name);
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described],
    });
    let entries = [
        TarEntry::file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
        TarEntry::file("index.json", index.to_string()),
        manifest.entry(),
        config.entry(),
        layer.entry(),
    ];
    let image = pack_tar(&entries, release.date)?;
    release.write(&format!("oci-{}.tar", release.target.oci), &image)
}

fn image_entries(command: &BuiltCommand) -> Vec<TarEntry> {
    let users = format!("root:x:0:0::/:\ncompact:x:{USER}:{USER}::/data:\n");
    vec![
        TarEntry::program("usr/bin/compactctl", command.bytes.clone()),
        TarEntry::file("etc/ssl/certs/ca-certificates.crt", trusted_certificates()),
        TarEntry::file("etc/passwd", users),
        TarEntry::folder("tmp", 0o1777, 0),
        TarEntry::folder("data", 0o700, USER),
    ]
}

/// Returns Mozilla's list of certificates as it is in a crate, so that it does not depend on the machine.
fn trusted_certificates() -> String {
    let certificates = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    certificates.map(|der| encode_pem(der)).collect()
}

fn encode_pem(der: &[u8]) -> String {
    let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

fn image_config(release: &Release, layer: &str) -> Value {
    json!({
        "architecture": release.target.oci,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin", "HOME=/data", "COMPACT_STORAGE_PATH=/data/compact"],
            "Entrypoint": ["/usr/bin/compactctl"],
            "Cmd": ["--help"],
            "WorkingDir": "/data",
            "Volumes": { "/data": {} },
            "Labels": {
                "org.opencontainers.image.title": "compactctl",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "MIT",
                "org.opencontainers.image.source": "https://github.com/compact-engine/compact",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer}")] },
    })
}
