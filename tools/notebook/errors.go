package notebook

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// The reasons without further data.
var (
	ErrTooLarge = errors.New("notebook is larger than 100 MiB")
	ErrType     = errors.New("cell type is not code, markdown or raw")
)

// An InvalidError says that the content is not a notebook: no JSON, no nbformat 3 or 4, or not of its shape.
type InvalidError struct {
	Line   int // from 1
	Column int // in characters, from 1
	Reason string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason) }

// A NotFoundError says that no cell has that name.
type NotFoundError struct {
	Cell string
	IDs  []string // of all cells in order, as Parse names them
	// Native says that IDs has at least one that is written in the file. If not, the range cell-0 to cell-N says as
	// much as the list.
	Native bool
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("no cell %q", e.Cell) }

// invalid makes an InvalidError for the byte at an offset.
func invalid(data []byte, at int, reason string) *InvalidError {
	before := bytes.TrimPrefix(data[:min(at, len(data))], mark)
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return &InvalidError{Line: bytes.Count(before, newline) + 1, Column: utf8.RuneCount(line) + 1, Reason: reason}
}
