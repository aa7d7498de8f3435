package limits

import (
	"errors"
	"fmt"
	"math"
	"slices"
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

// A QuotaKey is one limit, as files and tokens name it.
type QuotaKey struct {
	Key     string
	Default string // for a principal about whom the operator says nothing
	Doc     string // half a sentence
}

// Keys are all limits in the order in which they are explained. The slice is the caller's.
func Keys() []QuotaKey { return slices.Clone(quotaKeys[:]) }

var quotaKeys = [...]QuotaKey{
	{rateKey, "600", "most calls of tools in a minute; 0: no limit"},
	{burstKey, "100",
		"most calls at once before the rate counts; at most calls_per_minute if only that is set; 0: as many"},
	{"concurrent_calls", "16", "most calls that run at once; more wait; 0: no limit"},
	{"concurrent_shells", "4", "most commands that run at once in the foreground; more wait; 0: no limit"},
	{"job_life", "2h", "longest life of a background job; 0: no limit"},
	{"bytes_in_per_minute", "32MiB", "largest requests of a minute together; 0: no limit"},
	{"bytes_out_per_minute", "256MiB", "largest answers of a minute together; 0: no limit"},
	{"connections", "64", "most connections in use at once; 0: no limit"},
	{"streams", "64", "most streams open at once; 0: no limit"},
	{"requests_per_minute", "3000", "most requests of all kinds in a minute; 0: no limit"},
	{"sessions", "200", "most conversations with a session id at once; 0: no limit"},
}

const (
	rateKey  = "calls_per_minute"
	burstKey = "burst"
)

// defaultQuota is what holds for a principal about whom the operator says nothing.
func defaultQuota() Quota {
	var q Quota
	for _, k := range quotaKeys {
		_ = q.set(k.Key, k.Default) // a test sets each
	}
	return q
}

// Resolve makes the quota of a principal from sources by key, the most specific one first. Each value passed Check. A
// burst that is said less specifically than the rate is no more than the rate: a source that says 5 calls in a minute
// does not mean 100 at once.
func Resolve(sources []map[string]string) Quota {
	q := defaultQuota()
	for _, v := range slices.Backward(sources) {
		for key, value := range v {
			_ = q.set(key, value) // checked
		}
	}
	from := func(key string) int {
		return slices.IndexFunc(sources, func(v map[string]string) bool { _, says := v[key]; return says })
	}
	rate, burst := from(rateKey), from(burstKey)
	if rate >= 0 && (burst < 0 || burst > rate) && q.CallsPerMinute > 0 {
		q.Burst = min(q.Burst, q.CallsPerMinute)
	}
	return q
}

// Check refuses a key that there is not, and a value that it does not take: counts are whole numbers, sizes may
// end in KiB, MiB or GiB, durations are written as in Go or in days, 90d. Nothing may be negative.
func Check(key, value string) error { var q Quota; return q.set(key, value) }

func (q *Quota) set(key, value string) (err error) {
	switch key {
	case rateKey:
		q.CallsPerMinute, err = parseCount(value)
	case burstKey:
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
		names := make([]string, len(quotaKeys))
		for i, k := range quotaKeys {
			names[i] = k.Key
		}
		return fmt.Errorf("unknown quota %q; the quotas are %s", key, strings.Join(names, ", "))
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
