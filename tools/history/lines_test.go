package history

import (
	"testing"
	"time"
)

func TestChangeTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 23, 59, 0, 0, time.Local)
	for at, want := range map[time.Time]string{
		now.Add(-time.Hour):              "22:59:00",
		now.Add(-24 * time.Hour):         "2026-11-21 23:59:00",
		now.Add(-time.Hour).UTC():        "22:59:00", // the time is that of the machine
		now.AddDate(-1, 0, 0).Add(-59e9): "2025-11-22 23:58:01",
	} {
		if got := Clock(at, now); got != want {
			t.Errorf("%v is %q, want %q", at, got, want)
		}
	}
}
