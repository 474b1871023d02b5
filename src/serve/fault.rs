//! The responses to requests that cannot be answered.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// After how many seconds a caller may try again where the queue is full.
const RETRY_SECONDS: u64 = 1;

/// A status and a message that says what is wrong, where, and what to do. As a response it is `{"error": "..."}`, as
/// LibreTranslate has it.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    status: StatusCode,
    message: String,
    /// Whether it is the model that there is not.
    is_of_model: bool,
}

impl Fault {
    /// With any status.
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), is_of_model: false }
    }

    /// The request is wrong: status 400.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// There is no such model: status 404.
    pub(super) fn unknown_model(message: impl Into<String>) -> Self {
        Self { is_of_model: true, ..Self::new(StatusCode::NOT_FOUND, message) }
    }

    /// The queue has no place: status 503.
    pub(super) fn busy(n_places: usize) -> Self {
        let message = format!("the queue of {n_places} requests is full; try again in {RETRY_SECONDS} s");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// The program has failed: status 500.
    pub(super) fn internal() -> Self {
        let message = "the model failed on this request; the server's standard error says where";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        self.with_body(&json!({ "error": self.message }))
    }
}

/// A [`Fault`] as OpenAI's clients read it: `{"error": {"message", "type", "param", "code"}}`.
pub(super) struct OpenAiFault(pub(super) Fault);

impl From<Fault> for OpenAiFault {
    fn from(fault: Fault) -> Self {
        Self(fault)
    }
}

impl IntoResponse for OpenAiFault {
    fn into_response(self) -> Response {
        self.0.with_body(&self.0.openai())
    }
}

impl Fault {
    /// The body that OpenAI's clients read.
    pub(super) fn openai(&self) -> Value {
        let (kind, code) = match self.status {
            StatusCode::UNAUTHORIZED => ("authentication_error", Some("invalid_api_key")),
            StatusCode::NOT_FOUND => ("invalid_request_error", self.is_of_model.then_some("model_not_found")),
            status if status.is_server_error() => ("server_error", None),
            _ => ("invalid_request_error", None),
        };
        json!({ "error": { "message": self.message, "type": kind, "param": null, "code": code } })
    }

    fn with_body(&self, body: &Value) -> Response {
        let mut response = answer(self.status, body);
        let headers = response.headers_mut();
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

/// A response of JSON.
pub(super) fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body.to_string()).into_response()
}
