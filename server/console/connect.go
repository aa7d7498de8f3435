package console

import (
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"codehand/server/clients"
	"codehand/server/public"
)

// connecting is what a person does to connect clients with this server.
type connecting struct {
	URL   string // of /mcp
	Files []pasted
	Chats []public.Chat // that take the URL; nil: it is none that they can call
}

// A pasted is what one client's file says.
type pasted struct {
	clients.Snippet
	Places []fileAt
	Opens  template.URL // makes the client add the server, after a question of its own; "": it cannot
}

// A fileAt is where that file is on a system, or in a project.
type fileAt struct{ System, Path string }

// places name the systems of a file together where it is at the same place.
func places(f clients.Files) []fileAt {
	list := []fileAt{{"Linux", f.Linux}, {"macOS", f.MacOS}, {"Windows", f.Windows}}
	if f.Linux == f.MacOS {
		list = []fileAt{{"Linux and macOS", f.Linux}, {"Windows", f.Windows}}
	}
	list = append(list, fileAt{"in one project", f.Project})
	return slices.DeleteFunc(list, func(f fileAt) bool { return f.Path == "" })
}

// connect shows how clients are connected. Nothing there is a secret: each client signs in by itself.
func (c *Console) connect(w http.ResponseWriter, r *http.Request, p Person) {
	v := connecting{URL: address(c.o, r) + "/mcp"}
	for _, s := range clients.Snippets(clients.Endpoint{URL: v.URL}) {
		v.Files = append(v.Files, pasted{s, places(s.Files), template.URL(s.Adds)})
	}
	if c.o.SignIn && strings.HasPrefix(c.o.Public, "https://") {
		v.Chats = public.Chats()
	}
	c.show(w, r, http.StatusOK, view{Title: "Connect", Person: p, Now: time.Now(), pages: pages{Connect: &v}})
}
