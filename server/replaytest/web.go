package replaytest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// webDir begins the names of sections that are pages: web/HOST/PATH. What stands before an empty line there are the
// status and headers.
const webDir = "web/"

// Settings are those of the session. If the file has pages, web.proxy is among them: a proxy that serves these pages
// and nothing else, so that no test reaches the network and no server needs to open loopback addresses.
func (f *Script) Settings(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{"read.line_format": "tab"} // so that answers show which lines they are
	maps.Copy(all, f.Config)
	if slices.ContainsFunc(f.archive.Files, func(file txtar.File) bool { return strings.HasPrefix(file.Name, webDir) }) {
		all["web.proxy"] = f.proxy(t)
	}
	return all
}

// proxy speaks plain HTTP only: to https it says that there is none.
func (f *Script) proxy(t testing.TB) string {
	t.Helper()
	pages := map[string]string{}
	for _, file := range f.archive.Files {
		name, data, err := section(file)
		must(t, err)
		if at, ok := strings.CutPrefix(name, webDir); ok {
			pages[at] = string(data)
		}
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Host+r.URL.RequestURI()]
		switch {
		case r.Method != http.MethodGet:
			http.Error(w, "only http here", http.StatusBadGateway)
		case !ok:
			http.NotFound(w, r)
		default:
			head, body, _ := strings.Cut(page, "\n\n")
			status := http.StatusOK
			for line := range strings.Lines(head) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				if key == "Status" {
					status, _ = strconv.Atoi(value)
					continue
				}
				w.Header().Set(key, value)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) // a server that went away needs none
		}
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}
