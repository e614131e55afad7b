//! Schemas that the derives would make too large or not structural.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A Kubernetes quantity, without the two kilobytes of text that the derived schema repeats at every use. The operator says how to write
/// what is none, which a pattern could not.
pub(super) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": 128 })
}

/// A selector of labels, which the API server merges as a whole, as it does those of Kubernetes' own kinds. An expression may list
/// each node of a large pool.
pub(super) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "nullable": true,
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": {
                "type": "array", "maxItems": 1024, "x-kubernetes-list-type": "atomic",
                "description": "Conditions on labels, all of which must hold.",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string", "maxLength": 317, "description": "The label's key." },
                        "operator": { "type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"], "description": "How the label is compared with the values." },
                        "values": {
                            "type": "array", "maxItems": 32768, "x-kubernetes-list-type": "atomic",
                            "description": "The values, for In and NotIn. Exists and DoesNotExist have none.",
                            "items": { "type": "string", "maxLength": 63 }
                        }
                    }
                }
            },
            "matchLabels": {
                "type": "object", "maxProperties": 1024,
                "description": "Labels with the value that each must have.",
                "additionalProperties": { "type": "string", "maxLength": 63 }
            }
        }
    })
}

/// A point in time, RFC 3339.
pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "nullable": true })
}

/// Conditions of the standard form, merged by type. Bounded as Kubernetes' own are.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": { "type": "string", "maxLength": 316, "description": "The subject of the condition, in CamelCase." },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"], "description": "True, False or Unknown." },
                "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0, "description": "The metadata.generation that the condition was set for." },
                "lastTransitionTime": { "type": "string", "format": "date-time", "description": "When the status last changed." },
                "reason": { "type": "string", "maxLength": 1024, "description": "Why, as one word for programs." },
                "message": { "type": "string", "maxLength": 32768, "description": "Why, for people, and what to do about it." }
            }
        }
    })
}

/// A whole number of 32 bits that is not negative, as Kubernetes writes such numbers: a server 1.36 warns of the format `uint32`
/// whenever the definition is applied.
pub(super) fn whole(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX })
}

/// Numbers of slots.
pub(super) fn slot_numbers(numbers: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "maxItems": 4096, "items": whole(numbers) })
}

/// Rows of short texts.
pub(super) fn rows(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32768,
        "items": {
            "type": "array",
            "maxItems": 64,
            "items": { "type": "string", "maxLength": 8192 }
        }
    })
}
