//! What all listeners share.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use tokio::sync::watch;

use super::hold::Holds;
use crate::clock::Clock;
use crate::error::EmulatorError;
use crate::faults::{Fault, FaultName, Faults};
use crate::options::{Options, RedirectTarget, Settings, User};
use crate::rows::RowStore;
use crate::transactions::{At, Journal, Manager, Refusal};
use crate::types::{Addresses, Traffic};

/// The emulator's state behind its listeners.
pub(crate) struct State {
    manager: Mutex<Manager>,
    settings: RwLock<Settings>,
    pub(crate) users: RwLock<Vec<User>>,
    pub(crate) store: Arc<RowStore>,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults,
    pub(crate) holds: Holds,
    traffic: watch::Sender<Traffic>,
    addresses: OnceLock<Addresses>,
    next_be: AtomicUsize,
    /// Keeps other emulators out of the data folder, until the last task of this one is gone.
    _lock: File,
}

impl State {
    /// Reads the data folder and rebuilds what it promises.
    pub(crate) fn open(lock: File, data: &Path, options: &Options) -> Result<Self, EmulatorError> {
        let store = Arc::new(RowStore::open(data, options.discard)?);
        let (journal, records) = Journal::open(data)?;
        let manager = Manager::replay(journal, records, store.clone(), &options.settings)?;
        let user = User { name: options.user.clone(), password: options.password.clone(), may_load: true };
        Ok(Self {
            clock: Clock::ahead_by(manager.clock_offset_ms()),
            manager: Mutex::new(manager),
            settings: RwLock::new(options.settings.clone()),
            users: RwLock::new(vec![user]),
            store,
            faults: Faults::default(),
            holds: Holds::default(),
            traffic: watch::Sender::new(Traffic::default()),
            addresses: OnceLock::new(),
            next_be: AtomicUsize::new(0),
            _lock: lock,
        })
    }

    /// Lets the transaction manager decide something at the current emulated time, after what is due by then. It may
    /// wait for the disk, so the runtime is told that this thread blocks.
    pub(crate) fn decide<T>(&self, decide: impl FnOnce(&mut Manager, At<'_>) -> T) -> T {
        tokio::task::block_in_place(|| {
            let settings = self.settings();
            let mut manager = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
            let at = At { now_ms: self.clock.now_ms(), settings: &settings };
            // A sweep fails only when the journal did, and then what follows is refused for the same reason.
            if let Err(error) = manager.sweep(at) {
                tracing::error!(?error, "cannot record what is due");
            }
            decide(&mut manager, at)
        })
    }

    /// Moves the clock and makes that durable.
    pub(crate) fn advance_clock(&self, by_ms: u64) -> Result<(), Refusal> {
        let offset_ms = self.clock.advance(by_ms);
        let moved = self.decide(|manager, _| manager.clock_moved(offset_ms));
        // Those who wait for something to become visible look again.
        self.traffic.send_modify(|_| ());
        moved
    }

    /// A copy of the current settings.
    pub(crate) fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_settings(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Counts something; whoever waits for a count is woken.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Traffic)) {
        self.traffic.send_modify(change);
    }

    pub(crate) fn traffic(&self) -> watch::Receiver<Traffic> {
        self.traffic.subscribe()
    }

    /// Asks whether a fault fires here for this label.
    pub(crate) fn fires(&self, name: FaultName, label: &str) -> Option<Fault> {
        let fault = self.faults.fire(name, label)?;
        self.count(|traffic| traffic.faults_fired += 1);
        Some(fault)
    }

    pub(crate) fn set_addresses(&self, addresses: Addresses) {
        self.addresses.get_or_init(|| addresses);
    }

    pub(crate) fn addresses(&self) -> Option<&Addresses> {
        self.addresses.get()
    }

    /// The `host:port` that the next redirect names, as the settings say.
    pub(crate) fn redirect_target(&self) -> String {
        match self.settings().redirect {
            RedirectTarget::RoundRobin => {
                let turn = self.next_be.fetch_add(1, Ordering::Relaxed);
                let count = self.addresses().map_or(0, |addresses| addresses.be.len());
                self.be_address(turn % count.max(1))
            }
            RedirectTarget::Backend(number) => self.be_address(number),
            RedirectTarget::Dead => dead_address(),
            RedirectTarget::Address(address) => address,
        }
    }

    /// The address of the BE with this number; a dead one if there is none.
    pub(crate) fn be_address(&self, number: usize) -> String {
        let address = self.addresses().and_then(|addresses| addresses.be.get(number));
        address.map_or_else(dead_address, SocketAddr::to_string)
    }
}

/// An address that refuses connections: nobody may listen on port 1 without being root and meaning it.
pub(crate) fn dead_address() -> String {
    "127.0.0.1:1".to_owned()
}
