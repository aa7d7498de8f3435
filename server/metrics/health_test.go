package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// probe asks h and returns status and body.
func probe(h *Health, target string, full bool) (int, string) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	if strings.HasPrefix(target, "/healthz") {
		h.ServeAlive(w, r)
	} else {
		h.ServeReady(w, r, full)
	}
	return w.Code, strings.TrimSuffix(w.Body.String(), "\n")
}

func says(text string, err error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, err }
}

func TestReadyz(t *testing.T) {
	t.Parallel()
	down := errors.New("no answer\nfrom 10.0.0.7")
	for _, c := range []struct {
		name     string
		phase    string
		store    error
		audit    error // essential
		target   string
		full     bool
		status   int
		wantBody string
	}{
		{"starting", "starting", nil, nil, "/readyz", true, 503, `{"ready":false,"replica":"r1","version":"1.2","checks":{"server":"starting"}}`},
		{"starting, for others", "starting", nil, nil, "/readyz", false, 503, `{"ready":false}`},
		{"all well", "", nil, nil, "/readyz", true, 200, `{"ready":true,"replica":"r1","version":"1.2","checks":{"audit":"ok","sandbox":"3","store":"ok"}}`},
		{"all well, for others", "", nil, nil, "/readyz", false, 200, `{"ready":true}`},
		{"all well, strictly", "", nil, nil, "/readyz?strict=1", false, 200, `{"ready":true}`},
		{"store down", "", down, nil, "/readyz", true, 200,
			`{"ready":true,"replica":"r1","version":"1.2","checks":{"audit":"ok","sandbox":"3","store":"degraded: no answer from 10.0.0.7"}}`},
		{"store down, for others", "", down, nil, "/readyz", false, 200, `{"ready":true}`},
		{"store down, strictly", "", down, nil, "/readyz?strict=1", false, 503, `{"ready":false}`},
		{"not strict enough", "", down, nil, "/readyz?strict=0", false, 200, `{"ready":true}`},
		{"no audit", "", nil, errors.New("disk full"), "/readyz", true, 503,
			`{"ready":false,"replica":"r1","version":"1.2","checks":{"audit":"degraded: disk full","sandbox":"3","store":"ok"}}`},
		{"draining", "draining", nil, nil, "/readyz", true, 503, `{"ready":false,"replica":"r1","version":"1.2","checks":{"server":"draining"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := NewHealth("r1", "1.2")
			h.AddCheck("store", false, says("", c.store))
			h.AddCheck("audit", true, says("", c.audit))
			h.AddCheck("sandbox", false, says("3", nil))
			switch c.phase {
			case "":
				h.Ready()
			case "draining":
				h.Ready()
				h.Drain()
			}
			if status, body := probe(h, c.target, c.full); status != c.status || body != c.wantBody {
				t.Errorf("got %d %s\nwant %d %s", status, body, c.status, c.wantBody)
			}
			if status, body := probe(h, "/healthz", false); status != 200 || body != "ok" {
				t.Errorf("/healthz: %d %q", status, body)
			}
		})
	}
}

func TestHealthMethods(t *testing.T) {
	t.Parallel()
	h := NewHealth("r1", "1.2")
	for _, c := range []struct {
		method string
		status [2]int // of /healthz and /readyz
	}{
		{http.MethodHead, [2]int{200, 503}}, {http.MethodPost, [2]int{405, 405}}, {http.MethodOptions, [2]int{405, 405}},
	} {
		alive, ready := httptest.NewRecorder(), httptest.NewRecorder()
		h.ServeAlive(alive, httptest.NewRequest(c.method, "/healthz", nil))
		h.ServeReady(ready, httptest.NewRequest(c.method, "/readyz", nil), true)
		for i, w := range []*httptest.ResponseRecorder{alive, ready} {
			if w.Code != c.status[i] || w.Body.Len() > 0 {
				t.Errorf("%s: got %d %q, want %d and no body", c.method, w.Code, w.Body, c.status[i])
			}
			if w.Code == 405 && w.Header().Get("Allow") != "GET, HEAD" || w.Code != 405 && w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", c.method, w.Header())
			}
		}
	}
}

// Once it drains, a server never becomes ready again, even if the start ends later.
func TestHealthDrainStays(t *testing.T) {
	t.Parallel()
	h := NewHealth("r1", "1.2")
	h.Drain()
	h.Ready()
	if status, _ := probe(h, "/readyz", false); status != 503 || !h.Draining() {
		t.Errorf("%d, draining %v", status, h.Draining())
	}
}

func TestHealthIsCached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth("r1", "1.2")
		var asked atomic.Int32
		h.AddCheck("store", false, func(context.Context) (string, error) {
			time.Sleep(100 * time.Millisecond)
			asked.Add(1)
			return "", nil
		})
		h.Ready()
		var wg sync.WaitGroup
		for range 20 { // at the same time
			wg.Go(func() { probe(h, "/readyz", false) })
		}
		wg.Wait()
		time.Sleep(healthAge - time.Millisecond)
		probe(h, "/readyz", false)
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times in one second", n)
		}
		time.Sleep(time.Millisecond)
		probe(h, "/readyz", false)
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times after it, want 2", n)
		}
		h.Drain()
		time.Sleep(healthAge)
		probe(h, "/readyz", false)
		if n := asked.Load(); n != 2 {
			t.Errorf("asked while draining")
		}
	})
}

// A check that hangs costs 500 ms, hides nothing of the others, is not started a second time, and what it says in the
// end is not believed, since it is old.
func TestHealthHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth("r1", "1.2")
		release := make(chan struct{})
		var asked, polite atomic.Int32
		h.AddCheck("store", false, func(context.Context) (string, error) {
			if asked.Add(1) == 1 {
				<-release
				return "old", nil
			}
			return "new", nil
		})
		h.AddCheck("polite", false, func(ctx context.Context) (string, error) {
			if polite.Add(1) == 1 {
				<-ctx.Done()
			}
			return "", ctx.Err()
		})
		h.AddCheck("audit", true, says("", nil))
		h.Ready()
		read := func() map[string]string {
			start := time.Now()
			_, body := probe(h, "/readyz", true)
			if took := time.Since(start); took > healthTime {
				t.Errorf("took %v", took)
			}
			var r readiness
			if err := json.Unmarshal([]byte(body), &r); err != nil {
				t.Fatal(err)
			}
			return r.Checks
		}
		const late = "degraded: no answer within 500ms"
		if got := read(); got["store"] != late || got["polite"] != late || got["audit"] != "ok" {
			t.Errorf("first: %v", got)
		}
		time.Sleep(healthAge)
		if got := read(); got["store"] != late || got["polite"] != "ok" || got["audit"] != "ok" || asked.Load() != 1 {
			t.Errorf("second: %v, asked %d times", got, asked.Load())
		}
		close(release)
		time.Sleep(healthAge)
		if got := read(); got["store"] != "new" || asked.Load() != 2 {
			t.Errorf("third: %v, asked %d times", got, asked.Load())
		}
	})
}

func TestHealthPanics(t *testing.T) {
	t.Parallel()
	h := NewHealth("r1", "1.2")
	h.AddCheck("store", false, func(context.Context) (string, error) { panic("secret") })
	h.AddCheck("long", false, says("", errors.New(strings.Repeat("x", 1000))))
	h.Ready()
	status, body := probe(h, "/readyz", true)
	if status != 200 || strings.Contains(body, "secret") || !strings.Contains(body, "degraded: internal error") || len(body) > 400 {
		t.Errorf("%d %s", status, body)
	}
}
