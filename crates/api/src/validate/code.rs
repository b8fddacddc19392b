//! The stable codes of what can be wrong with a declared object or the file it stands in.
//!
//! `GW10xx` is the object, `GW11xx` the file. A code, once published, keeps its number and its meaning: users search
//! for it and the documentation has a section for each. Conditions of the planner have codes of their own (`GW2xxx`).

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($( $variant:ident = $text:literal, $title:literal; )+) => {
        /// What is wrong, as a stable code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = concat!("`", $text, "`: ", $title, ".")] $variant,)+
        }

        impl Code {
            /// Every code, in the order of its number.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The code as printed, such as `GW1001`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)+ }
            }

            /// What the code means, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)+ }
            }
        }
    };
}

codes! {
    UnknownField = "GW1001", "unknown field";
    MissingField = "GW1002", "missing field";
    WrongType = "GW1003", "wrong type";
    NotAllowed = "GW1004", "not one of the allowed values";
    BadFormat = "GW1005", "wrong format";
    OutOfRange = "GW1006", "number out of range";
    WrongCount = "GW1007", "too many or too few items";
    Duplicate = "GW1008", "the same item twice";
    RuleBroken = "GW1009", "fields that do not go together";
    BadName = "GW1010", "bad name in the metadata";
    WrongLength = "GW1011", "text too long or too short";
    NoEffect = "GW1012", "field without effect";
    Syntax = "GW1101", "file cannot be parsed";
    Unreadable = "GW1102", "file or folder cannot be read";
    DuplicateObject = "GW1103", "the same object declared twice";
    UnknownVersion = "GW1104", "version of the kind is not read";
    NotAnObject = "GW1105", "document is not a Kubernetes object";
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
