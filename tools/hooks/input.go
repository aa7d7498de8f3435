package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// hookInput is what a hook reads on its standard input. The names are those that hook scripts of other agents know.
type hookInput struct {
	SessionID      string          `json:"session_id"`
	TranscriptPath string          `json:"transcript_path"` // "": the conversation is the client's; scripts expect the key
	Cwd            string          `json:"cwd"`
	PermissionMode string          `json:"permission_mode"`
	Event          string          `json:"hook_event_name"`
	AgentID        string          `json:"agent_id,omitempty"`
	AgentType      string          `json:"agent_type,omitempty"`
	ToolName       string          `json:"tool_name,omitempty"`
	ToolInput      json.RawMessage `json:"tool_input,omitempty"`
	ToolUseID      string          `json:"tool_use_id,omitempty"`
	ToolResponse   *string         `json:"tool_response,omitempty"`
	Error          *string         `json:"error,omitempty"` // PostToolUseFailure: the response again, where scripts look for it
	DurationMS     *int64          `json:"duration_ms,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	Source         string          `json:"source,omitempty"`
	FilePath       string          `json:"file_path,omitempty"`
}

// input writes an event as hooks read it.
func (r *Runner) input(e Event) ([]byte, error) {
	t := hookInput{
		SessionID: e.Session, Cwd: e.Cwd, PermissionMode: e.Mode.String(), Event: e.Name, AgentID: e.Agent,
		AgentType: e.AgentType,
		ToolName:  r.toolName(e), ToolInput: e.Input, ToolUseID: e.Call, Reason: e.Reason, Source: e.Source,
		FilePath: e.File,
	}
	if comments(e.Name) {
		ms := e.Took.Milliseconds()
		t.ToolResponse, t.DurationMS = &e.Response, &ms
		if e.Failed {
			t.Error = &e.Response
		}
	}
	return line(t)
}

// toolName is the first other spelling of a tool, which is what other agents call it, or ours.
func (r *Runner) toolName(e Event) string {
	if r.o.OwnNames || len(e.Aliases) == 0 {
		return e.Tool
	}
	return e.Aliases[0]
}

// line writes JSON with `&`, `<` and `>` as they are, since scripts look for them without reading JSON.
func line(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write what hooks are told: %w", err)
	}
	return b.Bytes(), nil
}
