package limits

import (
	"slices"
	"testing"
	"time"
)

// Each limit counts what is used of it and nothing else, and a rate forgets as time goes by.
func TestUses(t *testing.T) {
	t.Parallel()
	l, at := limited(Quota{CallsPerMinute: 60, Burst: 10, ConcurrentCalls: 2, ConcurrentShells: 1, BytesInPerMinute: 600,
		BytesOutPerMinute: 6000, Connections: 8, Streams: 4, RequestsPerMinute: 120})
	for range 4 {
		l.Call()
	}
	turns := []*Turn{l.Arrive(), l.Arrive(), l.Arrive(), l.Shell()}
	if err := l.Request(100); err != nil {
		t.Fatal(err)
	}
	l.Sent(7000)
	for _, remote := range []string{"1.2.3.4:5", "1.2.3.4:5", "@"} {
		if _, err := l.Connection(remote); err != nil {
			t.Fatal(err)
		}
	}
	end, err := l.Stream()
	if err != nil {
		t.Fatal(err)
	}
	want := []Use{
		{"burst", 4, 10, 0}, {"concurrent_calls", 2, 2, 1}, {"concurrent_shells", 1, 1, 0},
		{"bytes_in_per_minute", 100, 600, 0}, {"bytes_out_per_minute", 7000, 6000, 0}, {"connections", 2, 8, 0},
		{"streams", 1, 4, 0}, {"requests_per_minute", 1, 120, 0},
	}
	if got := l.Uses(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	end()
	for _, turn := range turns {
		turn.Leave()
	}
	at.move(2 * time.Second)
	want[0].Used, want[1], want[2].Used, want[6].Used = 2, Use{"concurrent_calls", 0, 2, 0}, 0, 0
	want[3].Used, want[4].Used, want[7].Used = 80, 6800, 0
	if got := l.Uses(); !slices.Equal(got, want) {
		t.Errorf("later %v, want %v", got, want)
	}
	for _, u := range want {
		if Check(u.Key, "1") != nil {
			t.Errorf("%s is no limit", u.Key)
		}
	}

	free, _ := limited(Quota{})
	free.Call()
	if got := free.Uses(); got != nil {
		t.Errorf("without limits %v", got)
	}
	rated, _ := limited(Quota{CallsPerMinute: 5})
	rated.Call()
	if got := rated.Uses(); !slices.Equal(got, []Use{{"calls_per_minute", 1, 5, 0}}) {
		t.Errorf("without a burst %v", got)
	}
}
