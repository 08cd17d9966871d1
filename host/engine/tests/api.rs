//! What callers rely on besides the behaviour: everything can move between threads, and every code says what it means and what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;

use weir_engine::{Batch, Code, Committer, Engine, Grants, Limits, OpenRequest, OpenWriter, Plugin, Writer};
use weir_protocol::{AbortPermit, CommitPermit, Transaction};

fn send<T: Send>(value: T) -> T {
    value
}

#[allow(dead_code)] // compiling it is the test
async fn futures_can_be_spawned(
    plugin: &Plugin,
    request: &OpenRequest,
    transaction: &Transaction,
    batch: &Batch,
    commit: CommitPermit,
    abort: &AbortPermit,
) {
    let (grants, limits) = (Grants::default(), Limits::default());
    send(plugin.probe(request, &grants, &limits)).await.unwrap();
    let writer = send(plugin.open_writer(request, &grants, &limits)).await.unwrap();
    let mut open = send(writer.begin(transaction)).await.unwrap();
    send(open.invoke(batch)).await.unwrap();
    let (writer, _) = send(open.precommit()).await.unwrap();
    send(writer.close()).await.unwrap();
    let mut committer = send(plugin.open_committer(request, &grants, &limits)).await.unwrap();
    send(committer.commit(commit)).await.unwrap();
    send(committer.abort(abort)).await.unwrap();
}

#[test]
fn everything_can_move_between_threads() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<(Engine, Plugin, Writer, OpenWriter, Committer)>();
    is_sync::<(Engine, Plugin)>();
}

#[test]
fn every_code_is_one_of_a_kind_and_says_what_to_do() {
    let mut seen = HashSet::new();
    for code in Code::ALL {
        let text = code.as_str();
        assert!(seen.insert(text), "{text} is there twice");
        assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{text}");
        for sentence in [code.meaning(), code.remedy()] {
            assert!(sentence.ends_with('.') && sentence.len() > 10, "{text}: {sentence}");
        }
    }
}
