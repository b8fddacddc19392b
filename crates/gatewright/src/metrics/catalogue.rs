//! Every exported metric: its name, type, labels and meaning. `docs/metrics.md` is made from it.

/// A family of metrics.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

macro_rules! families {
    ($($constant:ident = $kind:literal $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(
            pub(crate) const $constant: Family =
                Family { name: $name, kind: $kind, labels: &[$($label),*], help: $help };
        )+

        /// All families, in the order in which they are exported.
        pub(crate) const ALL: &[&Family] = &[$(&$constant,)+];
    };
}

families! {
    REQUESTS = "counter" "gatewright_requests_total" ["gateway", "listener", "route", "code"]
        "Requests answered, by listener, route (empty if none matched) and status code.";
    REQUEST_DURATION = "histogram" "gatewright_request_duration_seconds" ["gateway", "listener"]
        "Time from the head of a request to the last byte of its response.";
    REQUEST_BODY_BYTES = "counter" "gatewright_request_body_bytes_total" ["gateway", "listener"]
        "Bytes of request bodies.";
    RESPONSE_BODY_BYTES = "counter" "gatewright_response_body_bytes_total" ["gateway", "listener"]
        "Bytes of response bodies.";
    LOCAL_ANSWERS = "counter" "gatewright_local_answers_total" ["gateway", "listener", "reason"]
        "Requests that the proxy answered itself, and why.";
    STREAMS = "gauge" "gatewright_streams" ["gateway", "listener"]
        "Open connections, or flows of datagrams, that are routed as a whole.";
    STREAMS_OPENED = "counter" "gatewright_streams_opened_total" ["gateway", "listener"]
        "Connections, or flows of datagrams, that were routed as a whole.";
    STREAM_RECEIVED_BYTES = "counter" "gatewright_stream_received_bytes_total" ["gateway", "listener"]
        "Bytes from clients that were routed as a whole.";
    STREAM_SENT_BYTES = "counter" "gatewright_stream_sent_bytes_total" ["gateway", "listener"]
        "Bytes to clients that were routed as a whole.";
    STREAMS_REFUSED = "counter" "gatewright_streams_refused_total" ["gateway", "listener", "reason"]
        "Connections that were refused, or datagrams that were dropped, and why.";
    CONNECTIONS = "gauge" "gatewright_connections" ["address"]
        "Open connections of clients.";
    CONNECTIONS_ACCEPTED = "counter" "gatewright_connections_accepted_total" ["address"]
        "Connections of clients accepted.";
    CONNECTIONS_REFUSED = "counter" "gatewright_connections_refused_total" ["address"]
        "Connections of clients refused because there were too many.";
    TLS_FAILURES = "counter" "gatewright_tls_handshake_failures_total" ["address", "reason"]
        "TLS handshakes that failed, and why.";
    UPSTREAM_CONNECTIONS = "gauge" "gatewright_upstream_connections" []
        "Open connections to backends, in use or kept for the next request.";
    UPSTREAM_OPENED = "counter" "gatewright_upstream_connections_opened_total" []
        "Connections to backends opened.";
    UPSTREAM_FAILED = "counter" "gatewright_upstream_connections_failed_total" []
        "Connections to backends that could not be opened.";
    UPSTREAM_REUSED = "counter" "gatewright_upstream_requests_reused_total" []
        "Requests sent on a connection that was open already.";
    UPSTREAM_RETRIED = "counter" "gatewright_upstream_requests_retried_total" []
        "Requests sent again: a kept connection turned out to be closed, or the route asks for retries.";
    MIRRORED = "counter" "gatewright_mirrored_requests_total" []
        "Copies of requests sent to mirrors.";
    MIRRORS_DROPPED = "counter" "gatewright_mirrored_requests_dropped_total" []
        "Copies of requests that were not sent to the end, because a mirror was too slow, unreachable or too busy.";
    PLAN_DURATION = "histogram" "gatewright_plan_duration_seconds" []
        "Time to plan what changed.";
    OBJECTS = "gauge" "gatewright_objects" ["kind"]
        "Declared objects in use.";
    FILE_PROBLEMS = "gauge" "gatewright_file_problems" ["severity"]
        "Problems of the files as they stand now.";
    RELOADS = "counter" "gatewright_reloads_total" []
        "How often changes of the files were taken over, the first load included.";
    RELOAD_ERRORS = "counter" "gatewright_reload_errors_total" []
        "Errors that appeared in files since the start.";
    WATCHES = "gauge" "gatewright_watches" ["kind", "namespace", "state"]
        "Watches of a cluster by kind, namespace (empty for all) and state: listing, watching, absent, forbidden, unreachable.";
    INVALID_OBJECTS = "gauge" "gatewright_invalid_objects" ["kind", "namespace"]
        "Objects in the cluster that cannot be read.";
    LISTS = "counter" "gatewright_lists_total" ["kind", "namespace"]
        "How often all objects of a kind were listed.";
    WATCH_ERRORS = "counter" "gatewright_watch_errors_total" ["kind", "namespace"]
        "What went wrong with lists and watches.";
    WRITES = "counter" "gatewright_writes_total" ["kind", "action"]
        "Requests that changed something in the cluster, by kind and action.";
    WRITE_FAILURES = "counter" "gatewright_write_failures_total" ["kind", "reason"]
        "Requests to change something that failed, by kind and reason.";
    LEADER = "gauge" "gatewright_leader" []
        "1 while this replica writes to the cluster, else 0.";
    WRITES_QUEUED = "gauge" "gatewright_writes_queued" []
        "Writes that wait or are under way.";
    WRITES_FAILING = "gauge" "gatewright_writes_failing" []
        "Objects that cannot be written now.";
    WRITE_CONFLICTS = "counter" "gatewright_write_conflicts_total" []
        "Writes that met a newer version of their object and were done again.";
    SWEEPS = "counter" "gatewright_sweeps_total" []
        "How often everything in the cluster was compared with the plan.";
    DRIFT = "counter" "gatewright_drift_total" []
        "Differences that only such a comparison found; expected to stay 0.";
    EVENTS = "counter" "gatewright_events_total" []
        "Events published.";
    EVENTS_DROPPED = "counter" "gatewright_events_dropped_total" []
        "Events not published because there were too many.";
    REPLICAS = "gauge" "gatewright_replicas" []
        "Replicas that this one knows, itself included.";
    READY = "gauge" "gatewright_ready" []
        "1 while traffic should be sent here, else 0.";
    START_TIME = "gauge" "gatewright_start_time_seconds" []
        "When the process started, in seconds since 1970.";
    BUILD_INFO = "gauge" "gatewright_build_info" ["version"]
        "Always 1; the labels say what is running.";
}

#[cfg(test)]
mod tests;
