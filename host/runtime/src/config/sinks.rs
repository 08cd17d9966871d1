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
use super::values::{Size, Time};
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
        Some(Err(unusable)) => {
            draft.refuse(at, unusable.code, format!("plugin {plugin} cannot be used: {}", unusable.message), &unusable.remedy)
        }
        None => {
            let names = catalog.names();
            let shown = draft.node(at).map(|node| node.shown(&draft.text)).unwrap_or_default();
            let help = match nearest(plugin, names.iter().map(String::as_str)) {
                Some(near) => format!("write `{near}`"),
                None if names.is_empty() => {
                    "there is none at all: put its `.wasm` file there, or write where the plugins are: `plugins: PATH`".to_owned()
                }
                None => format!("put its `.wasm` file there, or use {}", list(names.iter().map(String::as_str))),
            };
            draft.refuse(at, code::CONFIG_PLUGIN_MISSING, format!("there is no plugin {shown} in the plugin folder"), &help)
        }
    }
}

/// The plugin's config as JSON, if its schema accepts it.
fn read_config(draft: &mut Draft, at: &[Step], plugin: &str, facts: &dyn PluginFacts) -> Option<String> {
    if !draft.node(at).is_none_or(Node::is_map) {
        return None; // reported by the file's own schema
    }
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
    let mut limits = Limits::default();
    let memory: Option<Option<Size>> = draft.field(at, "memory", None);
    let call: Option<Option<Time>> = draft.field(at, "call", None);
    if let Some(Some(Size(bytes))) = memory {
        match usize::try_from(bytes).ok().filter(|_| bytes >= MIN_MEMORY_BYTES) {
            Some(bytes) => limits.memory_bytes = bytes,
            None => {
                let message = "no plugin can run in that much memory".to_owned();
                draft.refuse::<()>(&under(at, "memory"), code::CONFIG_BAD_VALUE, message, "write at least `1MiB`");
            }
        }
    }
    if let Some(Some(Time(time))) = call {
        if time.is_zero() || time.as_millis() > MAX_CALL_MS {
            let message = "no call can end within that".to_owned();
            draft.refuse::<()>(&under(at, "call"), code::CONFIG_BAD_VALUE, message, "write a time from `1ms` to `49d`");
        } else {
            limits.call = time;
        }
    }
    draft.clean(at).then_some(limits)
}

fn read_grants(draft: &mut Draft, at: &[Step]) -> Option<Grants> {
    let grants = Grants {
        http: read_hosts(draft, &under(at, "http")),
        folders: read_folders(draft, &under(at, "folders")),
        env: read_env(draft, &under(at, "env")),
        ca_file: read_ca_file(draft, at),
    };
    draft.clean(at).then_some(grants)
}

fn read_hosts(draft: &mut Draft, at: &[Step]) -> Vec<HostPort> {
    let mut hosts = Vec::new();
    for index in 0..draft.node(at).map_or(0, Node::items) {
        let mut at = at.to_vec();
        at.push(Step::Item(index));
        let Some(text) = draft.section::<String>(&at) else { continue };
        match text.parse() {
            Ok(host) => hosts.push(host),
            Err(_) => {
                let shown = draft.node(&at).map(|node| node.shown(&draft.text)).unwrap_or_default();
                let message = format!("{shown} is not a host and a port");
                draft.refuse::<()>(
                    &at,
                    code::CONFIG_BAD_GRANT,
                    message,
                    "write `host:port` without scheme and path, such as `127.0.0.1:8030`",
                );
            }
        }
    }
    hosts
}

fn read_folders(draft: &mut Draft, at: &[Step]) -> Vec<Folder> {
    let mut folders = Vec::new();
    for guest in keys(draft.node(at)) {
        let at = under(at, &guest);
        if let Some(folder) = draft.section(&at) {
            folders.extend(read_folder(draft, &at, guest, folder));
        }
    }
    folders
}

