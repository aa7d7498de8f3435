package auth

import "time"

// A Quota bounds one principal. 0 is no limit.
type Quota struct {
	CallsPerMinute    int           // calls_per_minute
	Burst             int           // burst: calls at once before the rate counts
	ConcurrentCalls   int           // concurrent_calls, all sessions together
	ConcurrentShells  int           // concurrent_shells: foreground commands
	JobLife           time.Duration // job_life of a background job
	BytesInPerMinute  int64         // bytes_in_per_minute
	BytesOutPerMinute int64         // bytes_out_per_minute
	Connections       int           // connections
	Streams           int           // streams open at once
	RequestsPerMinute int           // requests_per_minute, of all methods
	Sessions          int           // sessions: legacy transport sessions alive at once
}

// DefaultQuota is what holds for a principal about whom the operator says nothing.
func DefaultQuota() Quota {
	return Quota{
		CallsPerMinute: 600, Burst: 100, ConcurrentCalls: 16, ConcurrentShells: 4, JobLife: 2 * time.Hour,
		BytesInPerMinute: 32 << 20, BytesOutPerMinute: 256 << 20, Connections: 64, Streams: 64,
		RequestsPerMinute: 3000, Sessions: 200,
	}
}

// CheckQuota refuses a key that there is not, and a value that it does not take.
func CheckQuota(key, value string) error { var q Quota; return q.set(key, value) }

func (q *Quota) set(key, value string) error { return nil }
