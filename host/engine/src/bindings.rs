//! A sink instance over any version of the contract. One file per version holds what is generated from the WIT, and the conversions between
//! it and the types of this host; this file picks.

mod since_v0_1_0;

use wasmtime::Store;
use wasmtime::component::InstancePre;
use weir_protocol::{Label, Transaction, Verdict};

use crate::model::{Batch, OpenRequest, Prepared, Profile, Rejection, Role};
use crate::store::State;

/// What a plugin says about itself, as it says it.
pub(crate) struct RawDescription {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) summary: String,
    pub(crate) documentation: String,
    pub(crate) config_schema: String,
    pub(crate) guarantee: crate::model::Guarantee,
    pub(crate) handle_formats: Vec<String>,
    pub(crate) needs: Vec<(String, String)>,
}

/// An error that a plugin answers with, as it says it.
pub(crate) struct RawError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) code: String,
    pub(crate) retry_after_ms: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    Unavailable,
    Refused,
    BadData,
    Conflict,
    Broken,
}

/// A trap outside, the plugin's own answer inside.
pub(crate) type Answer<T> = wasmtime::Result<Result<T, RawError>>;

/// The functions of one instance.
pub(crate) enum Guest {
    V0_1_0(since_v0_1_0::Guest),
}

/// Why an instance has no functions to call.
pub(crate) enum StartError {
    /// It could not be made.
    Instantiate(wasmtime::Error),
    /// It exports something else than the contract says.
    Shape(wasmtime::Error),
}

impl Guest {
    /// Makes an instance in a store.
    pub(crate) async fn start(store: &mut Store<State>, pre: &InstancePre<State>) -> Result<Self, StartError> {
        let instance = pre.instantiate_async(&mut *store).await.map_err(StartError::Instantiate)?;
        since_v0_1_0::Guest::new(store, &instance).map(Self::V0_1_0).map_err(StartError::Shape)
    }

    pub(crate) async fn describe(&self, store: &mut Store<State>) -> Answer<RawDescription> {
        match self {
            Self::V0_1_0(guest) => guest.describe(store).await,
        }
    }

    pub(crate) async fn open(&self, store: &mut Store<State>, request: &OpenRequest, role: Role, limit_ms: u32) -> Answer<Profile> {
        match self {
            Self::V0_1_0(guest) => guest.open(store, request, role, limit_ms).await,
        }
    }

    pub(crate) async fn begin(&self, store: &mut Store<State>, transaction: &Transaction) -> Answer<()> {
        match self {
            Self::V0_1_0(guest) => guest.begin(store, transaction).await,
        }
    }

    pub(crate) async fn invoke(&self, store: &mut Store<State>, label: &Label, batch: &Batch, profile: &Profile) -> Answer<Vec<Rejection>> {
        match self {
            Self::V0_1_0(guest) => guest.invoke(store, label, batch, profile).await,
        }
    }

    pub(crate) async fn precommit(&self, store: &mut Store<State>, label: &Label) -> Answer<Prepared> {
        match self {
            Self::V0_1_0(guest) => guest.precommit(store, label).await,
        }
    }

    pub(crate) async fn commit(&self, store: &mut Store<State>, transaction: &Transaction, handle: &[u8]) -> Answer<Verdict> {
        match self {
            Self::V0_1_0(guest) => guest.commit(store, transaction, handle).await,
        }
    }

    pub(crate) async fn abort(&self, store: &mut Store<State>, transaction: &Transaction) -> Answer<()> {
        match self {
            Self::V0_1_0(guest) => guest.abort(store, transaction).await,
        }
    }
}
