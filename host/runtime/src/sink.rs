//! One sink of a pipeline: its plugin with everything that opening an instance takes.

use weir_engine::{Committer, Grants, Input, Limits, OpenRequest, Plugin, PluginError, Writer};
use weir_protocol::{Lane, PipelineId, SinkId, SinkManifest};

/// Opens the sink's instances, all under the same config.
pub(crate) struct Sink {
    pub(crate) pipeline: PipelineId,
    pub(crate) id: SinkId,
    pub(crate) plugin: Plugin,
    pub(crate) config_json: String,
    pub(crate) grants: Grants,
    pub(crate) limits: Limits,
    pub(crate) input: Input,
    pub(crate) lanes: u32,
}

impl Sink {
    /// An instance that writes one lane's records.
    pub(crate) async fn open_writer(&self, lane: Lane) -> Result<Writer, PluginError> {
        self.plugin.open_writer(&self.request(lane), &self.grants, &self.limits).await
    }

    /// An instance that commits and aborts.
    pub(crate) async fn open_committer(&self) -> Result<Committer, PluginError> {
        self.plugin.open_committer(&self.request(Lane(0)), &self.grants, &self.limits).await
    }

    fn request(&self, lane: Lane) -> OpenRequest {
        OpenRequest {
            pipeline: self.pipeline.clone(),
            sink: self.id.clone(),
            lane,
            lanes: self.lanes,
            input: self.input.clone(),
            config_json: self.config_json.clone(),
        }
    }

    /// Its entry in the pipeline's manifest.
    pub(crate) fn manifest(&self, profile: &weir_engine::Profile) -> SinkManifest {
        let description = self.plugin.description();
        SinkManifest {
            sink: self.id.clone(),
            plugin: description.name.clone(),
            version: description.version.clone(),
            digest: self.plugin.digest(),
            target: profile.target.clone(),
            handle_formats: description.handle_formats.clone(),
            settle_ms: profile.settle_ms,
        }
    }
}
