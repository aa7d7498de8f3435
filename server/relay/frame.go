package relay

import (
	"encoding/binary"
	"errors"
)

// The kinds of frames. Each belongs to one request, its exchange.
const (
	frameOpen   byte = iota + 1 // caller: begins an exchange; the head, then what fits of the body
	framePart                   // both: more of the body of the request or of the answer
	frameHead                   // host: status and header of the answer, then what fits of its body
	frameAnswer                 // host: the end of the answer; nothing follows
	frameMoved                  // host: it does not serve the principal; nothing was done
	frameGone                   // caller: the client left, or the node ends; host: it knows no such exchange
	frameBeat                   // both: still here
	frameAck                    // both: bytes of parts were taken, as many more may come
	frameLook                   // of no exchange; caller: how is the node? host: in the head, how it is
)

const (
	// maxPart is how much of a body one frame has. NATS takes 1 MiB by default.
	maxPart = 256 << 10

	// window is how much of a body is on its way at most before the other end has taken some.
	window = 2 << 20

	// frameCost is what a part counts besides its bytes.
	frameCost = 256
)

// A frame is one message of an exchange: kind, number among those of its sender, the length of its head, head, body.
type frame struct {
	kind   byte
	number uint32
	head   []byte
	body   []byte
}

const frameHeader = 1 + 4 + 4

var errFrame = errors.New("relay: a frame is malformed")

func (f frame) encode() []byte {
	b := make([]byte, 0, frameHeader+len(f.head)+len(f.body))
	b = append(b, f.kind)
	b = binary.BigEndian.AppendUint32(b, f.number)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.head)))
	b = append(b, f.head...)
	return append(b, f.body...)
}

// decode takes a frame apart; head and body are parts of b.
func decode(b []byte) (f frame, err error) {
	if len(b) < frameHeader || b[0] < frameOpen || b[0] > frameLook {
		return f, errFrame
	}
	head := uint64(binary.BigEndian.Uint32(b[5:]))
	if head > uint64(len(b)-frameHeader) {
		return f, errFrame
	}
	at := frameHeader + int(head)
	return frame{kind: b[0], number: binary.BigEndian.Uint32(b[1:]), head: b[frameHeader:at], body: b[at:]}, nil
}

// numbered says whether frames of a kind must come in order, none missing. The others may be lost.
func numbered(kind byte) bool { return kind <= frameAnswer }
