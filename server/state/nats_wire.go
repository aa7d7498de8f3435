package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// Codes of errors of JetStream.
const (
	codeNoPeers     = 10005 // for as many replicas
	codeFewPeers    = 10074 // for as many replicas
	codeNoMessage   = 10037
	codeNotDeleted  = 10057 // the message is not there any more
	codeLostOne     = 10071 // wrong last sequence, on one server
	codeLostThree   = 10164 // the same on three
	codeStoreFailed = 10077 // of a full stream, among others
)

// fullCodes are those of no room: the account's, the server's, and what was reserved.
var fullCodes = []int{10002, 10023, 10047}

// An apiError is what JetStream answers instead of what was asked for.
type apiError struct {
	Code int    `json:"err_code"`
	Text string `json:"description"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.Code) }

// hasCode says whether err is an answer with one of the codes.
func hasCode(err error, codes ...int) bool {
	api, ok := errors.AsType[*apiError](err)
	if !ok {
		return false
	}
	for _, code := range codes {
		if api.Code == code {
			return true
		}
	}
	return false
}

// judged makes the error of a write or a question one of a Store.
func (e *apiError) judged() error {
	switch {
	case hasCode(e, fullCodes...), e.Code == codeStoreFailed && strings.Contains(e.Text, "maximum"):
		return fmt.Errorf("%w: %w", ErrFull, e)
	case hasCode(e, codeNoMessage, codeNotDeleted, codeLostOne, codeLostThree):
		return e
	}
	return fmt.Errorf("%w: %w", ErrDown, e)
}

// ask sends a message and returns the answer. The error wraps ErrDown if the message did not leave or nobody took it,
// and ErrUnsure if no answer came.
func (l *natsLink) ask(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	ctx, done := l.linked(ctx)
	defer done()
	answer, err := l.conn.RequestMsgWithContext(ctx, m)
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrReconnectBufExceeded),
		errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionReconnecting),
		errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrMaxPayload):
		return nil, fmt.Errorf("%w: %w", ErrDown, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrUnsure, err)
}

// publish sends a message to a stream, and returns when that has it.
func (l *natsLink) publish(ctx context.Context, m *nats.Msg) error {
	answer, err := l.ask(ctx, m)
	if err != nil {
		return err
	}
	var said struct {
		Seq   uint64    `json:"seq"`
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &said); err != nil || said.Error == nil && said.Seq == 0 {
		return fmt.Errorf("%w: an answer that is none of a stream", ErrUnsure)
	}
	if said.Error != nil {
		return said.Error.judged()
	}
	return nil
}

// api asks JetStream about a stream.
func (l *natsLink) api(ctx context.Context, what, stream string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	m := nats.NewMsg("$JS.API.STREAM." + what + "." + stream)
	m.Data = body
	got, err := l.ask(ctx, m)
	if err != nil {
		return err
	}
	var said struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(got.Data, &said); err != nil {
		return fmt.Errorf("%w: an answer that is none of a stream", ErrUnsure)
	}
	if said.Error != nil {
		return said.Error.judged()
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(got.Data, answer)
}

// A stored message is one of a stream. seq 0: there is none.
type stored struct {
	Seq     uint64 `json:"seq"`
	Data    []byte `json:"data"`
	Headers []byte `json:"hdrs"`
}

// writeHeader is the header with the id of a write.
const writeHeader = "Codehand-Write"

// wrote says whether the message was written with an id.
func (m stored) wrote(id string) bool {
	return strings.Contains(string(m.Headers), "\r\n"+writeHeader+": "+id+"\r\n") ||
		strings.Contains(string(m.Headers), "\r\n"+writeHeader+":"+id+"\r\n")
}

// message asks the server that leads a stream for a message: the last of a subject, or the next from seq on.
func (l *natsLink) message(ctx context.Context, stream string, question any) (stored, error) {
	var said struct {
		Message stored `json:"message"`
	}
	err := l.api(ctx, "MSG.GET", stream, question, &said)
	if hasCode(err, codeNoMessage) {
		return stored{}, nil
	}
	return said.Message, err
}

type lastOf struct {
	Subject string `json:"last_by_subj"`
}

type nextOf struct {
	Seq     uint64 `json:"seq"`
	Subject string `json:"next_by_subj"`
}

type deletion struct {
	Seq     uint64 `json:"seq"`
	NoErase bool   `json:"no_erase"`
}

// A streamInfo is what a stream holds.
type streamInfo struct {
	State struct {
		Messages int            `json:"messages"`
		Bytes    int64          `json:"bytes"`
		Subjects int            `json:"num_subjects"`
		Names    map[string]int `json:"subjects"`
	} `json:"state"`
	Total int `json:"total"` // names, of which one answer has a part
}

// info asks the server that leads a stream. filter "": without names of subjects.
func (l *natsLink) info(ctx context.Context, stream, filter string, offset int) (got streamInfo, err error) {
	question := struct {
		Filter string `json:"subjects_filter,omitempty"`
		Offset int    `json:"offset,omitempty"`
	}{filter, offset}
	return got, l.api(ctx, "INFO", stream, question, &got)
}
