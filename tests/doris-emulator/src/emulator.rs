//! An emulator in this process: its threads, listeners and data folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use crate::client::Client;
use crate::error::EmulatorError;
use crate::options::Options;
use crate::server::{Role, State, serve};
use crate::types::Addresses;

/// Threads that serve requests; more than the cores, since decisions wait for the disk.
const THREADS: usize = 4;
/// Longest wait for the threads at the end; only a disk that hangs takes it.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A running emulator. Dropping it closes its listeners and connections at once, like a crash; what was promised is on
/// disk, and an emulator started with the same folder goes on from there.
pub struct Emulator {
    addresses: Addresses,
    runtime: Option<Runtime>,
}

impl Emulator {
    /// Opens the data folder and the listeners, and serves them on threads of its own, so that it works in blocking
    /// tests and beside any async runtime. Blocks until the listeners accept.
    ///
    /// # Errors
    ///
    /// When the folder is in use, damaged or unreadable, or when an address cannot be listened on.
    pub fn start(options: Options) -> Result<Self, EmulatorError> {
        if options.fe.is_empty() {
            return Err(EmulatorError::NoListener { what: "FE" });
        }
        if options.be.is_empty() {
            return Err(EmulatorError::NoListener { what: "BE" });
        }
        std::fs::create_dir_all(&options.data).map_err(EmulatorError::file("create", &options.data))?;
        let lock = lock(&options.data)?;
        let state = Arc::new(State::open(lock, &options.data, &options)?);
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("doris-emulator").enable_all().build();
        let runtime = runtime.map_err(|source| EmulatorError::Threads { source })?;
        // Without waiting for anything async, so that this works inside of async code, too.
        let entered = runtime.enter();
        let addresses = listen(&state, &options)?;
        drop(entered);
        Ok(Self { addresses, runtime: Some(runtime) })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The first FE as a URL, `http://host:port`.
    pub fn fe_url(&self) -> String {
        self.addresses.fe.first().map(|address| format!("http://{address}")).unwrap_or_default()
    }

    /// A client of its control API.
    pub fn client(&self) -> Client {
        Client::new(self.addresses.control)
    }
}

impl Drop for Emulator {
    /// Waits until no thread writes to the data folder any more, so that the next emulator on it starts alone.
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // On a thread of its own this may wait inside of async code, too.
        let stop = std::thread::spawn(move || runtime.shutdown_timeout(STOP_TIMEOUT));
        if stop.join().is_err() {
            tracing::warn!("the emulator's threads did not end well");
        }
    }
}

fn lock(data: &Path) -> Result<File, EmulatorError> {
    let path = data.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(EmulatorError::file("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(EmulatorError::Locked { path: data.to_owned() }),
        Err(TryLockError::Error(source)) => Err(EmulatorError::File { action: "lock", path, source }),
    }
}

fn listen(state: &Arc<State>, options: &Options) -> Result<Addresses, EmulatorError> {
    let (mut listeners, mut addresses) =
        (Vec::new(), Addresses { fe: Vec::new(), follower_fe: Vec::new(), be: Vec::new(), control: options.control });
    for &address in &options.fe {
        let (listener, address) = bind(address)?;
        addresses.fe.push(address);
        listeners.push((listener, Role::Fe { follower: false }));
    }
    for &address in &options.follower_fe {
        let (listener, address) = bind(address)?;
        addresses.follower_fe.push(address);
        listeners.push((listener, Role::Fe { follower: true }));
    }
    for (number, &address) in options.be.iter().enumerate() {
        let (listener, address) = bind(address)?;
        addresses.be.push(address);
        listeners.push((listener, Role::Be { number }));
    }
    let (control, address) = bind(options.control)?;
    addresses.control = address;
    listeners.push((control, Role::Control));
    state.set_addresses(addresses.clone());
    for (listener, role) in listeners {
        tokio::spawn(serve(state.clone(), listener, role));
    }
    Ok(addresses)
}

fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), EmulatorError> {
    let open = || {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((TcpListener::from_std(listener)?, address))
    };
    open().map_err(|source| EmulatorError::Listen { address, source })
}
