//! gzip and zstd.

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

/// Compresses by the end of a file's name.
pub(super) fn compress(suffix: &str, data: &[u8]) -> Vec<u8> {
    match suffix {
        ".gz" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        ".zst" => zstd::encode_all(data, 1).unwrap(),
        _ => data.to_vec(),
    }
}

const SUFFIXES: [&str; 2] = [".gz", ".zst"];

#[tokio::test]
async fn several_members_are_one_file() {
    for suffix in SUFFIXES {
        let mut folder = Folder::new(FileFormat::Lines);
        let parts = [compress(suffix, b"1\n2"), compress(suffix, b""), compress(suffix, b"2\n3\n")];
        folder.write(&format!("in{suffix}"), parts.concat());
        assert_eq!(folder.read().await.unwrap(), ["1", "22", "3"], "{suffix}");
        assert!(folder.read().await.unwrap().is_empty(), "{suffix}");
    }
}

#[tokio::test]
async fn a_file_larger_than_many_blocks_comes_out_whole() {
    for suffix in SUFFIXES {
        let mut folder = Folder::new(FileFormat::Json);
        let lines: Vec<String> = (0..400_000).map(|number| format!("{{\"n\":{number}}}")).collect();
        folder.write(&format!("in{suffix}"), compress(suffix, lines.join("\n").as_bytes()));
        assert!(folder.read().await.unwrap() == lines, "{suffix}");
    }
}

#[tokio::test]
async fn a_truncated_file_is_a_coded_stop_at_every_length() {
    for suffix in SUFFIXES {
        let name = format!("in{suffix}");
        let whole = compress(suffix, b"1\n2\n3\n");
        for length in 0..whole.len() {
            let mut folder = Folder::new(FileFormat::Lines);
            folder.write(&name, &whole[..length]);
            assert_error(&folder.refused().await, codes::COMPRESSED_BROKEN, &[&name]);
        }
    }
}

#[tokio::test]
async fn a_damaged_file_is_a_coded_stop() {
    for suffix in SUFFIXES {
        let name = format!("in{suffix}");
        let mut folder = Folder::new(FileFormat::Lines);
        let text: String = (0..2000).map(|number| format!("line {number}\n")).collect();
        let mut bytes = compress(suffix, text.as_bytes());
        let middle = bytes.len() / 2;
        bytes.drain(middle..middle + 8);
        folder.write(&name, &bytes);
        assert_error(&folder.refused().await, codes::COMPRESSED_BROKEN, &[&name]);
        let mut folder = Folder::new(FileFormat::Lines);
        folder.write(&name, [compress(suffix, b"1\n"), b"rubbish".to_vec()].concat());
        assert_error(&folder.refused().await, codes::COMPRESSED_BROKEN, &[&name]);
    }
}

#[tokio::test]
async fn a_compressed_file_is_not_followed() {
    let mut folder = Folder::followed(FileFormat::Lines);
    folder.write("in.gz", compress(".gz", b"1\n"));
    assert_error(&folder.refused().await, codes::COMPRESSED_FOLLOW, &["in.gz"]);
}

#[tokio::test]
async fn a_compressed_file_that_was_replaced_half_read_is_a_coded_stop() {
    for suffix in SUFFIXES {
        let name = format!("in{suffix}");
        let mut folder = Folder::new(FileFormat::Lines);
        folder.limits.records = 1;
        folder.write(&name, compress(suffix, b"1\n2\n3\n"));
        let mut run = folder.start().await.unwrap();
        let split = run.source.discover(&folder.known).await.unwrap().remove(0);
        let mut reader = run.source.open(&split, None).await.unwrap();
        reader.read(&folder.limits).await.unwrap();
        folder.known.insert(split, reader.position());
        folder.write(&name, compress(suffix, b"4\n5\n6\n7\n8\n9\n"));
        assert_error(&folder.refused().await, codes::TRUNCATED, &[&name, "record 1"]);
    }
}
