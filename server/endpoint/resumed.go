package endpoint

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"codehand/server/jsonrpc"
)

// A resumed is the answer to a request that is sent again when the node which served it dies. An event stream that one
// node began is gone on with by the next one: what that answers instead of a stream becomes the last event.
type resumed struct {
	http.ResponseWriter
	whole  bool // no other node goes on with it, as with a stream that ends only with its client
	status int  // that the client got; 0: nothing has left
	events bool // what has left is an event stream
	tail   []byte

	header http.Header // of a later answer, which never leaves; nil: this is the first
	plain  bool        // that answer is no stream
	body   []byte      // of it
}

// Unwrap is for http.ResponseController.
func (w *resumed) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *resumed) Header() http.Header {
	if w.header != nil {
		return w.header
	}
	return w.ResponseWriter.Header()
}

func (w *resumed) WriteHeader(status int) {
	stream := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
	if w.header != nil {
		w.plain = !stream
		return
	}
	w.status, w.events = status, stream
	w.ResponseWriter.WriteHeader(status)
}

func (w *resumed) Write(p []byte) (int, error) {
	if w.plain {
		w.body = append(w.body, p...)
		return len(p), nil
	}
	if w.events {
		w.tail = append(w.tail, p[max(0, len(p)-2):]...)
		w.tail = w.tail[max(0, len(w.tail)-2):]
	}
	return w.ResponseWriter.Write(p)
}

// next says whether another node may go on with the answer, and prepares for that.
func (w *resumed) next() bool {
	if w.status == 0 {
		return true
	}
	if w.whole || !w.events || len(w.tail) > 0 && string(w.tail) != "\n\n" || w.plain && len(w.body) > 0 {
		return false
	}
	w.header, w.plain, w.body = http.Header{}, false, nil
	return true
}

// end ends the answer to a request.
func (w *resumed) end(request []byte) {
	if !w.plain || len(w.body) == 0 {
		return
	}
	var answer struct {
		ID    json.RawMessage
		Error *jsonrpc.Error
	}
	if json.Unmarshal(w.body, &answer) == nil && answer.ID == nil && answer.Error != nil {
		if env, fault := jsonrpc.Scan(request); fault == nil { // one of HTTP, which names no request
			w.body = jsonrpc.ErrorLine(env.ID, answer.Error)
		}
	}
	w.event(w.body)
}

// event writes an event to the client, as the last one.
func (w *resumed) event(message []byte) {
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.SetWriteDeadline(time.Now().Add(writeTime))
	data := bytes.TrimSuffix(message, []byte("\n"))
	_, _ = w.ResponseWriter.Write([]byte("event: message\ndata: " + string(data) + "\n\n")) // it may be gone
}
