package auth

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Quota bounds one principal. 0 is no limit.
type Quota struct {
	CallsPerMinute    int           // calls_per_minute
	Burst             int           // burst: calls at once before the rate counts; 0: those of a minute
	ConcurrentCalls   int           // concurrent_calls, all sessions together
	ConcurrentShells  int           // concurrent_shells: foreground commands
	JobLife           time.Duration // job_life of a background job
	BytesInPerMinute  int64         // bytes_in_per_minute
	BytesOutPerMinute int64         // bytes_out_per_minute
	Connections       int           // connections in use at once
	Streams           int           // streams open at once
	RequestsPerMinute int           // requests_per_minute, of all methods
	Sessions          int           // sessions: legacy transport sessions alive at once
}

// defaultQuota is what holds for a principal about whom the operator says nothing.
func defaultQuota() Quota {
	return Quota{
		CallsPerMinute: 600, Burst: 100, ConcurrentCalls: 16, ConcurrentShells: 4, JobLife: 2 * time.Hour,
		BytesInPerMinute: 32 << 20, BytesOutPerMinute: 256 << 20, Connections: 64, Streams: 64,
		RequestsPerMinute: 3000, Sessions: 200,
	}
}

// quotaKeys are the keys in the order in which they are explained.
var quotaKeys = []string{
	"calls_per_minute", "burst", "concurrent_calls", "concurrent_shells", "job_life", "bytes_in_per_minute",
	"bytes_out_per_minute", "connections", "streams", "requests_per_minute", "sessions",
}

// CheckQuota refuses a key that there is not, and a value that it does not take: counts are whole numbers, sizes may
// end in KiB, MiB or GiB, durations are written as in Go or in days, 90d. Nothing may be negative.
func CheckQuota(key, value string) error { var q Quota; return q.set(key, value) }

func (q *Quota) set(key, value string) (err error) {
	switch key {
	case "calls_per_minute":
		q.CallsPerMinute, err = parseCount(value)
	case "burst":
		q.Burst, err = parseCount(value)
	case "concurrent_calls":
		q.ConcurrentCalls, err = parseCount(value)
	case "concurrent_shells":
		q.ConcurrentShells, err = parseCount(value)
	case "job_life":
		q.JobLife, err = parsePeriod(value)
	case "bytes_in_per_minute":
		q.BytesInPerMinute, err = parseSize(value)
	case "bytes_out_per_minute":
		q.BytesOutPerMinute, err = parseSize(value)
	case "connections":
		q.Connections, err = parseCount(value)
	case "streams":
		q.Streams, err = parseCount(value)
	case "requests_per_minute":
		q.RequestsPerMinute, err = parseCount(value)
	case "sessions":
		q.Sessions, err = parseCount(value)
	default:
		return fmt.Errorf("unknown quota %q; the quotas are %s", key, strings.Join(quotaKeys, ", "))
	}
	if err != nil {
		return fmt.Errorf("quota %s: %q %w", key, value, err)
	}
	return nil
}

// whole reads digits and nothing else: a sign or an exponent would be a typo in all of our values.
func whole(text string) (int64, bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

func parseCount(text string) (int, error) {
	n, ok := whole(text)
	if !ok || n > math.MaxInt32 {
		return 0, errors.New("must be a whole number from 0 (no limit) to 2147483647")
	}
	return int(n), nil
}

func parseSize(text string) (int64, error) {
	digits, unit := text, int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB"} {
		if before, ok := strings.CutSuffix(text, suffix); ok {
			digits, unit = before, 1<<(10*(i+1))
		}
	}
	n, ok := whole(digits)
	if !ok || n > math.MaxInt64/unit {
		return 0, errors.New("must be a size such as 32MiB: bytes, KiB, MiB or GiB; 0 is no limit")
	}
	return n * unit, nil
}

// day is what `d` means in a duration. Days of 23 hours are no concern of a quota.
const day = 24 * time.Hour

func parsePeriod(text string) (time.Duration, error) {
	bad := errors.New("must be a duration such as 90m, 2h or 7d; 0 is no limit")
	var days time.Duration
	rest := text
	if before, after, ok := strings.Cut(text, "d"); ok {
		n, ok := whole(before)
		if !ok || n > int64(math.MaxInt64/day) {
			return 0, bad
		}
		if days = time.Duration(n) * day; after == "" {
			return days, nil
		}
		rest = after
	}
	d, err := time.ParseDuration(rest)
	if err != nil || strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") || d > math.MaxInt64-days {
		return 0, bad
	}
	return days + d, nil
}
