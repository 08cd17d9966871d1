//! `weir check`.

use serde_json::{Value, json};
use weir_engine::Guarantee;

use super::Failure;
use super::args::CheckArgs;
use super::load::load;
use super::output::{Output, table};
use crate::config::{Config, PipelineConfig, SourceConfig};
use crate::error::Exit;
use crate::supervisor::Plugins;

/// Reports everything that is wrong; else what would run.
pub(super) async fn check(args: CheckArgs, output: Output) -> Result<Exit, Failure> {
    let (config, plugins) = load(&args.config.config, &args.engine).await?;
    if output.json {
        output.data(&as_json(&config, &plugins).to_string());
        return Ok(Exit::Done);
    }
    let mut rows = Vec::new();
    for (id, pipeline) in &config.pipelines {
        for (sink, sink_config) in &pipeline.sinks {
            let plugin = plugins.get(&sink_config.plugin);
            let version = plugin.map(|plugin| plugin.description().version.clone()).unwrap_or_default();
            let class = plugin.map(|plugin| class(plugin.description().guarantee)).unwrap_or_default();
            rows.push(vec![
                id.to_string(),
                source(pipeline).to_owned(),
                sink.to_string(),
                format!("{} {version}", sink_config.plugin),
                class.to_owned(),
            ]);
        }
    }
    output.data(&table(&["PIPELINE", "SOURCE", "SINK", "PLUGIN", "CLASS"], &rows));
    let pipelines = config.pipelines.len();
    let pipelines = if pipelines == 1 { "1 pipeline".to_owned() } else { format!("{pipelines} pipelines") };
    output.tell(&format!("{}: nothing wrong with {pipelines}", config.file.display()));
    Ok(Exit::Done)
}

fn as_json(config: &Config, plugins: &Plugins) -> Value {
    let mut pipelines = serde_json::Map::new();
    for (id, pipeline) in &config.pipelines {
        let mut sinks = serde_json::Map::new();
        for (sink, sink_config) in &pipeline.sinks {
            let description = plugins.get(&sink_config.plugin).map(|plugin| plugin.description());
            sinks.insert(
                sink.to_string(),
                json!({
                    "plugin": sink_config.plugin,
                    "version": description.map(|d| &d.version),
                    "class": description.map(|d| class(d.guarantee)),
                }),
            );
        }
        pipelines.insert(
            id.to_string(),
            json!({ "source": source(pipeline), "lanes": pipeline.lanes, "delivery": pipeline.delivery, "sinks": sinks }),
        );
    }
    json!({ "file": config.file, "ledger": config.ledger.to_string(), "plugins": config.plugins, "pipelines": pipelines, "errors": [] })
}

fn source(pipeline: &PipelineConfig) -> &'static str {
    match pipeline.source {
        SourceConfig::File(_) => "file",
        SourceConfig::Generate(_) => "generate",
    }
}

/// What a plugin's best guarantee makes of its sink.
pub(super) fn class(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::ExactlyOnce => "transactional",
        Guarantee::Idempotent => "idempotent",
        Guarantee::AtLeastOnce => "at-least-once",
    }
}
