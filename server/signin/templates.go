package signin

import (
	"embed"
	"html/template"
	"net/http"
	"time"
)

//go:embed pages
var files embed.FS

// assets are what pages load, with their types.
var assets = map[string]string{
	"signin.css": "text/css; charset=utf-8", "passkey.js": "text/javascript; charset=utf-8",
	"icon.svg": "image/svg+xml",
}

func serveAsset(w http.ResponseWriter, r *http.Request, name, kind string) {
	text, err := files.ReadFile("pages/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(text) // a browser that is gone needs no answer
}

func parseTemplates() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"day": func(t time.Time) string {
			if t.IsZero() {
				return "never"
			}
			return t.UTC().Format("2 Jan 2006")
		},
		"minute": func(t time.Time) string {
			if t.IsZero() {
				return "never"
			}
			return t.UTC().Format("2 Jan 2006, 15:04 UTC")
		},
	}).ParseFS(files, "pages/*.html")
}
