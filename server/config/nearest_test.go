package config

import "testing"

// TestNearest: the name that was probably meant, and none where that would be a guess.
func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"call", "classify", "doctor", "history", "permissions", "serve", "log.level", "log.file"}
	for word, want := range map[string]string{
		"cal": "call", "hsitory": "history", "Serve": "serve", "doktor": "doctor", "perm": "permissions",
		"log.levle": "log.level", "log.fil": "log.file", "x": "", "": "", "zzz": "", "callcenter": "", "ll": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
