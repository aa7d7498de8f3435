package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// A Resource is one that a server offers, or a template of several. Nothing in it was cleaned.
type Resource struct {
	URI         string `json:"uri"`
	Template    string `json:"uriTemplate"` // instead of URI
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	MIME        string `json:"mimeType"`
	Size        *int64 `json:"size"` // in bytes; nil: the server does not say
}

// Resources asks for the resources of the server and their templates, at most most of them. left is how many were left
// out: they could not be read, or were too many. A server that offers none has none.
func (c *Conn) Resources(ctx context.Context, most int) (all []Resource, left int, err error) {
	if c.client.GetServerCapabilities().Resources == nil {
		return nil, 0, nil
	}
	c.raw.listing.Lock()
	defer c.raw.listing.Unlock()
	listed := func(cursor mcp.Cursor) (mcp.Cursor, error) {
		var r mcp.ListResourcesRequest
		r.Params.Cursor = cursor
		return within(ctx, c, func(ctx context.Context) (mcp.Cursor, error) {
			page, err := c.client.ListResourcesByPage(ctx, r)
			if err != nil {
				return "", err
			}
			return page.NextCursor, nil
		})
	}
	templates := func(cursor mcp.Cursor) (mcp.Cursor, error) {
		var r mcp.ListResourceTemplatesRequest
		r.Params.Cursor = cursor
		return within(ctx, c, func(ctx context.Context) (mcp.Cursor, error) {
			page, err := c.client.ListResourceTemplatesByPage(ctx, r)
			if err != nil {
				return "", err
			}
			return page.NextCursor, nil
		})
	}
	for i, ask := range []func(mcp.Cursor) (mcp.Cursor, error){listed, templates} {
		cursor := mcp.Cursor("")
		for range maxPages {
			got := new(resourceList)
			c.raw.resources.Store(got)
			next, err := ask(cursor)
			if err != nil && i > 0 && plainError(err) {
				break // it has resources, and no templates
			}
			if err != nil {
				return nil, 0, plainly(err)
			}
			left += got.bad
			for _, r := range got.found {
				if len(all) == most {
					left++
					continue
				}
				all = append(all, r)
			}
			if next == "" || next == cursor || len(all) == most {
				break
			}
			cursor = next
		}
	}
	return all, left, nil
}

// plainError says that the server answered, with an error.
func plainError(err error) bool {
	_, remote := errors.AsType[*RemoteError](plainly(err))
	return remote
}

// Read reads a resource: each part is a Block of kind resource. When ctx ends, the server is told to stop. Errors are
// those of Call.
func (c *Conn) Read(ctx context.Context, uri string) ([]Block, error) {
	if err := c.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	var r mcp.ReadResourceRequest
	r.Params.URI = uri
	token := fmt.Sprintf("r%d", c.tokens.Add(1))
	r.Params.Meta = &mcp.Meta{ProgressToken: token}
	got := new(contents)
	c.raw.calls.Store(token, got)
	defer c.raw.calls.Delete(token)
	_, err := within(ctx, c, func(ctx context.Context) (struct{}, error) {
		_, err := c.client.ReadResource(ctx, r)
		return struct{}{}, err
	})
	if err != nil {
		return nil, c.callError(ctx, err)
	}
	blocks := make([]Block, 0, len(got.Contents))
	for _, raw := range got.Contents {
		blocks = append(blocks, readBlock(append(append([]byte(`{"type":"resource","resource":`), raw...), '}')))
	}
	return blocks, nil
}

// A resourceList is one page of resources or of templates.
type resourceList struct {
	found []Resource
	bad   int // how many could not be read
}

// read reads the page, and leaves of it in the response what the library needs to ask for the next one.
func (l *resourceList) read(response *transport.JSONRPCResponse) (*transport.JSONRPCResponse, error) {
	var page struct {
		Resources []json.RawMessage `json:"resources"`
		Templates []json.RawMessage `json:"resourceTemplates"`
		Cursor    json.RawMessage   `json:"nextCursor,omitempty"`
	}
	if err := json.Unmarshal(response.Result, &page); err != nil {
		return nil, errors.New("its list of resources cannot be read")
	}
	for _, raw := range append(page.Resources, page.Templates...) {
		var r Resource
		if json.Unmarshal(raw, &r) != nil || (r.URI == "") == (r.Template == "") {
			l.bad++
			continue
		}
		l.found = append(l.found, r)
	}
	var err error
	page.Resources, page.Templates = []json.RawMessage{}, []json.RawMessage{}
	clean := *response
	clean.Result, err = json.Marshal(page)
	return &clean, err
}

// contents is what a resource has, as it arrived.
type contents struct {
	Contents []json.RawMessage `json:"contents"`
}

// read reads the contents, and leaves nothing of them in the response but that the server wants an answer first.
func (r *contents) read(response *transport.JSONRPCResponse) (*transport.JSONRPCResponse, error) {
	if asks, err := wantsInput(response); asks || err != nil {
		return response, err
	}
	*r = contents{}
	if err := json.Unmarshal(response.Result, r); err != nil {
		return nil, errUnreadable
	}
	clean := *response
	clean.Result = json.RawMessage(`{"contents":[]}`)
	return &clean, nil
}
