//! Devices with names: which of them a slot gets.

use crate::pool::DeviceId;
use classad::{Ad, Env, Expr, Value};

use super::totals::Device;

/// What stands behind the colon in `GPUs = 2 : Capability >= 8.0`. Source: the manual, "Configuring GPUs".
///
/// A string that stands alone is the device's id, case aside; a number that does is its place, from 0. Everything else is
/// asked of the device's properties, and so is a number: `GPUs = 2 : 1` is any two, for 1 is true, and the one at place 1
/// where they have no properties.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint(Expr);

impl Constraint {
    /// What an expression means behind the colon.
    pub fn new(expr: Expr) -> Self {
        Self(expr)
    }

    /// Whether the device at a place is what is asked for. Where a job asks, the expression may look at the job too.
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

/// Whether a number, without its fraction, is a place.
#[allow(clippy::cast_precision_loss, clippy::float_cmp, reason = "places are small whole numbers")]
fn is_place(number: f64, place: usize) -> bool {
    number.trunc() == place as f64
}

/// The devices of one custom resource, as they are given away.
pub(super) struct Free<'a> {
    devices: &'a [Device],
    taken: Vec<bool>,
}

impl<'a> Free<'a> {
    pub fn new(devices: &'a [Device]) -> Self {
        Self { devices, taken: vec![false; devices.len()] }
    }

    /// Gives the first free ones that the constraint admits: as many as there are, `wanted` at most.
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
