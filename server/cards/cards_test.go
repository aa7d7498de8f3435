package cards

import (
	"slices"
	"strings"
	"testing"
)

func TestShows(t *testing.T) {
	t.Parallel()
	of := func(said any) map[string]any { return map[string]any{extension: said} }
	if !Shows(of(map[string]any{"mimeTypes": []any{"text/plain", MIMEType}})) {
		t.Error("a client that shows cards is not believed")
	}
	for _, said := range []map[string]any{
		nil, of(nil), of(1), of(map[string]any{}), of(map[string]any{"mimeTypes": MIMEType}), of(make(chan int)),
		of(map[string]any{"mimeTypes": []any{"text/html"}}), {"other": map[string]any{"mimeTypes": []any{MIMEType}}},
	} {
		if Shows(said) {
			t.Errorf("%v shows cards", said)
		}
	}
}

// TestCardIsClosed: the page is small, names no other address and takes nothing for code.
func TestCardIsClosed(t *testing.T) {
	t.Parallel()
	if len(HTML) > 30_000 {
		t.Errorf("it has %d bytes", len(HTML))
	}
	for _, bad := range []string{"://", "src=", "href=", "innerHTML", "outerHTML", "insertAdjacent", "eval(", "Function(", "document.write", "fetch(", "import("} {
		at := strings.Index(strings.ReplaceAll(HTML, "codehand://", ""), bad)
		if at >= 0 {
			t.Errorf("it has %q", bad)
		}
	}
	for _, tool := range []string{"undo_change", "job_stop"} { // what its buttons call
		if !slices.Contains(strings.Split(HTML, "'"), tool) {
			t.Errorf("no button calls %s", tool)
		}
	}
}
