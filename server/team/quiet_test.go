package team

import (
	"testing"
	"time"
)

// TestQuiet: of many like events one in 10 s is told, with how many there were since the last; others have their own.
func TestQuiet(t *testing.T) {
	now := time.Unix(1, 0)
	q := &quiet{now: func() time.Time { return now }, seen: map[string]*quietSpan{}}
	for i, c := range []struct {
		name  string
		after time.Duration
		want  int
	}{{"a", 0, 1}, {"a", 0, 0}, {"b", 0, 1}, {"a", quietFor - 1, 0}, {"a", 1, 3}, {"a", 0, 0}} {
		now = now.Add(c.after)
		if got := q.due(c.name); got != c.want {
			t.Errorf("%d: %s is due %d times, want %d", i, c.name, got, c.want)
		}
	}
}
