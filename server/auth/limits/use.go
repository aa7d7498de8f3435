package limits

import "math"

// A Use is how much of one limit is used now.
type Use struct {
	Key     string // of the limit, as in Keys; of calls it is what bounds those that come at once
	Used    int64  // a rate counts what has not yet drained; more than Most after one large answer
	Most    int64
	Waiting int // calls that wait for their turn
}

// Uses returns what is used of the limits that count here, in the order of Keys. What is not limited is not among them,
// nor are job_life and sessions, which are counted elsewhere.
func (l *Limiter) Uses() (all []Use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, q := l.now(), l.quota
	add := func(key string, used float64, most int64, waiting int) {
		if most > 0 {
			all = append(all, Use{key, int64(math.Ceil(used - slack)), most, waiting})
		}
	}
	rate := func(key string, b *bucket, p pace) {
		b.drain(now, p)
		if p.perMinute > 0 {
			add(key, b.used, int64(p.most), 0)
		}
	}
	calls := rateKey
	if q.Burst > 0 {
		calls = burstKey
	}
	rate(calls, &l.calls, callPace(q))
	add("concurrent_calls", float64(l.running.in), int64(q.ConcurrentCalls), len(l.running.waiting))
	add("concurrent_shells", float64(l.shells.in), int64(q.ConcurrentShells), len(l.shells.waiting))
	rate("bytes_in_per_minute", &l.in, minute(float64(q.BytesInPerMinute)))
	rate("bytes_out_per_minute", &l.out, minute(float64(q.BytesOutPerMinute)))
	add("connections", float64(len(l.connections)+l.unnamed), int64(q.Connections), 0)
	add("streams", float64(l.streams), int64(q.Streams), 0)
	rate("requests_per_minute", &l.requests, minute(float64(q.RequestsPerMinute)))
	return all
}
