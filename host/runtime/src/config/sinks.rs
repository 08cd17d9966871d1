//! One sink's keys held against its plugin: the config, the grants, the guarantee.

use std::collections::BTreeMap;
use std::path::PathBuf;

use weir_engine::{Folder, Grants, Guarantee, HostPort, Limits, Remedy};
use weir_protocol::Delivery;

use super::SinkConfig;
use super::catalog::{Catalog, PluginFacts};
use super::check::{Draft, keys, under};
use super::node::{Node, Step};
use super::raw;
use super::schema::{Owner, Schema};
use super::spelling::{list, nearest};
use crate::error::code;

/// Smallest `limits.memory`, in bytes: below it not even an empty plugin starts.
pub(crate) const MIN_MEMORY_BYTES: u64 = 1024 * 1024;
/// Longest `limits.call`, in milliseconds: what the contract's `call-limit-ms` has room for.
const MAX_CALL_MS: u128 = u32::MAX as u128;

/// Reads one sink. `delivery` is absent where it was found wrong.
pub(super) fn read(draft: &mut Draft, at: &[Step], delivery: Option<Delivery>, catalog: &dyn Catalog) -> Option<SinkConfig> {
    let limits = read_limits(draft, &under(at, "limits"));
    let grants = read_grants(draft, &under(at, "grant"));
    let at_plugin = under(at, "plugin");
    let plugin: String = draft.section(&at_plugin)?;
    let facts = find(draft, &at_plugin, &plugin, catalog)?;
    if let Some(grants) = &grants {
        refuse_missing_grants(draft, at, &plugin, facts, grants);
    }
    refuse_guarantee(draft, &at_plugin, &plugin, facts, delivery);
    let config_json = read_config(draft, &under(at, "config"), &plugin, facts);
    Some(SinkConfig { plugin, config_json: config_json?, grants: grants?, limits: limits? })
}

/// The plugin of that name.
fn find<'c>(draft: &mut Draft, at: &[Step], plugin: &str, catalog: &'c dyn Catalog) -> Option<&'c dyn PluginFacts> {
    match catalog.facts(plugin) {
        Some(Ok(facts)) => Some(facts),
        Some(Err(unusable)) => draft.refuse(at, unusable.code, format!("plugin {plugin} cannot be used: {}", unusable.message), &unusable.remedy),
        None => {
            let names = catalog.names();
            let help = match nearest(plugin, names.iter().map(String::as_str)) {
                Some(near) => format!("write `{near}`"),
                None if names.is_empty() => format!("there is none at all: put `{plugin}.wasm` there, or write where the plugins are: `plugins: PATH`"),
                None => format!("put `{plugin}.wasm` there, or use {}", list(names.iter().map(String::as_str))),
            };
            draft.refuse(at, code::CONFIG_PLUGIN_MISSING, format!("there is no plugin `{plugin}` in the plugin folder"), &help)
        }
    }
}

/// The plugin's config as JSON, if its schema accepts it.
fn read_config(draft: &mut Draft, at: &[Step], plugin: &str, facts: &dyn PluginFacts) -> Option<String> {
    let schema = match Schema::new(facts.config_schema()) {
        Ok(schema) => schema,
        Err(error) => {
            let message = format!("the config schema of plugin {plugin} is not a JSON Schema: {error}");
            let at_plugin = under(at.get(..at.len().saturating_sub(1)).unwrap_or_default(), "plugin");
            return draft.refuse(&at_plugin, code::CONFIG_PLUGIN_BROKEN, message, "report it to the plugin's author");
        }
    };
    let found = schema.check(Owner::Plugin(plugin), &draft.text, &draft.root, at);
    draft.errors.extend(found);
    if !draft.clean(at) {
        return None;
    }
    match draft.node(at) {
        Some(node) => Some(node.to_json().to_string()),
        None => Some("{}".to_owned()),
    }
}

fn read_limits(draft: &mut Draft, at: &[Step]) -> Option<Limits> {
    let raw: raw::SinkLimits = draft.section_or_default(at)?;
    let mut limits = Limits::default();
    if let Some(memory) = raw.memory {
        let bytes = usize::try_from(memory.0).ok().filter(|_| memory.0 >= MIN_MEMORY_BYTES);
        let Some(bytes) = bytes else {
            return draft.refuse(&under(at, "memory"), code::CONFIG_BAD_VALUE, "no plugin can run in so little memory".to_owned(), "write at least `1MiB`");
        };
        limits.memory_bytes = bytes;
    }
    if let Some(call) = raw.call {
        if call.0.is_zero() || call.0.as_millis() > MAX_CALL_MS {
            return draft.refuse(&under(at, "call"), code::CONFIG_BAD_VALUE, "no call can end within that".to_owned(), "write a time from `1ms` to `49d`");
        }
        limits.call = call.0;
    }
    Some(limits)
}

