//! Connections: accepted until the server is to stop, and answered before it exits.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

/// The interval between two checks whether the server is to stop.
const POLL: Duration = Duration::from_millis(50);

/// How long a connection may take for the head of a request, and be idle before it.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);

/// Most connections at a time; others wait.
const MAX_CONNECTIONS: usize = 1024;

/// Serves until `is_over`; then accepts no more and waits until all requests are answered, no longer than `patience`. That is also how
/// long a client may take none of its answer.
pub(super) async fn serve(listener: TcpListener, router: Router, patience: Duration, is_over: impl Fn() -> bool) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE.min(patience));
    let mut free = None;
    while !is_over() {
        let Some(place) = free.take().or_else(|| places.clone().try_acquire_owned().ok()) else {
            sleep(POLL).await;
            continue;
        };
        match timeout(POLL, listener.accept()).await {
            Ok(Ok((stream, _))) => {
                // Answers are small and wanted at once.
                let _ = stream.set_nodelay(true);
                let mut stream = TimeoutStream::new(stream);
                stream.set_write_timeout(Some(patience));
                let service = TowerToHyperService::new(router.clone());
                let connection = graceful.watch(http.serve_connection(TokioIo::new(Box::pin(stream)), service));
                tokio::spawn(async move {
                    // A client that disconnects is not an error of the server.
                    let _ = connection.await;
                    drop(place);
                });
            }
            // Out of file handles, say: some are free again once a connection ends.
            Ok(Err(_)) => sleep(POLL).await,
            Err(_) => free = Some(place),
        }
    }
    drop(listener);
    drop(router);
    let _ = timeout(patience, graceful.shutdown()).await;
}
