//! The filter that sends copies of requests somewhere else.

use gatewright_api::httproutes as api;
use gatewright_ir::Share;

use super::{Fault, RefusalCause};
use crate::{
    Interner,
    object::{MirrorRef, ServiceRef},
};

/// The denominator that the API gives a fraction which names none.
const HUNDRED: i32 = 100;

pub(super) fn mirror(
    mirror: &api::HttpRouteRulesFiltersRequestMirror,
    names: &mut Interner,
) -> Result<MirrorRef, Fault> {
    let api::HttpRouteRulesFiltersRequestMirror {
        backend_ref,
        fraction,
        percent,
    } = mirror;
    let share = match (percent, fraction) {
        (None, None) => Share::ALL,
        (Some(percent), None) => share(*percent, HUNDRED)?,
        (None, Some(fraction)) => share(fraction.numerator, fraction.denominator.unwrap_or(HUNDRED))?,
        (Some(_), Some(_)) => {
            let message = "percent and fraction cannot both be set; keep one of the two";
            return Err((RefusalCause::Invalid, message.to_owned()));
        }
    };
    let api::HttpRouteRulesFiltersRequestMirrorBackendRef {
        group,
        kind,
        name,
        namespace,
        port,
    } = backend_ref;
    Ok(MirrorRef {
        service: ServiceRef::reduce(
            (group.as_deref(), kind.as_deref()),
            (namespace.as_deref(), name),
            *port,
            names,
        ),
        share,
    })
}

fn share(numerator: i32, denominator: i32) -> Result<Share, Fault> {
    match (u32::try_from(numerator), u32::try_from(denominator)) {
        (Ok(numerator), Ok(denominator)) if denominator > 0 && numerator <= denominator => {
            Ok(Share { numerator, denominator })
        }
        _ => Err((
            RefusalCause::Invalid,
            format!("{numerator} of {denominator} is no part of all requests"),
        )),
    }
}
