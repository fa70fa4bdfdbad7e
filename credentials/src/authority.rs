//! A private certificate authority, for operators without a certificate that viewers trust.

use chrono::{DateTime, Datelike, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

const AUTHORITY_YEARS: i32 = 10;
/// Validity of a signing certificate.
const LEAF_YEARS: i32 = 2;

/// A private certificate authority.
pub struct Authority {
    /// PEM.
    pub certificate: String,
    /// PEM (PKCS #8). Needed only to issue another leaf.
    pub key: String,
}

#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("making a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// A certificate that may sign Content Credentials, with its key.
pub struct Leaf {
    /// PEM: the leaf, then the authority.
    pub chain: String,
    /// PEM (PKCS #8).
    pub key: String,
}

impl Authority {
    /// Makes an authority for `organization`.
    ///
    /// # Errors
    /// If a certificate cannot contain the name.
    pub fn new(organization: &str, now: DateTime<Utc>) -> Result<Self, AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = named(organization, "Retouch private authority")?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        valid_for(&mut params, AUTHORITY_YEARS, now);
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, key: key.serialize_pem() })
    }

    /// Issues a signing certificate. To rotate keys, issue another.
    ///
    /// # Errors
    /// If the authority's certificate or key is damaged.
    pub fn issue(&self, organization: &str, now: DateTime<Utc>) -> Result<Leaf, AuthorityError> {
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, KeyPair::from_pem(&self.key)?)?;
        let key = KeyPair::generate()?;
        let mut params = named(organization, "Retouch")?;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // The purpose that the C2PA accepts from any authority (specification 2.2, 14.5.1).
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection];
        params.use_authority_key_identifier_extension = true;
        valid_for(&mut params, LEAF_YEARS, now);
        let leaf = params.signed_by(&key, &issuer)?.pem();
        Ok(Leaf { chain: format!("{leaf}{}", self.certificate), key: key.serialize_pem() })
    }
}

fn named(organization: &str, common_name: &str) -> Result<CertificateParams, AuthorityError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params)
}

fn valid_for(params: &mut CertificateParams, years: i32, now: DateTime<Utc>) {
    // Clocks differ, and February may have no 29th day in the last year.
    let yesterday = now - chrono::Duration::days(1);
    let day = yesterday.day().min(28) as u8;
    let month = yesterday.month() as u8;
    params.not_before = date_time_ymd(yesterday.year(), month, day);
    params.not_after = date_time_ymd(yesterday.year() + years, month, day);
}
