package lsp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxMessage is how many bytes one message of a server may have.
const maxMessage = 32 << 20

// maxHeader is how many bytes the lines before a message may have.
const maxHeader = 4 << 10

var errHeader = errors.New("it does not speak the protocol")

// framing reads and writes messages behind a header with their length, as jsonrpc2.VSCodeObjectCodec does, but reads no
// message that is too large.
type framing struct{}

// WriteObject writes one message at once, so that none is torn where two are written.
func (framing) WriteObject(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...))
	return err
}

// ReadObject reads one message.
func (framing) ReadObject(r *bufio.Reader, v any) error {
	size, left := -1, maxHeader
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				return errHeader
			}
			return err
		}
		if left -= len(line); left < 0 {
			return errHeader
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return errHeader
		}
		if strings.EqualFold(name, "Content-Length") {
			if size, err = strconv.Atoi(strings.TrimSpace(value)); err != nil || size < 0 {
				return errHeader
			}
		}
	}
	if size < 0 {
		return errHeader
	}
	if size > maxMessage {
		return fmt.Errorf("a message has more than %d bytes", maxMessage)
	}
	body := make([]byte, 0, min(size, 64<<10)) // no more than has come, whatever the header promises
	for len(body) < size {
		part := min(size-len(body), max(len(body), 64<<10))
		at := len(body)
		body = append(body, make([]byte, part)...)
		if _, err := io.ReadFull(r, body[at:]); err != nil {
			return err
		}
	}
	return json.Unmarshal(body, v)
}
