package server

import (
	"codehand/server/clients"
	"codehand/server/tenants"
	"codehand/tools/session"
)

// profiles says what is known of the programs that clients are.
type profiles struct {
	forced string // client.profile; "": each client has its own
	lists  tenants.Lists
}

// add adds to a client what its profile says.
func (p profiles) add(c session.Client) session.Client {
	known := p.of(c.Name)
	c.SeesAll = p.lists.ShowsAll(known)
	c.MaxRunes, c.MaxBytes, c.MaxLines = known.Runes, known.Bytes, known.Lines
	c.MaxImages = imagesOf(known)
	c.NoTextFields, c.DeclinesAlone = known.NoTextFields, known.DeclinesAlone
	return c
}

// of is the profile of a client's name, or the one that the operator forces.
func (p profiles) of(name string) clients.Profile {
	if forced, ok := clients.Named(p.forced); ok {
		return forced
	}
	return clients.Find(name)
}

// maxImages is how many images one result has at most, whoever reads it.
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
