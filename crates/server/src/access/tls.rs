use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use super::file_mark::{FileMark, Interval, read_file};
use super::settings::TlsFiles;
use crate::clock::Clock;

/// How often the files are looked at, when connections arrive.
const EVERY: Duration = Duration::from_secs(1);
/// A larger file isn't a certificate.
const LARGEST: u64 = 1 << 20;

/// The certificate of a server. New connections get a new one as soon as its files have changed.
pub(crate) struct TlsAccess {
    files: TlsFiles,
    current: RwLock<Arc<ServerConfig>>,
    seen: Mutex<FileMarks>,
    interval: Interval,
}

type FileMarks = [Option<FileMark>; 2];

impl TlsAccess {
    pub(super) fn open(files: TlsFiles, clock: Clock) -> Result<Self, String> {
        let seen = Mutex::new(marks(&files));
        let current = RwLock::new(Arc::new(load(&files)?));
        Ok(Self { files, current, seen, interval: Interval::new(EVERY, clock) })
    }

    /// Makes a connection secure.
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Returns whether it is time to look at the files, to one caller only.
    pub(crate) fn is_due(&self) -> bool {
        self.interval.is_due()
    }

    /// Reads the files again if one of them changed. It blocks.
    ///
    /// # Errors
    /// When they can't be used. The certificate that was in use stays.
    pub(crate) fn refresh(&self) -> Result<(), String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = marks(&self.files);
        if *seen == now {
            return Ok(());
        }
        *seen = now;
        let config =
            load(&self.files).map_err(|error| format!("{error}. The previous certificate stays in use"))?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        Ok(())
    }
}

fn marks(files: &TlsFiles) -> FileMarks {
    [&files.certificate, &files.key].map(|file| FileMark::of(file).ok().flatten())
}

/// Reads certificate and key. Errors never quote the files.
pub(super) fn load(files: &TlsFiles) -> Result<ServerConfig, String> {
    let TlsFiles { certificate, key } = files;
    let chain = read_certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| {
        format!(
            "{}: not an unencrypted private key in PEM; it must have a part that begins with -----BEGIN PRIVATE KEY-----",
            key.display()
        )
    })?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = config.with_no_client_auth().with_single_cert(chain, secret).map_err(|error| {
        format!(
            "{} and {}: {error}; the key must belong to the first certificate in the file",
            certificate.display(),
            key.display()
        )
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Reads the certificates of a file, at least one.
pub(super) fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(file)?).collect();
    certificates.ok().filter(|certificates| !certificates.is_empty()).ok_or_else(|| {
        format!(
            "{}: not a certificate in PEM; it must have a part that begins with -----BEGIN CERTIFICATE-----",
            file.display()
        )
    })
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    read_file(file, LARGEST).map_err(|error| format!("{}: {error}", file.display()))
}
