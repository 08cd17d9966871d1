//! What one instance owns on the host's side, and what it may take.

use wasmtime::component::ResourceTable;
use wasmtime::{ResourceLimiter, Store};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use std::sync::Arc;

use crate::capabilities::Grants;
use crate::code::Code;
use crate::imports::http::{Client, Hooks};
use crate::imports::log::Log;
use crate::limits::{MAX_CORE_ITEMS, MAX_RANDOM_BYTES, MAX_RESOURCES, MAX_TABLE_ELEMENTS, MAX_TRANSFER_BYTES};

/// The data of a store.
pub(crate) struct State {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    hooks: Hooks,
    table: ResourceTable,
    limiter: Limiter,
}

/// Makes the store of an instance: what is granted, and the limits. The error is a message with its code.
pub(crate) fn new_store(
    engine: &wasmtime::Engine,
    grants: &Grants,
    memory_bytes: usize,
    log: &Arc<Log>,
    client: &Arc<Client>,
) -> Result<Store<State>, (Code, String)> {
    let mut table = ResourceTable::new();
    table.set_max_capacity(MAX_RESOURCES);
    let state = State {
        wasi: wasi(grants, log)?,
        http: WasiHttpCtx::new(),
        hooks: Hooks(client.clone()),
        table,
        limiter: Limiter { memory_limit: memory_bytes, memory: 0, table_elements: 0 },
    };
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_hostcall_fuel(MAX_TRANSFER_BYTES);
    store.set_max_component_handles(MAX_RESOURCES);
    // Gives the thread back at every tick and goes on: what ends a call is its time-out, which waits in the host are subject to as well.
    store.set_epoch_deadline(1);
    store.epoch_deadline_async_yield_and_update(1);
    Ok(store)
}

fn wasi(grants: &Grants, log: &Arc<Log>) -> Result<WasiCtx, (Code, String)> {
    let mut wasi = WasiCtx::builder();
    wasi.stdout(log.stdout()).stderr(log.stderr());
    wasi.max_random_size(MAX_RANDOM_BYTES);
    wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    for (name, value) in &grants.env {
        wasi.env(name, value);
    }
    for folder in &grants.folders {
        let perms = if folder.write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
        wasi.preopened_dir(&folder.host, &folder.guest, perms).map_err(|error| {
            let message = format!("the folder {} granted as `{}` cannot be opened: {error:#}", folder.host.display(), folder.guest);
            (Code::GrantFolder, message)
        })?;
    }
    Ok(wasi.build())
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.hooks, table: &mut self.table, ctx: &mut self.http }
    }
}

/// Counts memory and tables over all core instances of the component, and traps on growth beyond the limit, because a plugin that is told
/// "no" usually ends in a crash that says nothing.
#[derive(Debug)]
struct Limiter {
    memory_limit: usize,
    memory: usize,
    table_elements: usize,
}

/// Growth that was refused. It is the cause of the trap.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum GrowthRefused {
    #[error(
        "it asked for {wanted_mib} MiB of memory and may have {limit_mib} MiB; raise `limits: {{ memory: ... }}` of the sink if it needs more"
    )]
    Memory { wanted_mib: usize, limit_mib: usize },
    #[error("it asked for tables of {wanted} elements and may have {MAX_TABLE_ELEMENTS}")]
    Table { wanted: usize },
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = self.memory.saturating_add(desired.saturating_sub(current));
        if wanted > self.memory_limit {
            let refused = GrowthRefused::Memory { wanted_mib: wanted.div_ceil(1 << 20), limit_mib: self.memory_limit >> 20 };
            return Err(refused.into());
        }
        self.memory = wanted;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = self.table_elements.saturating_add(desired.saturating_sub(current));
        if wanted > MAX_TABLE_ELEMENTS {
            return Err(GrowthRefused::Table { wanted }.into());
        }
        self.table_elements = wanted;
        Ok(true)
    }

    fn instances(&self) -> usize {
        MAX_CORE_ITEMS
    }

    fn tables(&self) -> usize {
        MAX_CORE_ITEMS
    }

    fn memories(&self) -> usize {
        MAX_CORE_ITEMS
    }
}
