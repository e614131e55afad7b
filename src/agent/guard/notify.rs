//! Tells systemd that the guard lives (sd_notify(3)). systemd ends and restarts a guard that no longer says so.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The program that supervises the guard, if one does.
#[derive(Debug)]
pub(super) struct Supervisor(Option<(UnixDatagram, SocketAddr)>);

impl Supervisor {
    /// The supervisor that the environment names.
    pub(super) fn from_environment() -> Self {
        Self::at(std::env::var_os("NOTIFY_SOCKET"))
    }

    fn at(address: Option<OsString>) -> Self {
        let socket = address.and_then(|address| {
            let address = match address.as_bytes().strip_prefix(b"@") {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(&address),
            };
            Some((UnixDatagram::unbound().ok()?, address.ok()?))
        });
        Self(socket)
    }

    /// Says something to the supervisor. A supervisor that does not hear it ends the guard, and starts the guard again.
    pub(super) fn tell(&self, what: &str) {
        if let Some((socket, address)) = &self.0
            && let Err(error) = socket.send_to_addr(what.as_bytes(), address)
        {
            tracing::warn!(%error, "systemd does not hear the guard");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supervisor_hears_the_guard_at_a_path_and_at_an_abstract_address() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("notify");
        let name = format!("slotwright-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, address) in [
            (UnixDatagram::bind(&path).unwrap(), path.clone().into_os_string()),
            (UnixDatagram::bind_addr(&abstract_address).unwrap(), format!("@{name}").into()),
        ] {
            Supervisor::at(Some(address)).tell("READY=1");
            let mut heard = [0; 64];
            socket.set_nonblocking(true).unwrap();
            let length = socket.recv(&mut heard).unwrap();
            assert_eq!(&heard[..length], b"READY=1");
        }
        Supervisor::at(None).tell("READY=1");
        Supervisor::at(Some("/nowhere/at/all".into())).tell("READY=1");
    }
}
