//! Certificate verification, and the configuration of encrypted connections.
//!
//! Encryption is rustls', with ring's ciphers.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Configuration of encrypted connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    /// The name that its certificate must have, or its address.
    pub name: String,
    /// Trusted certificates.
    pub trust: Trust,
}

/// Trusted certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The system's CA certificates.
    System,
    /// The given CA certificates.
    Authorities(Vec<CertificateDer<'static>>),
    /// Any certificate, for servers with a self-signed one.
    Unverified,
}

/// Reason why no certificate can be verified.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file has no certificate, or cannot be read.
    #[error("{0}; give certificates in PEM, as files that begin with -----BEGIN CERTIFICATE----- have")]
    File(String),
    /// The system has no CA certificates.
    #[error(
        "this system has no CA certificates; install them (Debian: ca-certificates), or give --ca FILE or \
         --insecure"
    )]
    System,
    /// The server's name cannot be in a certificate.
    #[error("no certificate can be for `{0}`; give a name or an address")]
    Name(String),
    /// The protocol is always encrypted, and the URL is not.
    #[error("HTTP/3 is always encrypted; give an https:// URL")]
    Nothing,
    /// A certificate cannot sign others: it is not a CA's.
    #[error("--ca: not a CA certificate: {0}; give the certificate of an authority")]
    Authority(String),
}

impl Trust {
    /// The CA certificates in a PEM file.
    ///
    /// # Errors
    /// If it has none.
    pub fn file(path: &Path) -> Result<Self, TrustError> {
        let refused = |why: &dyn fmt::Display| TrustError::File(format!("{}: {why}", path.display()));
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| refused(&error))?;
        let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(|error| refused(&error))?;
        if certificates.is_empty() {
            Err(refused(&"it has no certificate"))
        } else {
            Ok(Self::Authorities(certificates))
        }
    }
}

impl Security {
    /// The server's name for SNI and verification.
    pub(crate) fn server(&self) -> Result<ServerName<'static>, TrustError> {
        ServerName::try_from(self.name.clone()).map_err(|_| TrustError::Name(self.name.clone()))
    }

    /// The TLS configuration for a protocol with this ALPN name (RFC 7301).
    pub(crate) fn client(&self, protocol: &[u8]) -> Result<ClientConfig, TrustError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("ring has ciphers for every version");
        let builder = match self.roots()? {
            Some(roots) => {
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|_| TrustError::System)?;
                builder.with_webpki_verifier(verifier)
            }
            None => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
            }
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(config)
    }

    fn roots(&self) -> Result<Option<RootCertStore>, TrustError> {
        let mut roots = RootCertStore::empty();
        match &self.trust {
            Trust::Unverified => return Ok(None),
            Trust::System => {
                // Unreadable certificates of the system are skipped.
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err(TrustError::System);
                }
            }
            Trust::Authorities(certificates) => {
                for certificate in certificates {
                    roots
                        .add(certificate.clone())
                        .map_err(|error| TrustError::Authority(error.to_string()))?;
                }
            }
        }
        Ok(Some(roots))
    }
}

/// rustls caches tickets of this number divided by eight servers, with eight tickets each: there is one server.
const TICKETS: usize = 8;

/// The same configuration with session tickets of its own, as each user has them.
pub(crate) fn with_own_tickets(config: &ClientConfig) -> ClientConfig {
    let mut own = config.clone();
    own.resumption = Resumption::in_memory_sessions(TICKETS);
    own
}

/// Accepts every certificate, but still checks signatures: the cost stays that of real verification.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
