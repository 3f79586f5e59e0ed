//! Access reviews: answers if a user may do something.

use serde_json::Value;

use crate::Shared;
use crate::reply::{self, Reply};

/// Resources that are questions, not objects.
const REVIEWS: [&str; 2] = ["selfsubjectaccessreviews", "subjectaccessreviews"];

/// Answers a review; `None` for any other resource.
pub(crate) fn answer(resource: &str, mut review: Value, shared: &Shared) -> Option<Reply> {
    if !REVIEWS.contains(&resource) {
        return None;
    }
    let text = |name: &str| review["spec"]["resourceAttributes"][name].as_str().unwrap_or_default().to_owned();
    let is_denied = shared.lock().denied.contains(&(text("verb"), text("resource")));
    review["status"] = serde_json::json!({ "allowed": !is_denied });
    Some(reply::whole(201, review))
}
