package tool

import "context"

// A Library is what clients read of this server by an address, as the session of one call sees it.
type Library interface {
	// List lists what there is: at most some hundred.
	List(ctx context.Context) ([]Resource, error)
	// Read returns what an address names. ok is false if it names nothing that this session may see, wrong is half a
	// sentence that says what is wrong with the address; "": nothing.
	Read(ctx context.Context, uri string) (c Contents, wrong string, ok bool, err error)
}

// A Resource is one thing that is read by an address.
type Resource struct {
	URI, Name, Title, MIME string
	Size                   *int64 // in bytes; nil: not known
}

// Contents are what a resource has: Text, or Data that is no text.
type Contents struct {
	MIME string
	Text string
	Data []byte // nil: it is text
	Own  bool   // Text is this server's, the operator's or the user's own, and may instruct
}
