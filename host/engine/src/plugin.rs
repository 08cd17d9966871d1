//! A loaded plugin: what it is, what it wants, and instances of it.

use std::fmt;
use std::sync::Arc;

use wasmtime::component::InstancePre;
use weir_protocol::Hash;

use crate::bindings::RawDescription;
use crate::capabilities::{self, Grants, MissingGrant};
use crate::code::Code;
use crate::component::Inspection;
use crate::error::{Call, EngineError, PluginError};
use crate::imports::log::Origin;
use crate::instance::Instance;
use crate::limits::{
    DESCRIBE_LIMIT, Limits, MAX_DESCRIPTION_ITEMS, MAX_DOCUMENTATION_BYTES, MAX_FORMAT_BYTES, MAX_NAME_BYTES, MAX_SCHEMA_BYTES,
    MAX_SUMMARY_BYTES, MAX_TARGET_BYTES,
};
use crate::model::{Description, Need, OpenRequest, Profile, Role, is_name};
use crate::sink::{Committer, Writer};
use crate::store::State;

/// A plugin that was loaded and has said what it is. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    shared: Arc<Shared>,
}

struct Shared {
    inspection: Inspection,
    description: Description,
    pre: InstancePre<State>,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("inspection", &self.shared.inspection).finish_non_exhaustive()
    }
}

impl Plugin {
    /// Asks a compiled component what it is, in an instance without grants that is ended afterwards.
    pub(crate) async fn describe(inspection: Inspection, pre: InstancePre<State>) -> Result<Self, EngineError> {
        let origin = Origin { plugin: inspection.name.clone(), pipeline: String::new(), sink: String::new(), lane: 0, role: "describe" };
        let limits = Limits { call: DESCRIBE_LIMIT, ..Limits::default() };
        let mut instance = Instance::start(&pre, origin, &Grants::default(), &limits).await?;
        let raw = instance.describe().await?;
        let description = check_description(raw).map_err(|what| instance.broke(Call::Describe, Code::PluginDescription, what))?;
        drop(instance); // It was granted nothing, so it has nothing under way.
        Ok(Self { shared: Arc::new(Shared { inspection, description, pre }) })
    }

    /// Its name: the stem of its file.
    pub fn name(&self) -> &str {
        &self.shared.inspection.name
    }

    /// What it says about itself.
    pub fn description(&self) -> &Description {
        &self.shared.description
    }

    /// What its file says.
    pub fn inspection(&self) -> &Inspection {
        &self.shared.inspection
    }

    /// The SHA-256 of its file.
    pub fn digest(&self) -> Hash {
        self.shared.inspection.digest
    }

    /// What it needs or imports beyond the grants, each with what to write.
    pub fn missing_grants(&self, grants: &Grants) -> Vec<MissingGrant> {
        capabilities::missing(&self.shared.description, &self.shared.inspection.imports, grants)
    }

    /// Asks a probe whether the target would accept this sink. Writes nothing at the target.
    pub async fn probe(&self, request: &OpenRequest, grants: &Grants, limits: &Limits) -> Result<Profile, PluginError> {
        let (instance, profile) = self.open(request, Role::Probe, grants, limits).await?;
        instance.close().await?;
        Ok(profile)
    }

    /// Opens a writer for one lane of one sink.
    pub async fn open_writer(&self, request: &OpenRequest, grants: &Grants, limits: &Limits) -> Result<Writer, PluginError> {
        let (instance, profile) = self.open(request, Role::Writer, grants, limits).await?;
        Ok(Writer::new(instance, profile, request))
    }

    /// Opens a committer for one sink.
    pub async fn open_committer(&self, request: &OpenRequest, grants: &Grants, limits: &Limits) -> Result<Committer, PluginError> {
        let (instance, profile) = self.open(request, Role::Committer, grants, limits).await?;
        Ok(Committer::new(instance, profile, request, self.shared.description.handle_formats.clone()))
    }

