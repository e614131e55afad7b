//! Standard input, output and error.

use super::{Job, Outcome};

/// A stream: its commands and attributes.
struct Stream {
    commands: (&'static str, &'static str),
    file: &'static str,
    transfer: (&'static str, &'static str),
    streaming: (&'static str, &'static str),
}

const STREAMS: [Stream; 3] = [
    Stream {
        commands: ("input", "stdin"),
        file: "In",
        transfer: ("transfer_input", "TransferIn"),
        streaming: ("stream_input", "StreamIn"),
    },
    Stream {
        commands: ("output", "stdout"),
        file: "Out",
        transfer: ("transfer_output", "TransferOut"),
        streaming: ("stream_output", "StreamOut"),
    },
    Stream {
        commands: ("error", "stderr"),
        file: "Err",
        transfer: ("transfer_error", "TransferErr"),
        streaming: ("stream_error", "StreamErr"),
    },
];

impl Job<'_, '_> {
    pub(super) fn set_streams(&mut self) -> Outcome {
        STREAMS.iter().try_for_each(|stream| self.set_stream(stream))
    }

    fn set_stream(&mut self, stream: &Stream) -> Outcome {
        let known = self.get(stream.transfer.1).is_none() || self.is_true(stream.transfer.1);
        let mut transfers = self.boolean(stream.transfer.0, Some(stream.transfer.1))?.unwrap_or(known);
        let must_say = transfers != known;
        let known = self.is_true(stream.streaming.1);
        let mut streams = self.boolean(stream.streaming.0, Some(stream.streaming.1))?.unwrap_or(known);
        let given = self.given(stream.commands.0, Some(stream.commands.1))?;
        if given.is_some() || !self.has(stream.file) {
            let file = given.as_ref().map_or("/dev/null", |given| given.as_str());
            if file == "/dev/null" {
                (transfers, streams) = (false, false);
            }
            let file = file.to_owned();
            self.set(stream.file, file);
        }
        if !transfers {
            self.set(stream.transfer.1, false);
            return Ok(());
        }
        self.set(stream.streaming.1, streams);
        if must_say {
            self.set(stream.transfer.1, true);
        }
        Ok(())
    }
}
