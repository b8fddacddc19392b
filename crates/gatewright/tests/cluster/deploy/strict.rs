//! A cluster with the admission plugin that asks more rights of whoever makes objects that belong to others, as OpenShift has.

use super::chart::rendered;
use crate::{bed::Bed, namespace::Namespace};

#[test]
fn where_owner_references_are_guarded_the_chart_grants_what_they_take() {
    let flags = vec!["--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned()];
    let channel = gatewright_testbed::cluster::Channel::Standard;
    let bed = Bed::start_with("gatewright-strict-tests", Some(channel), flags);
    let values = "createNamespace=true,replicas=1,rbac.ownerReferences=true";
    bed.apply(&rendered(&["--set", values])).unwrap();
    let namespace = Namespace::make(&bed, "strict");
    namespace.served("door", "gatewright");
    let service = namespace.get("service", "gatewright-door").unwrap();
    assert_eq!(service["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
}
