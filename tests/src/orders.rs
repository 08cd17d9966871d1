//! The orders that the source `generate` makes, read from the source itself without a host.

use weir::source::generate::{GenerateFormat, GenerateSource, GenerateSourceConfig};
use weir::source::{BatchLimits, Read, Source};

/// Hands over each of the first `records` orders as a JSON line without its line feed.
pub async fn each(records: u64, mut take: impl FnMut(&[u8])) {
    let mut source = GenerateSource::new(GenerateSourceConfig::new(Some(records), GenerateFormat::Json));
    source.prepare().await.unwrap();
    let limits = BatchLimits { bytes: 1 << 20, records: 65_536, ends: false };
    for split in source.discover(&weir_protocol::Positions::new()).await.unwrap() {
        let mut reader = source.open(&split, None).await.unwrap();
        while let Read::Batch(batch) = reader.read(&limits).await.unwrap() {
            batch.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).for_each(&mut take);
        }
    }
}

/// The first `records` orders, each with its line feed: what a file of them holds.
pub async fn lines(records: u64) -> Vec<u8> {
    let mut text = Vec::new();
    each(records, |line| {
        text.extend_from_slice(line);
        text.push(b'\n');
    })
    .await;
    text
}
