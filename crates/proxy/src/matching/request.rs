//! What matching reads of a request.
//!
//! Both codecs implement [`RequestView`] over their own form of a request head, so that nothing is copied to be matched.

use crate::query::Parameters;

/// A request head, as far as matching reads it.
pub(crate) trait RequestView {
    /// The host in lower case, without port and trailing dot.
    fn host(&self) -> &str;

    /// The method.
    fn method(&self) -> &str;

    /// The normalised path, without query.
    fn path(&self) -> &str;

    /// The query without its `?`, as it came.
    fn query(&self) -> Option<&str>;

    /// All values of a header, whose name is given in lower case.
    fn header_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a;
}

/// A request while it is being matched: the query is taken apart when the first candidate asks for it, and kept for the
/// next.
pub(super) struct Subject<'a, R> {
    pub(super) view: &'a R,
    pub(super) parameters: Parameters<'a>,
}

impl<'a, R: RequestView> Subject<'a, R> {
    pub(super) fn new(view: &'a R) -> Self {
        Self {
            view,
            parameters: Parameters::new(view.query()),
        }
    }
}
