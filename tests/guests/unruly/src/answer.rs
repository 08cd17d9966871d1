//! Answers that break the contract, or that a host has to be ready for.

use contract::types::{Prepared, Profile, RecordBatch, Rejection, Verdict};

use crate::config::{Abuse, Config};

pub(crate) fn profile(mut profile: Profile, abuse: Option<Abuse>, config: &Config) -> Profile {
    if let Some(Abuse::HugeTarget) = abuse {
        profile.target = "t".repeat(size(Abuse::HugeTarget, config));
    }
    profile
}

/// How many records of the batch are taken. Only `reject-last` keeps the contract; the other rejections lie about what was taken.
pub(crate) fn taken(abuse: Option<Abuse>, batch: &RecordBatch) -> u32 {
    batch.count - u32::from(abuse == Some(Abuse::RejectLast))
}

pub(crate) fn rejections(abuse: Option<Abuse>, batch: &RecordBatch, config: &Config) -> Vec<Rejection> {
    let rejection = |index| Rejection { index, reason: "it was asked to reject".to_owned() };
    match abuse {
        Some(Abuse::RejectLast) => vec![rejection(batch.count - 1)],
        Some(Abuse::RejectTwice) => vec![rejection(0), rejection(0)],
        Some(Abuse::RejectOutOfRange) => vec![rejection(batch.count)],
        Some(Abuse::HugeReasons) => {
            let reason = "r".repeat(size(Abuse::HugeReasons, config) / batch.count.max(1) as usize);
            (0..batch.count).map(|index| Rejection { index, reason: reason.clone() }).collect()
        }
        _ => Vec::new(),
    }
}

pub(crate) fn prepared(mut prepared: Prepared, abuse: Option<Abuse>, config: &Config) -> Prepared {
    match abuse {
        Some(Abuse::HugeHandle) => prepared.handle = vec![b'h'; size(Abuse::HugeHandle, config)],
        Some(Abuse::WrongRecords) => prepared.records = Some(prepared.records.map_or(0, |records| records.wrapping_add(1))),
        _ => {}
    }
    prepared
}

/// `None`: commit as it should be. Otherwise nothing is committed, whatever the answer says.
pub(crate) fn verdict(abuse: Option<Abuse>, config: &Config) -> Option<Verdict> {
    (abuse == Some(Abuse::Verdict)).then(|| config.verdict())
}

fn size(abuse: Abuse, config: &Config) -> usize {
    config.bytes.unwrap_or(abuse.default_bytes())
}
