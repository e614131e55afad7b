//! Definitions that every API server takes.
//!
//! Two things that they write are refused by servers as old as 1.20 and say nothing that a newer one needs:
//! - a default of `""`, read there as null (serde gives an absent field the same default);
//! - `null` among the values of an `enum`. The server drops a null from a field that is not nullable, so that
//!   the field may go without both.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// The definition without what old servers refuse.
pub(super) fn portable(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let versions = crd.spec.versions.iter_mut();
    versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut()).for_each(clean);
    crd
}

fn clean(schema: &mut JSONSchemaProps) {
    if schema.default.as_ref().is_some_and(|default| default.0 == "") {
        schema.default = None;
    }
    if let Some(values) = &mut schema.enum_ {
        let all = values.len();
        values.retain(|value| !value.0.is_null());
        if values.len() < all {
            schema.nullable = None;
        }
    }
    schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(clean);
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => clean(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(clean),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        clean(value);
    }
}