fn read_grants(draft: &mut Draft, at: &[Step]) -> Option<Grants> {
    let raw: raw::Grant = draft.section_or_default(at)?;
    let mut grants = Grants { env: raw.env, ..Grants::default() };
    for (index, text) in raw.http.iter().enumerate() {
        match text.parse::<HostPort>() {
            Ok(host) => grants.http.push(host),
            Err(_) => {
                let mut at = under(at, "http");
                at.push(Step::Item(index));
                let shown = draft.node(&at).map(|node| node.shown(&draft.text)).unwrap_or_default();
                let message = format!("{shown} is not a host and a port");
                draft.refuse::<()>(&at, code::CONFIG_BAD_GRANT, message, "write `host:port` without scheme and path, such as `127.0.0.1:8030`");
            }
        }
    }
    for (guest, folder) in raw.folders {
        grants.folders.extend(read_folder(draft, &under(&under(at, "folders"), &guest), guest, folder));
    }
    for name in grants.env.keys().filter(|name| name.is_empty() || name.contains(['=', '\0'])) {
        draft.refuse::<()>(&under(&under(at, "env"), name), code::CONFIG_BAD_GRANT, format!("`{name}` is not a variable's name"), "write `NAME: value`");
    }
    if let Some(path) = raw.ca_file {
        let path = draft.folder.join(path);
        if !path.is_file() {
            let message = format!("the file {} does not exist", path.display());
            return draft.refuse(&under(at, "ca_file"), code::CONFIG_PATH_MISSING, message, "name a file of certificates in PEM form");
        }
        grants.ca_file = Some(path);
    }
    draft.clean(at).then_some(grants)
}

/// A folder that is there, under a path that a plugin can use.
fn read_folder(draft: &mut Draft, at: &[Step], guest: String, folder: raw::FolderGrant) -> Option<Folder> {
    let (path, write, at_path) = match folder {
        raw::FolderGrant::Path(path) => (path, true, at.to_vec()),
        raw::FolderGrant::Full(access) => (access.path, access.write, under(at, "path")),
    };
    if !guest.starts_with('/') || guest.split('/').any(|part| part == ".." || part == ".") {
        let message = format!("`{guest}` is not a path that a plugin can see a folder under");
        return draft.refuse(at, code::CONFIG_BAD_GRANT, message, "write the path that the plugin sees, from `/`, and behind it the folder of this machine: `/out: ./out`");
    }
    let host: PathBuf = draft.folder.join(path);
    if !host.is_dir() {
        let message = format!("the folder {} does not exist", host.display());
        return draft.refuse(&at_path, code::CONFIG_PATH_MISSING, message, "create it; none is made, since a missing folder is most often a missing mount");
    }
    Some(Folder { guest, host, write })
}

fn refuse_missing_grants(draft: &mut Draft, at: &[Step], plugin: &str, facts: &dyn PluginFacts, grants: &Grants) {
    for missing in facts.missing_grants(grants).into_iter().filter(|missing| missing.declared) {
        let why = missing.why.filter(|why| !why.is_empty()).map(|why| format!(" ({why})")).unwrap_or_default();
        let message = format!("plugin {plugin} needs {}{why}, which this sink does not grant", missing.interface);
        let help = match &missing.remedy {
            Remedy::Add(line) => format!("add {line}"),
            Remedy::NotSupported => "this version cannot grant it; use another version of the plugin".to_owned(),
        };
        let at = if draft.node(&under(at, "grant")).is_some() { under(at, "grant") } else { at.to_vec() };
        draft.refuse::<()>(&at, code::CONFIG_GRANT_MISSING, message, &help);
    }
}

fn refuse_guarantee(draft: &mut Draft, at: &[Step], plugin: &str, facts: &dyn PluginFacts, delivery: Option<Delivery>) {
    let enough = match (delivery, facts.guarantee()) {
        (None, _) => true,
        (Some(Delivery::ExactlyOnce), Guarantee::ExactlyOnce | Guarantee::Idempotent) => true,
        (Some(Delivery::ExactlyOnce), Guarantee::AtLeastOnce) => false,
    };
    if !enough {
        let message = format!("plugin {plugin} gives at-least-once, and the pipeline promises exactly-once");
        draft.refuse::<()>(at, code::CONFIG_GUARANTEE, message, "use a plugin that gives exactly-once; this version has no other delivery");
    }
}

/// Refuses a sink that is another one of its pipeline under a second name: its target would show every record twice.
pub(super) fn refuse_twins(draft: &mut Draft, at: &[Step]) {
    let identity = |sink: &Node| ["plugin", "config", "grant"].map(|key| sink.get(key).map(|node| node.to_json().to_string()).unwrap_or_default());
    let mut seen: BTreeMap<[String; 3], String> = BTreeMap::new();
    for name in keys(draft.node(at)) {
        let at_sink = under(at, &name);
        let Some(identity) = draft.node(&at_sink).map(identity) else { continue };
        if let Some(twin) = seen.get(&identity) {
            let message = format!("sink {name} is sink {twin} again: same plugin, config and grants, so each record would be there twice");
            draft.refuse::<()>(&at_sink, code::CONFIG_SAME_SINK, message, "remove one of the two, or let them write to different places");
        } else {
            seen.insert(identity, name);
        }
    }
}
