package resources

import (
	"encoding/json"
	"strings"
	"testing"
)

// A list that an answer does not hold was cut without a word: half of the tasks looked like all.
func TestListedJSON(t *testing.T) {
	t.Parallel()
	if text, err := listJSON([]string(nil)); err != nil || text != "[]" {
		t.Errorf("nothing: %q, %v", text, err)
	}
	long := make([]string, 1000)
	for i := range long {
		long[i] = strings.Repeat("x", 1000)
	}
	text, err := listJSON(long)
	var all []json.RawMessage
	if err != nil || len(text) > maxPage || json.Unmarshal([]byte(text), &all) != nil {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	var last struct {
		LeftOut int `json:"left_out"`
	}
	if err := json.Unmarshal(all[len(all)-1], &last); err != nil || last.LeftOut == 0 || last.LeftOut+len(all)-1 != len(long) {
		t.Errorf("%d entries are shown, and the last is %.80s", len(all)-1, all[len(all)-1])
	}
}
