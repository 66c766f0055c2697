//! Encryption of a connection, as `sslmode` asks for it: whom to trust. The handshake is `tokio-postgres-rustls`'.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{PostgresAddress, SslMode};

/// Why connections cannot be encrypted as asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("cannot read the certificates in {0}, which sslrootcert names")]
    RootCertificate(PathBuf, #[source] rustls::pki_types::pem::Error),
    #[error("no certificate authority is trusted: name one with sslrootcert")]
    NobodyTrusted(#[source] rustls::client::VerifierBuilderError),
    #[error("cannot set up encryption")]
    Setup(#[from] rustls::Error),
}

/// Builds what connects to a server at an address.
pub(super) fn build_connector(address: &PostgresAddress) -> Result<MakeRustlsConnect, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = build_verifier(address, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn build_verifier(
    address: &PostgresAddress,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let is_named = address.root_certificate.is_some();
    let trust = match address.ssl {
        SslMode::VerifyFull => TrustLevel::Host,
        SslMode::VerifyCa => TrustLevel::Authority,
        SslMode::Require if is_named => TrustLevel::Authority,
        SslMode::Require | SslMode::Prefer | SslMode::Disable => TrustLevel::Anyone,
    };
    let chain = match trust {
        TrustLevel::Anyone => None,
        TrustLevel::Host | TrustLevel::Authority => Some(chain_verifier(address, provider)?),
    };
    Ok(Arc::new(CertificateVerifier {
        trust,
        chain,
        provider: Arc::clone(provider),
    }))
}

fn chain_verifier(
    address: &PostgresAddress,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    match &address.root_certificate {
        Some(file) => {
            let unreadable = |error| TlsError::RootCertificate(file.clone(), error);
            for certificate in CertificateDer::pem_file_iter(file).map_err(unreadable)? {
                roots.add(certificate.map_err(unreadable)?)?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(TlsError::NobodyTrusted)
}

/// Whom a connection is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrustLevel {
    Anyone,
    Authority,
    Host,
}

#[derive(Debug)]
struct CertificateVerifier {
    trust: TrustLevel,
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at last, so everything else was in order.
            Err(rustls::Error::InvalidCertificate(
                NotValidForName | NotValidForNameContext { .. },
            )) if self.trust == TrustLevel::Authority => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
