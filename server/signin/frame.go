package signin

import (
	"embed"
	"net/http"
	"strings"
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

// A view is what every page knows of its request.
type view struct {
	title    string
	base     string // leads to /signin/
	query    string // ends links to pages of ours
	token    string // CSRF
	alone    bool
	who      string // who is signed in; "": no person
	passkeys bool   // the browser can have some here
}

// page is the whole document.
func (v view) page(inside node) string {
	var b strings.Builder
	b.WriteString("<!doctype html>\n")
	el("html", attrs{"lang", "en"},
		el("head", nil,
			el("meta", attrs{"charset", "utf-8"}),
			el("meta", attrs{"name", "viewport", "content", "width=device-width, initial-scale=1"}),
			el("meta", attrs{"name", "color-scheme", "content", "light dark"}),
			el("meta", attrs{"name", "robots", "content", "noindex"}),
			el("title", nil, text(v.title+" - codehand")),
			el("link", attrs{"rel", "icon", "href", v.base + "icon.svg", "type", "image/svg+xml"}),
			el("link", attrs{"rel", "stylesheet", "href", v.base + "signin.css"})),
		el("body", nil,
			el("header", nil, el("p", attrs{"class", "brand"}, text("codehand")),
				when(v.who != "", v.form("logout", styled("who", v.who), text(" "),
					el("button", attrs{"class", "quiet"}, text("Sign out"))))),
			el("main", nil, el("h1", nil, text(v.title)), inside)))(&b)
	return b.String()
}

// form posts to a page below /signin/; "": to the page itself.
func (v view) form(to string, inside ...node) node {
	with := attrs{"method", "post"}
	if to != "" {
		with = append(with, "action", v.base+to)
	}
	return el("form", with, hiddenField("csrf", v.token), all(inside...))
}

// passkey is a part that only a script can use. It is hidden until the script finds that it can.
func (v view) passkey(kind, ask string, inside ...node) node {
	with := attrs{"class", "passkey", "hidden", "", "data-passkey", kind, "data-base", v.base, "data-csrf", v.token}
	if ask != "" {
		with = append(with, "data-ask", ask)
	}
	return when(v.passkeys, el("div", with, all(inside...), el("p", attrs{"class", "wrong", "role", "status"})),
		el("script", attrs{"src", v.base + "passkey.js", "defer", ""}))
}

// wrong says what to do differently.
func wrong(s string) node {
	return when(s != "", el("p", attrs{"class", "wrong", "role", "alert", "id", "wrong"}, text(s)))
}

// nameField tells a password manager whose password it is.
func nameField(name string) node {
	return el("input", attrs{"class", "away", "type", "text", "name", "name", "autocomplete", "username",
		"tabindex", "-1", "aria-hidden", "true", "readonly", ""}.with("value", name))
}

func day(t time.Time) string { return dated(t, "2 Jan 2006") }

func minute(t time.Time) string { return dated(t, "2 Jan 2006, 15:04 UTC") }

func dated(t time.Time, layout string) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(layout)
}
