package web

import (
	"context"
	"errors"
)

type client struct{ o Options }

func newClient(o Options) *Client { return &Client{client{o: o}} }

func (c *client) fetch(context.Context, Request) (Page, error) {
	return Page{}, errors.ErrUnsupported
}

// Close closes idle connections and forgets all pages.
func (c *Client) Close() {}
