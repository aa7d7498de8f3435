package state_test

import (
	"errors"
	"testing"

	"codehand/server/state"
)

// A fenced Store is written only while that is permitted, and always read.
func TestFenced(t *testing.T) {
	t.Parallel()
	inner := state.NewMemory(state.MemoryOptions{})
	defer func() { must(t, inner.Close()) }()
	if state.Fenced(inner, nil) != inner {
		t.Error("without a fence it is another Store")
	}
	var why error
	s := state.Fenced(inner, func() error { return why })
	must(t, s.Set(t.Context(), "key.a", []byte("1")))
	why = errors.New("closed")
	_, swapErr := s.Swap(t.Context(), "key.b", []byte("1"), 0)
	for name, err := range map[string]error{
		"set": s.Set(t.Context(), "key.a", []byte("2")), "swap": swapErr,
		"delete": s.Delete(t.Context(), "key.a"), "append": s.Append(t.Context(), "audit", []byte("1")),
	} {
		if !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	value, _, err := s.Get(t.Context(), "key.a")
	if err != nil || string(value) != "1" {
		t.Errorf("it holds %q, %v", value, err)
	}
	why = nil
	must(t, s.Delete(t.Context(), "key.a"))
}
