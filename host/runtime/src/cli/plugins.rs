//! `weir plugins` and `weir plugins inspect FILE`.

use std::path::PathBuf;

use serde_json::{Value, json};
use weir_engine::Plugin;

use super::Failure;
use super::args::{InspectArgs, PluginsArgs, PluginsCommand};
use super::check::class;
use super::load::{refused, start};
use super::output::{Output, size, table};
use crate::config::{DEFAULT_PLUGINS, Draft, ProcessVariables};
use crate::error::Exit;

/// Lists the plugins of a folder, or inspects one.
pub(super) async fn plugins(args: PluginsArgs, output: Output) -> Result<Exit, Failure> {
    if let Some(PluginsCommand::Inspect(args)) = args.command {
        return inspect(args, output).await;
    }
    let folder = folder(&args)?;
    let found = start(&args.engine)?.discover(&folder).await.map_err(|error| refused(&error))?;
    let bad = found.iter().filter(|(_, plugin)| plugin.is_err()).count();
    if output.json {
        let all: Vec<Value> = found
            .iter()
            .map(|(name, plugin)| match plugin {
                Ok(plugin) => as_json(plugin),
                Err(error) => json!({ "name": name, "error": { "code": error.code(), "message": error.to_string() } }),
            })
            .collect();
        output.data(&json!({ "folder": folder, "plugins": all }).to_string());
    } else {
        let mut rows = Vec::new();
        for (name, plugin) in &found {
            match plugin {
                Ok(plugin) => {
                    let description = plugin.description();
                    let class = class(description.guarantee).to_owned();
                    rows.push(vec![name.clone(), description.version.clone(), class, description.summary.clone()]);
                }
                Err(error) => output.tell(&format!("error[{}]: {error}\n  help: {}", error.code(), error.code().remedy())),
            }
        }
        if rows.is_empty() {
            output.tell(&format!("no plugin in {}", folder.display()));
        } else {
            output.data(&table(&["NAME", "VERSION", "CLASS", "SUMMARY"], &rows));
        }
    }
    Ok(if bad == 0 { Exit::Done } else { Exit::ConfigRefused })
}

/// The folder that was named, or the configuration's, or the default where there is no configuration.
fn folder(args: &PluginsArgs) -> Result<PathBuf, Failure> {
    if let Some(folder) = &args.folder {
        return Ok(folder.clone());
    }
    let config = &args.config.config;
    if !config.exists() {
        return Ok(PathBuf::from(DEFAULT_PLUGINS));
    }
    let draft = Draft::read(config, &ProcessVariables)?;
    match draft.plugins_folder() {
        Some(folder) => Ok(folder),
        None => Err(draft.report().into()),
    }
}

async fn inspect(args: InspectArgs, output: Output) -> Result<Exit, Failure> {
    let plugin = start(&args.engine)?.load(&args.file).await.map_err(|error| refused(&error))?;
    output.data(&if output.json { as_json(&plugin).to_string() } else { as_text(&plugin) });
    Ok(Exit::Done)
}

fn as_json(plugin: &Plugin) -> Value {
    json!({ "name": plugin.name(), "file": plugin.inspection(), "description": plugin.description() })
}

fn as_text(plugin: &Plugin) -> String {
    let (file, about) = (plugin.inspection(), plugin.description());
    let mut lines = vec![
        format!("{} {}: {}", about.name, about.version, about.summary),
        String::new(),
        format!("file       {} ({})", file.path.display(), size(file.bytes)),
        format!("sha-256    {}", file.digest),
        format!("contract   {}", file.contract),
        format!("class      {}", class(about.guarantee)),
        format!("handles    {}", about.handle_formats.join(", ")),
    ];
    for need in &about.needs {
        lines.push(format!("needs      {}: {}", need.name, need.why));
    }
    lines.push(format!("imports    {}", file.imports.join("\n           ")));
    lines.push(format!("\nConfig, as a JSON Schema:\n{:#}", about.config_schema));
    if !about.documentation.trim().is_empty() {
        lines.push(format!("\n{}", about.documentation.trim_end()));
    }
    lines.join("\n")
}
