//! A request over `wasi:http`.

use wasip2::http::outgoing_handler;
use wasip2::http::types::{Fields, OutgoingBody, OutgoingRequest, Scheme};

/// `GET /` at HOST:PORT, waiting for the answer without end. The status, or what went wrong.
pub(crate) fn get(address: &str) -> Result<u16, String> {
    let request = OutgoingRequest::new(Fields::new());
    let bad = |()| format!("{address} is not an address");
    request.set_scheme(Some(&Scheme::Http)).map_err(bad)?;
    request.set_authority(Some(address)).map_err(bad)?;
    request.set_path_with_query(Some("/")).map_err(bad)?;
    let body = request.body().map_err(|()| "the request has no body".to_owned())?;
    let answer = outgoing_handler::handle(request, None).map_err(|code| format!("the request was refused: {code:?}"))?;
    OutgoingBody::finish(body, None).map_err(|code| format!("the request broke off: {code:?}"))?;
    answer.subscribe().block();
    match answer.get() {
        Some(Ok(Ok(response))) => Ok(response.status()),
        Some(Ok(Err(code))) => Err(format!("the request failed: {code:?}")),
        Some(Err(())) | None => Err("the answer is not there".to_owned()),
    }
}
