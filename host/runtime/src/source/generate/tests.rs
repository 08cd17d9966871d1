//! Generated orders.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const LIMITS: BatchLimits = BatchLimits { bytes: 1024 * 1024, records: 65_536, ends: false };

fn config(records: u64, splits: u32, format: GenerateFormat) -> GenerateSourceConfig {
    GenerateSourceConfig { splits, ..GenerateSourceConfig::new(Some(records), format) }
}

/// All records by split and number, and the positions at the ends.
async fn read(config: &GenerateSourceConfig, known: &Positions, limits: &BatchLimits) -> (BTreeMap<(SplitId, u64), String>, Positions) {
    let mut source = GenerateSource::new(config.clone());
    source.prepare().await.unwrap();
    let mut records = BTreeMap::new();
    let mut positions = known.clone();
    for split in source.discover(known).await.unwrap() {
        let mut reader = source.open(&split, known.get(&split)).await.unwrap();
        while let Read::Batch(batch) = reader.read(limits).await.unwrap() {
            assert!(batch.bytes.len() <= limits.bytes && batch.count <= limits.records);
            let text = std::str::from_utf8(&batch.bytes).unwrap();
            assert!(text.ends_with('\n') && text.lines().count() == batch.count as usize);
            assert_eq!(
                batch.ends.as_ref().map(|ends| ends.len()),
                (limits.ends || config.format == GenerateFormat::Csv).then_some(batch.count as usize)
            );
            for (line, number) in text.lines().zip(batch.first..) {
                records.insert((split.clone(), number), line.to_owned());
            }
        }
        positions.insert(split, reader.position());
    }
    (records, positions)
}

#[tokio::test]
async fn each_order_is_there_once_whatever_the_splits_and_the_same_every_time() {
    let mut before: Option<BTreeSet<String>> = None;
    for splits in [1, 3, 7] {
        let (records, positions) = read(&config(1000, splits, GenerateFormat::Json), &Positions::new(), &LIMITS).await;
        assert_eq!(positions.len(), splits as usize);
        let orders: BTreeSet<String> = records.into_values().collect();
        let ids: BTreeSet<u64> =
            orders.iter().map(|order| serde_json::from_str::<serde_json::Value>(order).unwrap()["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, (0..1000).collect());
        assert!(before.replace(orders.clone()).is_none_or(|before| before == orders));
    }
}

#[tokio::test]
async fn every_position_leads_to_the_same_rest() {
    for format in [GenerateFormat::Json, GenerateFormat::Csv] {
        let config = config(100, 2, format);
        let (all, end) = read(&config, &Positions::new(), &LIMITS).await;
        let small = BatchLimits { bytes: 300, records: 7, ends: true };
        let source = GenerateSource::new(config.clone());
        for split in end.keys() {
            let mut reader = source.open(split, None).await.unwrap();
            while let Read::Batch(_) = reader.read(&small).await.unwrap() {
                let known = Positions::from([(split.clone(), reader.position())]);
                let (rest, _) = read(&config, &known, &small).await;
                let expected = all.iter().filter(|((of, number), _)| of != split || *number >= reader.next_record());
                assert!(rest.iter().eq(expected));
            }
        }
        assert!(read(&config, &end, &LIMITS).await.0.is_empty());
    }
}

#[tokio::test]
async fn orders_look_like_this() {
    let (json, _) = read(&config(2, 1, GenerateFormat::Json), &Positions::new(), &LIMITS).await;
    let (csv, _) = read(&config(2, 1, GenerateFormat::Csv), &Positions::new(), &LIMITS).await;
    for (json, csv) in json.values().zip(csv.values()) {
        let order: serde_json::Value = serde_json::from_str(json).unwrap();
        let fields: Vec<String> = COLUMNS.iter().map(|column| order[column].to_string().trim_matches('"').to_owned()).collect();
        // A price ends in two digits, which a JSON number does not keep.
        let parsed: Vec<f64> = csv.split(',').filter_map(|field| field.parse().ok()).collect();
        assert_eq!(parsed, [0, 3, 4].map(|index| fields[index].parse::<f64>().unwrap()));
        assert_eq!(csv.split(',').count(), COLUMNS.len());
        assert_eq!(csv.split(',').next_back().unwrap(), fields[5]);
    }
    assert_eq!(json.values().next().unwrap(), include_str!("first-order.json").trim_end(), "for ever");
}

#[test]
fn times_follow_the_calendar() {
    let mut orders = Orders::new(0, GenerateFormat::Csv);
    let mut time = |id: u64| {
        let mut line = Vec::new();
        orders.write(id, &mut line);
        assert!(line.len() <= orders::MAX_ORDER_BYTES);
        String::from_utf8(line).unwrap().trim_end().rsplit(',').next().unwrap().to_owned()
    };
    assert_eq!(time(0), "2024-01-01 00:00:00");
    assert_eq!(time(86_399), "2024-01-01 23:59:59");
    assert_eq!(time(59 * 86_400), "2024-02-29 00:00:00");
    assert_eq!(time(60 * 86_400 + 3661), "2024-03-01 01:01:01");
    assert_eq!(time(366 * 86_400), "2025-01-01 00:00:00");
    assert_eq!(time((365 * 76 + 19) * 86_400), "2100-01-01 00:00:00");
    assert_eq!(time((365 * 76 + 19 + 59) * 86_400), "2100-03-01 00:00:00");
    assert_eq!(time(u64::MAX).len(), 19);
}

#[tokio::test]
async fn another_seed_gives_other_orders() {
    let one = read(&config(10, 1, GenerateFormat::Csv), &Positions::new(), &LIMITS).await;
    let other = read(&GenerateSourceConfig { seed: 1, ..config(10, 1, GenerateFormat::Csv) }, &Positions::new(), &LIMITS).await;
    assert_ne!(one.0, other.0);
    assert_ne!(
        GenerateSource::new(config(1, 1, GenerateFormat::Csv)).identity(),
        GenerateSource::new(config(1, 2, GenerateFormat::Csv)).identity()
    );
}

#[tokio::test]
async fn a_rate_is_kept() {
    let config = GenerateSourceConfig { rate: Some(Count(2000)), ..config(600, 2, GenerateFormat::Csv) };
    let mut source = GenerateSource::new(config);
    let started = tokio::time::Instant::now();
    let mut records = 0;
    let mut readers = Vec::new();
    for split in source.discover(&Positions::new()).await.unwrap() {
        readers.push(source.open(&split, None).await.unwrap());
    }
    while records < 600 {
        for reader in &mut readers {
            if let Read::Batch(batch) = reader.read(&LIMITS).await.unwrap() {
                records += batch.count;
            }
        }
    }
    let took = started.elapsed().as_secs_f64();
    assert!((0.28..30.0).contains(&took), "{took}");
}

#[tokio::test]
async fn a_position_of_another_source_is_refused() {
    for split in ["generate:0/2", "generate:1/1", "file:1:2:0011223344556677"] {
        let known = Positions::from([(SplitId::try_from(split.to_owned()).unwrap(), Position(b"5".to_vec()))]);
        let error = GenerateSource::new(config(10, 1, GenerateFormat::Csv)).discover(&known).await.unwrap_err();
        assert_eq!(error.code, codes::BAD_POSITION.text);
    }
    let known = Positions::from([(SplitId::try_from("generate:0/1".to_owned()).unwrap(), Position(b"x".to_vec()))]);
    assert!(GenerateSource::new(config(10, 1, GenerateFormat::Csv)).discover(&known).await.is_err());
}
