//! Certificates of the laboratory: an authority of its own, made for one scenario and never stored, and chains of a given size.

use std::fmt;

use base64::Engine as _;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, IsCa, Issuer, KeyPair, PublicKeyData,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

/// An authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    fingerprint: [u8; 32],
}

/// A server's certificates and its key.
pub(crate) struct Identity {
    /// The server's first.
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// A server's certificates and its key, as text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PemFiles {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl fmt::Debug for PemFiles {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PemFiles").finish_non_exhaustive()
    }
}

/// Bytes of an extension around its contents, and of the lengths that grow with it.
const EXTENSION_BYTES: usize = 24;

/// Object identifier of the padding, of the arc for examples (`2.999`).
const PADDING: [u64; 3] = [2, 999, 1];

impl Authority {
    /// A new authority.
    pub(crate) fn new() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Roundtrip laboratory");
        let certificate = params.self_signed(&key)?.der().clone();
        let fingerprint = Sha256::digest(key.subject_public_key_info()).into();
        Ok(Self { issuer: Issuer::new(params, key), certificate, fingerprint })
    }

    /// SHA-256 of its public key's information, as `--ignore-certificate-errors-spki-list` takes it in base64.
    pub(crate) const fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// Its certificate, as programs read it from a file (PEM, RFC 7468).
    pub(crate) fn pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    /// Certificates for these names, of this size together, if that suffices.
    pub(crate) fn identity(&self, names: &[String], chain_bytes: usize) -> Result<Identity, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "Roundtrip server");
        let least = self.certificate.len() + params.signed_by(&key, &self.issuer)?.der().len();
        if let Some(padding) = chain_bytes.checked_sub(least + EXTENSION_BYTES) {
            params.custom_extensions.push(CustomExtension::from_oid_content(&PADDING, vec![0; padding]));
        }
        let own = params.signed_by(&key, &self.issuer)?.der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|_| rcgen::Error::RemoteKeyError)?;
        Ok(Identity { chain: vec![own, self.certificate.clone()], key })
    }

    #[cfg(test)]
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }
}

impl Identity {
    /// The certificates, the server's first, and the key, as programs read them from files.
    pub(crate) fn pem(&self) -> PemFiles {
        let chain = self.chain.iter().map(|certificate| pem("CERTIFICATE", certificate)).collect();
        PemFiles { chain, key: pem("PRIVATE KEY", self.key.secret_der()) }
    }
}

/// Text with a label (RFC 7468, section 2): base64 in lines of 64 characters.
fn pem(label: &str, contents: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(contents);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned() + "\n");
    format!("-----BEGIN {label}-----\n{}-----END {label}-----\n", lines.collect::<String>())
}

impl fmt::Debug for Authority {
    /// Without its key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_short_lines_between_their_labels() {
        let authority = Authority::new().unwrap();
        let files = authority.identity(&["a.example".to_owned()], 3_000).unwrap().pem();
        assert_eq!(files.chain.matches("-----BEGIN CERTIFICATE-----\n").count(), 2);
        assert!(files.chain.ends_with(&authority.pem()), "the authority's own comes last");
        assert!(files.key.starts_with("-----BEGIN PRIVATE KEY-----\n"));
        assert!(files.chain.lines().chain(files.key.lines()).all(|line| (1..=64).contains(&line.len())));
    }

    #[test]
    fn chains_have_their_size_within_a_few_bytes() {
        let authority = Authority::new().unwrap();
        for size in [2_000, 4_032, 9_000_usize] {
            let identity = authority.identity(&["a.example".to_owned()], size).unwrap();
            let bytes: usize = identity.chain.iter().map(|certificate| certificate.len()).sum();
            assert!(bytes.abs_diff(size) <= 16, "{bytes} for {size}");
        }
    }
}
