package resources

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/tool"
)

// For is the library as tools see it in calls of one session. view is asked each time.
func (l *Library) For(view func() View) tool.Library { return called{l, view} }

// called is a Library in a call.
type called struct {
	*Library
	view func() View
}

// List is tool.Library.
func (c called) List(ctx context.Context) ([]tool.Resource, error) {
	listed, err := c.Library.List(ctx, c.view())
	all := make([]tool.Resource, 0, len(listed))
	for _, r := range listed {
		all = append(all, tool.Resource{URI: r.URI, Name: r.Name, Title: r.Title, MIME: r.MIMEType, Size: r.Size})
	}
	return all, err
}

// Read is tool.Library.
func (c called) Read(ctx context.Context, uri string) (tool.Contents, string, bool, error) {
	got, err := c.Library.Read(ctx, c.view(), uri)
	switch {
	case errors.Is(err, ErrNone):
		return tool.Contents{}, "", false, nil
	case errors.Is(err, ErrWindow), errors.Is(err, ErrTooLarge):
		return tool.Contents{}, err.Error(), true, nil
	case err != nil:
		return tool.Contents{}, "", false, err
	}
	name, _, _ := strings.Cut(uri, "?")
	own := strings.HasPrefix(uri, skillScheme) || name == guideURI || name == projectURI
	switch r := got.(type) {
	case mcp.TextResourceContents:
		return tool.Contents{MIME: r.MIMEType, Text: r.Text, Own: own}, "", true, nil
	case mcp.BlobResourceContents:
		data, err := base64.StdEncoding.DecodeString(r.Blob)
		return tool.Contents{MIME: r.MIMEType, Data: data}, "", true, err
	}
	return tool.Contents{}, "", false, fmt.Errorf("a resource of type %T", got)
}
