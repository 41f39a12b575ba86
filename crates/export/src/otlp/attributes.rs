//! Makes OpenTelemetry attributes by the semantic conventions: for the CI job in which a recording was made, and for
//! the resource.

use tr_analyze::model::Analysis;
use tr_format::meta::Metadata;
use tr_import::otlp::messages::{Any, AnyValue, KeyValue, Resource};
use tr_insight::recordings::ci::Ci;
use tr_text::escape;

use super::Given;

pub const TASK_NAME: &str = "cicd.pipeline.task.name";
pub const TASK_ID: &str = "cicd.pipeline.task.run.id";
pub const TASK_PAGE: &str = "cicd.pipeline.task.run.url.full";

/// The OpenTelemetry attributes of the CI job in which the recording was made. The conventions call it a task of a
/// pipeline.
pub fn job(meta: &Metadata) -> Vec<KeyValue> {
    let ci = Ci::new(meta);
    let known = [(TASK_NAME, "job"), (TASK_ID, "job_id")];
    let known = known
        .into_iter()
        .filter_map(|(name, of)| Some(text(name, ci.get(of)?)));
    let page = url(&ci, TASK_PAGE, "job_page");
    known.chain(page).collect()
}

pub fn url(ci: &Ci, name: &str, of: &str) -> Option<KeyValue> {
    let url = ci.get(of)?;
    let web = url.starts_with("https://") || url.starts_with("http://");
    web.then(|| text(name, url))
}

pub fn resource(analysis: &Analysis, given: &[Given]) -> Resource {
    let meta = &analysis.meta;
    let ci = Ci::new(meta);
    let arch = match meta.machine.as_str() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let mut attributes = vec![
        text("service.name", ci.get("project").unwrap_or("tr")),
        text("os.type", "linux"),
        text("host.name", &escape::raw(meta.host.as_bytes())),
        text("host.arch", &escape::raw(arch.as_bytes())),
    ];
    let names = [
        ("project", "vcs.repository.name"),
        ("run", "cicd.pipeline.run.id"),
        ("attempt", "tr.ci.attempt"),
        ("job", "tr.ci.job"),
        ("commit", "vcs.ref.head.revision"),
        ("branch", "vcs.ref.head.name"),
    ];
    let known = names
        .iter()
        .filter_map(|(own, name)| Some(text(name, ci.get(own)?)));
    attributes.extend(known);
    attributes.extend(url(&ci, "cicd.pipeline.run.url.full", "page"));
    for (name, value) in given {
        attributes.retain(|attribute| attribute.key != *name);
        attributes.push(text(name, value));
    }
    Resource { attributes }
}

pub fn fact(key: &str, value: Any) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    }
}

pub fn text(key: &str, value: &str) -> KeyValue {
    fact(key, Any::String(value.to_owned()))
}

pub fn int(key: &str, value: u64) -> KeyValue {
    fact(key, Any::Int(i64::try_from(value).unwrap_or(i64::MAX)))
}
