//! The answer of the kubelet's pod-resources API, in the encoding of Protocol Buffers. Pure.
//!
//! Four nested messages of strings are read, so that a generator of code would be more than the code. Source: the encoding's
//! documentation (protobuf.dev), and `k8s.io/kubelet/pkg/apis/podresources/v1/api.proto`, whose field numbers Kubernetes keeps.

use std::collections::BTreeMap;

use thiserror::Error;

/// A message ends early, or has a field of an unknown type.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the message is no Protocol Buffers message")]
pub(super) struct Malformed;

/// The devices of a pod: the ids by resource, each id once.
pub(super) type Devices = BTreeMap<String, Vec<String>>;

/// Reads a ListPodResourcesResponse: the devices of each pod that has some, by `NAMESPACE/NAME`.
pub(super) fn list(message: &[u8]) -> Result<BTreeMap<String, Devices>, Malformed> {
    let mut pods = BTreeMap::new();
    for pod in nested(message, 1)? {
        let (name, namespace) = (text(pod, 1)?, text(pod, 2)?);
        let mut devices = Devices::new();
        for container in nested(pod, 3)? {
            for device in nested(container, 2)? {
                let ids = devices.entry(text(device, 1)?).or_default();
                for id in nested(device, 2)? {
                    let id = string(id);
                    if !ids.contains(&id) {
                        ids.push(id);
                    }
                }
            }
        }
        devices.retain(|_, ids| !ids.is_empty());
        if !devices.is_empty() {
            pods.insert(format!("{namespace}/{name}"), devices);
        }
    }
    Ok(pods)
}

/// The content of each field of this number that has a length: strings, and nested messages.
fn nested(message: &[u8], number: u64) -> Result<Vec<&[u8]>, Malformed> {
    let (mut rest, mut found) = (message, Vec::new());
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        // The lowest three bits of a key are the type of the field.
        let content = match key & 7 {
            0 => {
                varint(&mut rest)?;
                continue;
            }
            1 => take(&mut rest, 8)?,
            2 => {
                let length = varint(&mut rest)?;
                take(&mut rest, usize::try_from(length).map_err(|_| Malformed)?)?
            }
            5 => take(&mut rest, 4)?,
            _ => return Err(Malformed),
        };
        if key == number << 3 | 2 {
            found.push(content);
        }
    }
    Ok(found)
}

/// The string in the field of this number; empty if there is none. The last one counts, as the encoding demands.
fn text(message: &[u8], number: u64) -> Result<String, Malformed> {
    Ok(nested(message, number)?.last().map(|bytes| string(bytes)).unwrap_or_default())
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Malformed> {
    let (taken, after) = rest.split_at_checked(length).ok_or(Malformed)?;
    *rest = after;
    Ok(taken)
}

/// Reads a number of up to 64 bits. Each byte has seven bits of the number, the lowest first; the highest bit of a
/// byte says whether another byte follows.
fn varint(rest: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or(Malformed)?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A field with a length, of up to 127 bytes.
    pub(crate) fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    }

    /// A pod with one container for each list of devices.
    pub(crate) fn pod(namespace: &str, name: &str, containers: &[&[(&str, &[&str])]]) -> Vec<u8> {
        let mut pod = [field(1, name.as_bytes()), field(2, namespace.as_bytes())].concat();
        for devices in containers {
            let mut container = field(1, b"main");
            for (resource, ids) in *devices {
                let mut device = field(1, resource.as_bytes());
                for id in *ids {
                    device.extend(field(2, id.as_bytes()));
                }
                // The topology: a NUMA node with the number 1.
                device.extend(field(3, &field(1, &[1 << 3, 1])));
                container.extend(field(2, &device));
            }
            // cpu_ids, packed.
            container.extend(field(3, &[0, 1, 2]));
            pod.extend(field(3, &container));
        }
        field(1, &pod)
    }

    #[test]
    fn the_devices_of_pods_are_read() {
        let gpu = "nvidia.com/gpu";
        let message = [
            pod("lab", "sweep-0", &[&[(gpu, &["GPU-2"])], &[(gpu, &["GPU-7", "GPU-2"]), ("x.y/z", &["a"])]]),
            pod("lab", "plain", &[&[]]),
            pod("lab", "none", &[&[(gpu, &[])]]),
        ];
        let devices = |all: &[(&str, &[&str])]| -> Devices {
            all.iter()
                .map(|(name, ids)| ((*name).to_owned(), ids.iter().map(ToString::to_string).collect()))
                .collect()
        };
        let expected = devices(&[(gpu, &["GPU-2", "GPU-7"]), ("x.y/z", &["a"])]);
        assert_eq!(list(&message.concat()), Ok([("lab/sweep-0".to_owned(), expected)].into()));
        assert_eq!(list(&[]), Ok(BTreeMap::new()));
    }

    #[test]
    fn a_message_that_ends_early_is_refused_and_fields_that_are_not_known_are_skipped() {
        let unknown: &[u8] =
            &[9 << 3, 0x96, 0x01, 10 << 3 | 1, 1, 2, 3, 4, 5, 6, 7, 8, 11 << 3 | 5, 1, 2, 3, 4];
        let whole = [unknown, &pod("a", "b", &[&[("r.s/t", &["1"])]])].concat();
        assert_eq!(list(&whole).unwrap().len(), 1);
        let broken: &[&[u8]] =
            &[&[0x0a], &[0x0a, 5, 1], &[0xff; 11], &[3], &[1 << 3 | 1, 0], &whole[..whole.len() - 1]];
        for message in broken {
            assert_eq!(list(message), Err(Malformed), "{message:?}");
        }
        let huge = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(list(&huge), Err(Malformed), "a length that no memory has");
    }

    proptest! {
        #[test]
        fn no_message_panics(message: Vec<u8>) {
            let _ = list(&message);
        }
    }
}
