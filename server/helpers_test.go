package server

import (
	"encoding/json"
	"testing"
)

// A wireKind is a way to connect.
type wireKind struct{ transport, era string }

func asText(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return string(raw)
}