fn read_env(draft: &mut Draft, at: &[Step]) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for name in keys(draft.node(at)) {
        let at = under(at, &name);
        if name.is_empty() || name.contains(['=', '\0']) {
            draft.refuse::<()>(&at, code::CONFIG_BAD_GRANT, format!("`{name}` is not a variable's name"), "write `NAME: value`");
        } else if let Some(value) = draft.section(&at) {
            env.insert(name, value);
        }
    }
    env
}

fn read_ca_file(draft: &mut Draft, at: &[Step]) -> Option<PathBuf> {
    let path = draft.field::<Option<String>>(at, "ca_file", None)??;
    let path = draft.absolute(&path);
    if !path.is_file() {
        let at = under(at, "ca_file");
        let message = format!("the file {} does not exist", draft.shown_path(&at, &path));
        return draft.refuse(&at, code::CONFIG_PATH_MISSING, message, "name a file of certificates in PEM form");
    }
    Some(path)
}

/// A folder that is there, under a path that a plugin can use.
fn read_folder(draft: &mut Draft, at: &[Step], guest: String, folder: raw::FolderGrant) -> Option<Folder> {
    let (path, write, at_path) = match folder {
        raw::FolderGrant::Path(path) => (path, true, at.to_vec()),
        raw::FolderGrant::Full(access) => (access.path, access.write, under(at, "path")),
    };
    if !guest.starts_with('/') || guest.split('/').any(|part| part == ".." || part == ".") {
        let message = format!("`{guest}` is not a path that a plugin can see a folder under");
        return draft.refuse(
            at,
            code::CONFIG_BAD_GRANT,
            message,
            "write the path that the plugin sees, from `/`, and behind it the folder of this machine: `/out: ./out`",
        );
    }
    let host = draft.absolute(&path);
    if !host.is_dir() {
        let message = format!("the folder {} does not exist", draft.shown_path(&at_path, &host));
        return draft.refuse(
            &at_path,
            code::CONFIG_PATH_MISSING,
            message,
            "create it; none is made, since a missing folder is most often a missing mount",
        );
    }
    Some(Folder { guest, host, write })
}

/// One error for each line that is to be added, whatever number of interfaces it gives.
fn refuse_missing_grants(draft: &mut Draft, at: &[Step], plugin: &str, facts: &dyn PluginFacts, grants: &Grants) {
    let mut by_remedy: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for missing in facts.missing_grants(grants).into_iter().filter(|missing| missing.declared) {
        let why = missing.why.filter(|why| !why.is_empty()).map(|why| format!(" ({why})")).unwrap_or_default();
        let help = match missing.remedy {
            Remedy::Add(line) => format!("add `{line}`"),
            Remedy::NotSupported => "this version cannot grant it; use another version of the plugin".to_owned(),
        };
        by_remedy.entry(help).or_default().push(format!("{}{why}", missing.interface));
    }
    let at = if draft.node(&under(at, "grant")).is_some() { under(at, "grant") } else { at.to_vec() };
    for (help, interfaces) in by_remedy {
        let message = format!("plugin {plugin} needs {}, which this sink does not grant", interfaces.join(" and "));
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
    let nothing = || serde_json::json!({});
    let identity = |sink: &Node| ["plugin", "config", "grant"].map(|key| sink.get(key).map_or_else(nothing, Node::to_json));
    let mut seen: Vec<([serde_json::Value; 3], String)> = Vec::new();
    for name in keys(draft.node(at)) {
        let at_sink = under(at, &name);
        let Some(identity) = draft.node(&at_sink).filter(|sink| sink.get("plugin").is_some()).map(identity) else { continue };
        if let Some((_, twin)) = seen.iter().find(|(other, _)| *other == identity) {
            let message = format!("sink {name} is sink {twin} again: same plugin, config and grants, so each record would be there twice");
            draft.refuse::<()>(&at_sink, code::CONFIG_SAME_SINK, message, "remove one of the two, or let them write to different places");
        } else {
            seen.push((identity, name));
        }
    }
}
