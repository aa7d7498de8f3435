package upstream

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// A Form is a question of a server to the person. Nothing in it was cleaned.
type Form struct {
	Message string
	Schema  json.RawMessage // of an object with flat fields
}

// A Reply is what a person answers. Action is accept, decline or cancel; only accept has a content, a JSON object.
type Reply struct {
	Action  string
	Content json.RawMessage
}

// The actions of a Reply.
const (
	Accept  = string(mcp.ElicitationResponseActionAccept)
	Decline = string(mcp.ElicitationResponseActionDecline)
	Cancel  = string(mcp.ElicitationResponseActionCancel)
)

// mostQuestion is how many bytes the schema of a question may have.
const mostQuestion = 64 << 10

// asked puts questions of a server to whoever Options.Ask is.
type asked struct {
	put func(context.Context, Form) Reply // nil: nobody
}

// Elicit is that of the library, in either era. It is no error that nobody can be asked.
func (a asked) Elicit(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	said := Reply{Action: Cancel}
	schema, err := json.Marshal(r.Params.RequestedSchema)
	form := r.Params.Mode == "" || r.Params.Mode == mcp.ElicitationModeForm
	switch {
	case err != nil || !form || len(schema) > mostQuestion || len(r.Params.Message) > mostQuestion:
		// such as an address to open, which only the person's own program could check
	case a.put != nil:
		said = a.put(ctx, Form{r.Params.Message, schema})
	}
	result := &mcp.ElicitationResult{}
	result.Action = mcp.ElicitationResponseAction(said.Action)
	if said.Action == Accept {
		result.Content = said.Content
	}
	return result, nil
}
