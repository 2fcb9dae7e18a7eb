//! Counters of a cache.
//!
//! Channels of responses are counted by the server.

use dhttp::counters::counters;

counters! {
    /// Answers that were given of what is kept.
    hits = "cache_requests_total{result=\"hit\"}", "Requests, by cache result.";
    /// Requests for which nothing was kept.
    misses = "cache_requests_total{result=\"miss\"}", "";
    /// Answers that were still good when somebody asked.
    validated = "cache_requests_total{result=\"validated\"}", "";
    /// Stale answers that stood in for a server that failed.
    stood_in = "cache_requests_total{result=\"stood-in\"}", "";
    /// Requests that are none of a cache's business.
    passed = "cache_requests_total{result=\"passed\"}", "";
    /// Requests that waited for the answer to another.
    collapsed = "cache_requests_total{result=\"collapsed\"}", "";
    /// Requests that nobody answered.
    failed = "cache_requests_total{result=\"failed\"}", "";
}

impl Counters {
    /// Renders the counters in Prometheus' text format; `objects` and `bytes` are the current contents of the store.
    pub fn metrics(&self, (objects, bytes): (u64, u64)) -> String {
        let mut text = Self::text(&[self]);
        for (name, help, now) in
            [("objects", "Stored responses.", objects), ("bytes", "Bytes of stored responses.", bytes)]
        {
            text.push_str(&format!(
                "# HELP cache_{name} {help}\n# TYPE cache_{name} gauge\ncache_{name} {now}\n"
            ));
        }
        text
    }
}
