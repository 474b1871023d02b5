//! What the endpoints are handed, and where they work.

use super::fault::Fault;
use super::fields::Fields;

/// The fields of a body, or what is wrong with it.
#[derive(Clone)]
pub(super) struct Body(pub(super) Result<Fields, Fault>);

/// Runs what takes the processor for a while beside the thread of the connections.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Fault::internal()))
}
