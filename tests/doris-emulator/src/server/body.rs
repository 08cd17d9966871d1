//! Bodies of answers, and bodies of loads as they stream in.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

/// Bytes read at once from a held body.
const CHUNK_BYTES: usize = 256 << 10;

/// The body type of every answer.
pub(crate) type Body = BoxBody<Bytes, io::Error>;

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the emulator drops this connection")]
pub(crate) struct Dropped;

/// An answer, or none.
pub(crate) type Answer = Result<Response<Body>, Dropped>;

/// A body that is all there.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}

/// An answer with a status and a body of a type.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(whole(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A BE's answer: HTTP 200, and compressed when the client takes that.
pub(crate) fn be_answer(text: String, gzip: bool) -> Response<Body> {
    const TYPE: &str = "text/html";
    let compressed = || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish())
    };
    match gzip.then(compressed) {
        Some(Ok(bytes)) => {
            let mut response = answer(StatusCode::OK, TYPE, bytes);
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
        _ => answer(StatusCode::OK, TYPE, text),
    }
}

/// Where a load's body comes from.
pub(crate) enum Source {
    /// From the wire. The first read lets the client go on, if it waits to be told.
    Wire(Incoming),
    /// From the file in which a held body was gathered.
    Held(HeldBody),
}

/// A gathered body; its file goes when this does.
pub(crate) struct HeldBody {
    path: PathBuf,
    reader: BufReader<File>,
    broken: bool,
}

/// The body ended before its end.
#[derive(Debug)]
pub(crate) struct Broken;

impl Source {
    /// The next bytes; `None` after a complete body.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        match self {
            Self::Wire(incoming) => loop {
                match incoming.frame().await {
                    None => return Ok(None),
                    Some(Err(_)) => return Err(Broken),
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            return Ok(Some(data));
                        }
                    }
                }
            },
            Self::Held(held) => {
                let mut chunk = Vec::with_capacity(CHUNK_BYTES);
                let read = (&mut held.reader).take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
                match read {
                    Ok(0) if held.broken => Err(Broken),
                    Ok(0) => Ok(None),
                    Ok(_) => Ok(Some(chunk.into())),
                    Err(_) => Err(Broken),
                }
            }
        }
    }

    /// Gathers the rest of the body in a file. Returns it with its size, and whether it is complete.
    pub(crate) async fn gather(mut self, path: &Path) -> io::Result<(Self, u64, bool)> {
        let mut file = io::BufWriter::new(File::create(path)?);
        let (mut size, mut broken) = (0_u64, false);
        loop {
            match self.next().await {
                Ok(Some(chunk)) => {
                    size += chunk.len() as u64;
                    file.write_all(&chunk)?;
                }
                Ok(None) => break,
                Err(Broken) => {
                    broken = true;
                    break;
                }
            }
        }
        file.flush()?;
        let reader = BufReader::new(File::open(path)?);
        Ok((Self::Held(HeldBody { path: path.to_owned(), reader, broken }), size, !broken))
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        // What stays is removed at the next start.
        std::fs::remove_file(&self.path).ok();
    }
}