    async fn open(&self, request: &OpenRequest, role: Role, grants: &Grants, limits: &Limits) -> Result<(Instance, Profile), PluginError> {
        let origin = Origin {
            plugin: self.name().to_owned(),
            pipeline: request.pipeline.to_string(),
            sink: request.sink.to_string(),
            lane: if role == Role::Writer { request.lane.0 } else { 0 },
            role: role.as_str(),
        };
        let mut instance = Instance::start(&self.shared.pre, origin, grants, limits).await?;
        let opened = instance.open(request, role).await;
        let checked = opened.and_then(|profile| {
            check_profile(&profile).map_err(|what| instance.broke(Call::Open, Code::PluginProfile, what))?;
            Ok(profile)
        });
        match checked {
            Ok(profile) => Ok((instance, profile)),
            Err(error) => Err(close_after(instance, error).await),
        }
    }
}

/// Ends an instance after a failure, so that whoever gets the error can count on nothing being under way any more.
pub(crate) async fn close_after(instance: Instance, error: PluginError) -> PluginError {
    if let Err(close) = instance.close().await {
        tracing::warn!(error = %close, "an instance did not end in time");
    }
    error
}

fn check_description(raw: RawDescription) -> Result<Description, String> {
    bounded("name", &raw.name, MAX_NAME_BYTES)?;
    if !is_name(&raw.name, MAX_NAME_BYTES) {
        return Err("its name is not `[a-z0-9][a-z0-9_-]*`".to_owned());
    }
    bounded("version", &raw.version, MAX_NAME_BYTES)?;
    bounded("summary", &raw.summary, MAX_SUMMARY_BYTES)?;
    bounded("documentation", &raw.documentation, MAX_DOCUMENTATION_BYTES)?;
    bounded("config-schema", &raw.config_schema, MAX_SCHEMA_BYTES)?;
    for (what, text) in [("version", &raw.version), ("summary", &raw.summary)] {
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return Err(format!("its {what} is not one line of text"));
        }
    }
    let config_schema: serde_json::Value =
        serde_json::from_str(&raw.config_schema).map_err(|error| format!("its config-schema is not JSON: {error}"))?;
    if !config_schema.is_object() {
        return Err("its config-schema is not a JSON object".to_owned());
    }
    if raw.handle_formats.is_empty() {
        return Err("it lists no handle format, so nothing that it prepares could be committed".to_owned());
    }
    if raw.handle_formats.len() > MAX_DESCRIPTION_ITEMS || raw.needs.len() > MAX_DESCRIPTION_ITEMS {
        return Err(format!("it lists more than {MAX_DESCRIPTION_ITEMS} handle formats or needs"));
    }
    for format in &raw.handle_formats {
        bounded("handle format", format, MAX_FORMAT_BYTES)?;
        if format.is_empty() || !format.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("a handle format is empty, or has other characters than printable ASCII".to_owned());
        }
    }
    for (name, why) in &raw.needs {
        bounded("need", name, MAX_SUMMARY_BYTES)?;
        bounded("need", why, MAX_SUMMARY_BYTES)?;
        if name.is_empty() || name.contains('@') || name.chars().any(char::is_control) || why.chars().any(char::is_control) {
            return Err("a need is not an interface without its version and a reason on one line".to_owned());
        }
    }
    Ok(Description {
        name: raw.name,
        version: raw.version,
        summary: raw.summary,
        documentation: crate::text::clean(&raw.documentation, MAX_DOCUMENTATION_BYTES),
        config_schema,
        guarantee: raw.guarantee,
        handle_formats: raw.handle_formats,
        needs: raw.needs.into_iter().map(|(name, why)| Need { name, why }).collect(),
    })
}

fn check_profile(profile: &Profile) -> Result<(), String> {
    if profile.target.is_empty() || profile.target.chars().any(char::is_control) {
        return Err("its profile names no target, or one that is not one line of text".to_owned());
    }
    if profile.target.len() > MAX_TARGET_BYTES {
        return Err(format!("the target in its profile is longer than {MAX_TARGET_BYTES} bytes"));
    }
    if profile.prepared_lifetime.is_some_and(|lifetime| lifetime.is_zero()) {
        return Err("its profile says that a prepared transaction lives 0 s".to_owned());
    }
    Ok(())
}

fn bounded(what: &str, text: &str, limit: usize) -> Result<(), String> {
    if text.len() > limit { Err(format!("its {what} is longer than {limit} bytes")) } else { Ok(()) }
}
