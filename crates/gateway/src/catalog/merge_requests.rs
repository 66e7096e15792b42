//! Requests to rebuild the catalog, counted, so that whoever made one can wait until it is done.

use tokio::sync::watch;

/// Counts the requests to rebuild the catalog. One rebuild answers all requests that were made before it began.
pub(crate) struct MergeRequests {
    requested: watch::Sender<u64>,
    done: watch::Sender<u64>,
}

impl MergeRequests {
    /// Makes the counter, and the receiver on which the task that rebuilds sees requests come.
    pub(crate) fn new() -> (MergeRequests, watch::Receiver<u64>) {
        let (requested, requests) = watch::channel(0);
        (MergeRequests { requested, done: watch::channel(0).0 }, requests)
    }

    /// Requests a rebuild; returns the request's number.
    pub(crate) fn request(&self) -> u64 {
        let mut number = 0;
        self.requested.send_modify(|requested| {
            *requested += 1;
            number = *requested;
        });
        number
    }

    /// Notes that all requests up to a number were answered.
    pub(crate) fn finish(&self, number: u64) {
        self.done.send_replace(number);
    }

    /// Waits until a request was answered.
    pub(crate) async fn wait(&self, number: u64) {
        let mut done = self.done.subscribe();
        // It cannot fail: the sender is a field of self.
        let _ = done.wait_for(|done| *done >= number).await;
    }
}
