//! Label selectors.

use std::collections::BTreeMap;

use gatewright_ir::Text;

use crate::Interner;

/// A label selector; every requirement must hold, and none at all selects everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    requirements: Box<[Requirement]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: Text,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Box<[Text]>),
    NotIn(Box<[Text]>),
    Exists,
    DoesNotExist,
    /// An operator that does not exist selects nothing: what guards who may attach must not open by a typo.
    Never,
}

impl Selector {
    /// Reads `matchLabels` and `matchExpressions` (key, operator, values).
    pub(crate) fn reduce<'a>(
        labels: Option<&BTreeMap<String, String>>,
        expressions: impl Iterator<Item = (&'a str, &'a str, Option<&'a Vec<String>>)>,
        names: &mut Interner,
    ) -> Self {
        let mut requirements = Vec::new();
        for (key, value) in labels.into_iter().flatten() {
            requirements.push(Requirement {
                key: names.text(key),
                test: Test::In([names.text(value)].into()),
            });
        }
        for (key, operator, values) in expressions {
            let values: Box<[Text]> = values.into_iter().flatten().map(|value| names.text(value)).collect();
            let test = match operator {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::DoesNotExist,
                _ => Test::Never,
            };
            requirements.push(Requirement {
                key: names.text(key),
                test,
            });
        }
        Self {
            requirements: requirements.into(),
        }
    }

    /// Whether the labels meet every requirement.
    pub fn selects(&self, labels: &BTreeMap<Text, Text>) -> bool {
        self.requirements.iter().all(|Requirement { key, test }| {
            let value = labels.get(key);
            match test {
                Test::In(values) => value.is_some_and(|value| values.contains(value)),
                Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Test::Exists => value.is_some(),
                Test::DoesNotExist => value.is_none(),
                Test::Never => false,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_selects_as_kubernetes_does() {
        let labels: BTreeMap<Text, Text> = [("env".into(), "prod".into())].into();
        let values = vec!["prod".to_owned()];
        let other = vec!["test".to_owned()];
        let table = [
            ("env", "In", Some(&values), true),
            ("env", "In", Some(&other), false),
            ("env", "NotIn", Some(&values), false),
            ("env", "NotIn", Some(&other), true),
            ("absent", "NotIn", Some(&values), true),
            ("env", "Exists", None, true),
            ("absent", "Exists", None, false),
            ("env", "DoesNotExist", None, false),
            ("env", "Exits", None, false),
        ];
        for (key, operator, values, expected) in table {
            let selector = Selector::reduce(None, [(key, operator, values)].into_iter(), &mut Interner::default());
            assert_eq!(selector.selects(&labels), expected, "{key} {operator} {values:?}");
        }
    }
}
