//! Label selectors.

use std::collections::BTreeMap;

use gatewright_ir::Text;

use crate::Interner;

/// A label selector; every requirement must hold. One without requirements selects everything, one that was left out
/// nothing, as everywhere in Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// None when it was left out.
    requirements: Option<Box<[Requirement]>>,
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
    /// The selector of someone who wrote none.
    pub(crate) fn absent() -> Self {
        Self { requirements: None }
    }

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
            requirements: Some(requirements.into()),
        }
    }

    /// Whether the labels meet every requirement.
    pub fn selects(&self, labels: &BTreeMap<Text, Text>) -> bool {
        let holds = |Requirement { key, test }: &Requirement| {
            let value = labels.get(key);
            match test {
                Test::In(values) => value.is_some_and(|value| values.contains(value)),
                Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Test::Exists => value.is_some(),
                Test::DoesNotExist => value.is_none(),
                Test::Never => false,
            }
        };
        self.requirements
            .as_ref()
            .is_some_and(|requirements| requirements.iter().all(holds))
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

    #[test]
    fn an_empty_selector_selects_everything_and_an_absent_one_nothing() {
        let empty = Selector::reduce(None, std::iter::empty(), &mut Interner::default());
        assert!(empty.selects(&BTreeMap::new()));
        assert!(!Selector::absent().selects(&BTreeMap::new()));
    }
}
