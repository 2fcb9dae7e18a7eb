//! Counters of a cache.
//!
//! Channels of responses are counted by the server.

use dhttp::counters::counters;

counters! {
    /// Cache hits.
    hits = "roundtrip_cache_requests_total{result=\"hit\"}", "Requests, by cache result.";
    /// Cache misses.
    misses = "roundtrip_cache_requests_total{result=\"miss\"}", "";
    /// Stored responses that were validated.
    validated = "roundtrip_cache_requests_total{result=\"validated\"}", "";
    /// Stale responses served because the origin failed.
    stale_replacement = "roundtrip_cache_requests_total{result=\"stood-in\"}", "";
    /// Requests that bypassed the cache.
    passed = "roundtrip_cache_requests_total{result=\"passed\"}", "";
    /// Collapsed requests.
    collapsed = "roundtrip_cache_requests_total{result=\"collapsed\"}", "";
    /// Requests without a response.
    failed = "roundtrip_cache_requests_total{result=\"failed\"}", "";
}

impl Counters {
    /// Renders the counters in Prometheus' text format; `objects` and `bytes` are the current contents of the store.
    pub fn metrics(&self, (objects, bytes): (u64, u64)) -> String {
        let mut text = Self::text(&[self]);
        for (name, help, now) in
            [("objects", "Stored responses.", objects), ("bytes", "Bytes of stored responses.", bytes)]
        {
            text.push_str(&format!(
                "# HELP roundtrip_cache_{name} {help}\n# TYPE roundtrip_cache_{name} gauge\nroundtrip_cache_{name} {now}\n"
            ));
        }
        text
    }
}
