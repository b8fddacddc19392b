//! Query parameters as clients write them.

use super::*;

#[test]
fn parameters_are_found_and_decoded() {
    let query = Query("a=1&b=x%20y+z&empty=&bare&delay=1.5s&c=%zz%4");
    assert_eq!(query.number::<u32>("a"), Ok(Some(1)));
    assert_eq!(query.text("b").as_deref(), Some("x y z"));
    assert_eq!(query.text("empty"), None);
    assert_eq!(query.text("bare"), None);
    assert_eq!(query.text("absent"), None);
    assert_eq!(query.duration("delay"), Ok(Some(Duration::from_millis(1500))));
    assert_eq!(query.text("c").as_deref(), Some("%zz%4"));
}

#[test]
fn a_bad_value_is_named() {
    let query = Query("delay=soon&chunks=-1");
    assert_eq!(
        query.duration("delay"),
        Err(BadParameter(
            "query parameter delay=soon is not a duration such as 300ms".into()
        ))
    );
    assert_eq!(
        query.number::<u32>("chunks"),
        Err(BadParameter("query parameter chunks=-1 is not a number".into()))
    );
}
