//! Cuts the body of a watch into lines.

use ::kube::client::Body;
use http_body_util::BodyExt;

/// No object is longer: etcd takes far less.
const LONGEST: usize = 64 * 1024 * 1024;

pub(super) struct Lines {
    body: Body,
    /// What has come and was not yet given out.
    buffer: Vec<u8>,
    /// How much of the buffer is known to have no end of a line.
    searched: usize,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            buffer: Vec::new(),
            searched: 0,
        }
    }

    /// The next line, without its end; nothing when the body has ended or broken. The beginning of a line that never
    /// ends is dropped. May be dropped and called again without losing anything.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(found) = unsearched.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(self.searched + found + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                self.searched = 0;
                line.pop();
                if line.is_empty() {
                    continue;
                }
                return Some(line);
            }
            self.searched = self.buffer.len();
            if self.searched > LONGEST {
                return None;
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}
