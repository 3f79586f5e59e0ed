//! Objects that change the number of Pods.

use serde::Deserialize;

use super::{Metadata, Resource, or_default};

/// HorizontalPodAutoscaler.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Autoscaler {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    #[serde(deserialize_with = "or_default")]
    pub spec: AutoscalerSpec,
}

/// Specification of a HorizontalPodAutoscaler.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AutoscalerSpec {
    /// Object that it scales, in its namespace.
    #[serde(deserialize_with = "or_default")]
    pub scale_target_ref: ScaleTarget,
}

/// Object that is scaled.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ScaleTarget {
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl Resource for Autoscaler {
    const PATH: &'static str = "/apis/autoscaling/v2/horizontalpodautoscalers";
    const PLURAL: &'static str = "horizontalpodautoscalers";
}
