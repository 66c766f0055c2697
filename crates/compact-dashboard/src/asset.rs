//! The style and the script, embedded in the program.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

/// The files by name, with their types.
const FILES: [(&str, &str, &str); 3] = [
    (
        "style.css",
        "text/css; charset=utf-8",
        include_str!("../assets/style.css"),
    ),
    (
        "page.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/page.js"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_str!("../assets/icon.svg"),
    ),
];

/// Answers with a file.
pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let found = FILES.iter().find(|(known, _, _)| *known == name);
    match found {
        Some((_, kind, text)) => {
            // A new version of the program has new files under the same names.
            ([(CONTENT_TYPE, *kind), (CACHE_CONTROL, "no-cache")], *text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
