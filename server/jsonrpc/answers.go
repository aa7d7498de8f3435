package jsonrpc

import (
	"bytes"
	"encoding/json"
)

// An Error is a JSON-RPC error as it is sent.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// ResultLine makes the line of a result, which is body.
func ResultLine(id json.RawMessage, body []byte) []byte {
	b := make([]byte, 0, len(id)+len(body)+40)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":`...)
	b = append(b, body...)
	return append(b, "}\n"...)
}

// ErrorLine makes the line of an error. An id that was not found is null.
func ErrorLine(id json.RawMessage, e *Error) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	body, err := Marshal(e)
	if err != nil { // Data that cannot be encoded; the code and the message always can
		body, _ = Marshal(&Error{Code: e.Code, Message: e.Message})
	}
	b := make([]byte, 0, len(id)+len(body)+40)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"error":`...)
	b = append(b, body...)
	return append(b, "}\n"...)
}

// NoticeLine returns the line of a notification of our own. params nil: it has none.
func NoticeLine(method string, params any) ([]byte, error) {
	line, err := Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", method, params})
	return append(line, '\n'), err
}

// Marshal is json.Marshal without HTML escapes.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
