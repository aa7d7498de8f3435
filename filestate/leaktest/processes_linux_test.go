package leaktest

import "testing"

func TestMentions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"A=/t/12\x00B=1": true, "/t/12": true, "/t/12/x": true, "/t/123": false, "/t/123 /t/12/": true, "/t/1": false,
	} {
		if mentions([]byte(text), "/t/12") != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}
