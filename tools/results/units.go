package results

import (
	"strconv"
	"time"
)

// Count writes n as texts for the model do: 61,204.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Seconds writes d as texts for the model do: tenths below a minute unless they are zero, then whole seconds.
func Seconds(d time.Duration) string {
	if d >= time.Minute {
		return Count(int(d.Round(time.Second)/time.Second)) + " s"
	}
	return strconv.FormatFloat(float64(d.Round(100*time.Millisecond))/float64(time.Second), 'f', -1, 64) + " s"
}

// Size writes a number of bytes in the largest unit that leaves at least 1: 312 bytes, 4.8 MB, 1.2 GB (powers of
// 1,024).
func Size(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " bytes"
	}
	unit, value := "KB", float64(n)/(1<<10)
	for _, next := range []string{"MB", "GB", "TB"} {
		if value < 1<<10 {
			break
		}
		unit, value = next, value/(1<<10)
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + unit
}
