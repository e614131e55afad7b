//! Devices with ids: which of them a slot gets.

use crate::pool::DeviceId;
use classad::{Ad, Env, Expr, Value};

use super::totals::Device;

/// The constraint after the colon in `GPUs = 2 : Capability >= 8.0`. Source: the manual, "Configuring GPUs".
///
/// A string literal is the id of a device, whatever its case. A number literal is the place of a device, from 0. Any other
/// expression is evaluated in the device's properties. A number literal is evaluated there too: `GPUs = 2 : 1` admits any device
/// that has properties, because 1 is true, and of devices without properties the one at place 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint(Expr);

impl Constraint {
    /// Makes a constraint of the expression after the colon.
    pub fn new(expr: Expr) -> Self {
        Self(expr)
    }

    /// Whether the constraint admits the device at a place. If the constraint is a job's, the expression may also read the job.
    pub fn admits(&self, place: usize, device: &Device, job: Option<&Ad>, env: &Env) -> bool {
        let named = match self.0.as_literal() {
            Some(Value::Str(id)) => device.id.eq_ignore_ascii_case(id),
            Some(Value::Undefined | Value::Error) | None => false,
            Some(value) => value.as_number().is_some_and(|number| is_place(number, place)),
        };
        named
            || !device.properties.is_empty()
                && self.0.eval(Some(&device.properties), job, env).as_bool_equiv() == Some(true)
    }
}

/// Whether the integer part of a number is a place.
#[allow(clippy::cast_precision_loss, clippy::float_cmp, reason = "places are small whole numbers")]
fn is_place(number: f64, place: usize) -> bool {
    number.trunc() == place as f64
}

/// The devices of one custom resource, while slots get their parts.
pub(super) struct Free<'a> {
    devices: &'a [Device],
    taken: Vec<bool>,
}

impl<'a> Free<'a> {
    pub fn new(devices: &'a [Device]) -> Self {
        Self { devices, taken: vec![false; devices.len()] }
    }

    /// Takes the first free devices that the constraint admits: at most `wanted`, fewer if there are fewer.
    pub fn take(
        &mut self,
        wanted: i64,
        constraint: Option<&Constraint>,
        job: Option<&Ad>,
        env: &Env,
    ) -> Vec<DeviceId> {
        let wanted = usize::try_from(wanted).unwrap_or(0);
        let admitted =
            |place: usize, device: &Device| constraint.is_none_or(|c| c.admits(place, device, job, env));
        let free = self.taken.iter_mut().zip(self.devices).enumerate();
        free.filter(|(place, (taken, device))| !**taken && admitted(*place, device))
            .take(wanted)
            .map(|(_, (taken, device))| {
                *taken = true;
                device.id.clone()
            })
            .collect()
    }
}
