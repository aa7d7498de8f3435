package limits

import (
	"strings"
	"testing"
	"time"
)

func TestQuotaSet(t *testing.T) {
	t.Parallel()
	const bad = -1
	for _, c := range []struct {
		key, value string
		want       int64
	}{
		{"calls_per_minute", "300", 300}, {"burst", "7", 7}, {"concurrent_calls", "0", 0}, {"concurrent_shells", "2147483647", 1<<31 - 1},
		{"connections", "9", 9}, {"streams", "10", 10}, {"requests_per_minute", "11", 11}, {"sessions", "12", 12},
		{"burst", "2147483648", bad}, {"burst", "-1", bad}, {"burst", "+1", bad}, {"burst", "1.5", bad}, {"burst", "", bad}, {"burst", "1e3", bad}, {"burst", " 1", bad},

		{"bytes_in_per_minute", "0", 0}, {"bytes_in_per_minute", "300", 300}, {"bytes_in_per_minute", "2KiB", 2048},
		{"bytes_out_per_minute", "32MiB", 32 << 20}, {"bytes_out_per_minute", "3GiB", 3 << 30},
		{"bytes_out_per_minute", "8589934591GiB", 8589934591 << 30}, {"bytes_out_per_minute", "8589934592GiB", bad},
		{"bytes_out_per_minute", "3GB", bad}, {"bytes_out_per_minute", "3 GiB", bad}, {"bytes_out_per_minute", "GiB", bad}, {"bytes_out_per_minute", "-1KiB", bad},
		{"bytes_out_per_minute", "1KiBMiB", bad}, {"bytes_out_per_minute", "99999999999999999999", bad},

		{"job_life", "0", 0}, {"job_life", "90m", int64(90 * time.Minute)}, {"job_life", "2d", int64(48 * time.Hour)}, {"job_life", "1d12h", int64(36 * time.Hour)},
		{"job_life", "106751d", int64(106751 * 24 * time.Hour)}, {"job_life", "106752d", bad}, {"job_life", "106751d24h", bad},
		{"job_life", "-1h", bad}, {"job_life", "1d-1h", bad}, {"job_life", "1d+1h", bad}, {"job_life", "d", bad}, {"job_life", "1dd", bad}, {"job_life", "5", bad}, {"job_life", "", bad},
		{"job_life", "1.5d", bad}, {"job_life", "1h1d", bad},
	} {
		var q Quota
		err := q.set(c.key, c.value)
		got := int64(q.CallsPerMinute+q.Burst+q.ConcurrentCalls+q.ConcurrentShells+q.Connections+q.Streams+q.RequestsPerMinute+q.Sessions) +
			q.BytesInPerMinute + q.BytesOutPerMinute + int64(q.JobLife)
		if c.want == bad {
			if err == nil || !strings.Contains(err.Error(), c.key) || got != 0 {
				t.Errorf("%s = %q is taken as %d (%v)", c.key, c.value, got, err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s = %q: got %d (%v), want %d", c.key, c.value, got, err, c.want)
		}
		if again := Check(c.key, c.value); (again == nil) != (err == nil) {
			t.Errorf("CheckQuota(%q, %q): %v", c.key, c.value, again)
		}
	}
}

// Each key sets a field of its own.
func TestQuotaKeys(t *testing.T) {
	t.Parallel()
	seen := map[Quota]string{{}: "no key"}
	for _, k := range Keys() {
		var q Quota
		key := k.Key
		value := "1"
		if key == "job_life" {
			value = "1h"
		}
		if err := q.set(key, value); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if other := seen[q]; other != "" {
			t.Errorf("%s sets what %s sets", key, other)
		}
		seen[q] = key
		if err := Check(key, k.Default); err != nil || k.Doc == "" {
			t.Errorf("default %q: %v; %q", k.Default, err, k.Doc)
		}
	}
	err := Check("calls_per_hour", "1")
	if err == nil {
		t.Fatal("an unknown key is taken")
	}
	for _, k := range Keys() {
		key := k.Key
		if !strings.Contains(err.Error(), key) {
			t.Errorf("the refusal of an unknown key does not name %s: %v", key, err)
		}
	}
}

// TestBurstFollowsRate: calls_per_minute=5 let 100 calls pass at once, because the burst stayed what it is for 600.
func TestBurstFollowsRate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		token, all map[string]string
		want       int // calls at once
	}{
		"nobody says anything":    {want: 100},
		"a small rate":            {token: map[string]string{"calls_per_minute": "5"}, want: 5},
		"a large rate":            {token: map[string]string{"calls_per_minute": "6000"}, want: 100},
		"no rate":                 {token: map[string]string{"calls_per_minute": "0"}, want: 1000},
		"both":                    {token: map[string]string{"calls_per_minute": "5", "burst": "20"}, want: 20},
		"the burst of all":        {token: map[string]string{"calls_per_minute": "5"}, all: map[string]string{"burst": "20"}, want: 5},
		"a burst alone":           {token: map[string]string{"burst": "20"}, all: map[string]string{"calls_per_minute": "5"}, want: 20},
		"a small rate of all":     {all: map[string]string{"calls_per_minute": "5"}, want: 5},
		"the rate is raised back": {token: map[string]string{"calls_per_minute": "600"}, all: map[string]string{"calls_per_minute": "5"}, want: 100},
	} {
		now := time.Now()
		l := &Limiter{now: func() time.Time { return now }}
		l.set(Resolve([]map[string]string{c.token, c.all}), now)
		passed := 0
		for range 1000 {
			if _, ok := l.Call(); ok {
				passed++
			}
		}
		if passed != c.want {
			t.Errorf("%s: %d calls pass at once, want %d", name, passed, c.want)
		}
	}
}
