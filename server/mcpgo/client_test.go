package mcpgo

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestCapabilities: what a modern client does not say, or not in the form of the protocol, is no capability.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]struct{ ok, forms bool }{
		``:                            {false, false},
		`null`:                        {false, false},
		`{}`:                          {true, false},
		`[]`:                          {false, false},
		`{"elicitation":{}}`:          {true, true},
		`{"elicitation":{"form":{}}}`: {true, true},
		`{"elicitation":{"url":{}}}`:  {true, false},
		`{"sampling":{}}`:             {true, false},
	} {
		caps, ok := Capabilities(json.RawMessage(raw))
		if ok != want.ok || ok && canElicit(caps.Elicitation) != want.forms {
			t.Errorf("%s: ok %t, takes forms %t", raw, ok, canElicit(caps.Elicitation))
		}
	}
}

func TestLogLevel(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]mcp.LoggingLevel{
		`{"params":{"_meta":{"io.modelcontextprotocol/logLevel":"warning"}}}`: mcp.LoggingLevelWarning,
		`{"params":{}}`: "",
		`{"params":{"_meta":{"io.modelcontextprotocol/logLevel":7}}}`: "",
	} {
		if got := logLevel([]byte(message)); got != want {
			t.Errorf("%s: %q", message, got)
		}
	}
}

// TestLookup: a header that is empty was sent all the same.
func TestLookup(t *testing.T) {
	t.Parallel()
	find := lookup(http.Header{"Mcp-Param-Word": {"a", "b"}, "Mcp-Param-None": {""}})
	for name, want := range map[string]struct {
		value string
		sent  bool
	}{"mcp-param-word": {"a", true}, "Mcp-Param-None": {"", true}, "Mcp-Param-Other": {"", false}} {
		if value, sent := find(name); value != want.value || sent != want.sent {
			t.Errorf("%s: %q, %t", name, value, sent)
		}
	}
}
