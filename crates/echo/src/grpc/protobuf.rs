//! Just enough protobuf to write the echo response: text fields and messages within messages.

#[cfg(test)]
mod tests;

/// The wire type of everything that has a length.
const LENGTH_DELIMITED: u64 = 2;

/// A message being written.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// Adds a text field; an empty one is left out, as proto3 does.
    pub(super) fn text(mut self, number: u64, value: &str) -> Self {
        if !value.is_empty() {
            self.field(number, value.as_bytes());
        }
        self
    }

    /// Adds a message field, even an empty one: its presence says something.
    pub(super) fn message(mut self, number: u64, value: &Self) -> Self {
        self.field(number, &value.0);
        self
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn field(&mut self, number: u64, bytes: &[u8]) {
        self.varint(number << 3 | LENGTH_DELIMITED);
        self.varint(u64::try_from(bytes.len()).unwrap_or_default());
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        loop {
            let low = u8::try_from(value & 0x7f).unwrap_or_default();
            value >>= 7;
            if value == 0 {
                return self.0.push(low);
            }
            self.0.push(low | 0x80);
        }
    }
}
