package toolset

import (
	"encoding/json"
	"fmt"
	"strings"

	"codehand/server/clients"
	"codehand/tools/session"
)

// Profiles says what is known of the programs that clients are.
type Profiles struct {
	Forced string // client.profile; "": each client has its own
	Lists  Lists
}

// NewProfiles makes Profiles. The error names a forced profile that does not exist.
func NewProfiles(forced string, lists Lists) (Profiles, error) {
	if _, ok := clients.Named(forced); forced != "" && !ok {
		return Profiles{}, fmt.Errorf("client.profile: there is no profile %s; there are %s", forced,
			strings.Join(clients.Names(), ", "))
	}
	return Profiles{Forced: forced, Lists: lists}, nil
}

// Add adds to a client what its profile says. model is what it talks to; "": it does not say.
// transport is that of pipeline.From.
func (p Profiles) Add(c session.Client, known clients.Profile, model, transport string) session.Client {
	known = known.ForModel(model)
	c.SeesAll = p.Lists.showsAll(known)
	inOrder, overtaken := known.Found == clients.ByNameInOrder, transport == "http"
	c.ByName = known.Found == clients.ByName || inOrder && !overtaken
	c.ByDispatcher = known.Found == clients.ByDispatcher || inOrder && overtaken
	c.MaxRunes, c.MaxBytes, c.MaxLines, c.MaxJSON = known.Runes, known.Bytes, known.Lines, known.JSON
	c.MaxImages, c.Patches, c.Numbers = imagesOf(known), known.Patches, known.Numbers
	c.Forms = session.Forms{NoTexts: known.NoTextFields, DeclinesAlone: known.DeclinesAlone}
	return c
}

// Of is the profile of a client's name, or the one that the operator forces.
func (p Profiles) Of(name string) clients.Profile {
	if forced, ok := clients.Named(p.Forced); ok {
		return forced
	}
	return clients.Find(name)
}

// Loads are the instructions of a project that a client reads by itself. Only on stdio do both work on one machine;
// what another client reads is of another place.
func (p Profiles) Loads(name, transport string) []string {
	if transport != "stdio" {
		return nil
	}
	return strings.Fields(p.Of(name).Loads)
}

// maxImages is how many images one result has at most, for every client.
const maxImages = 8

// imagesOf is how many images of one result a client takes.
func imagesOf(p clients.Profile) int {
	switch p.Images {
	case clients.AllImages:
		return maxImages
	case clients.FirstImage:
		return 1
	}
	return 0
}

// ModelOf is the model of which Codex speaks with a call: in an object, or in a text that holds one. "": it does not.
func ModelOf(turn json.RawMessage) string {
	var text string
	if json.Unmarshal(turn, &text) == nil {
		turn = json.RawMessage(text)
	}
	var said struct{ Model string }
	_ = json.Unmarshal(turn, &said) // what cannot be read says nothing
	return said.Model
}
