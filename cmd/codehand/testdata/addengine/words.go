// Package words counts the words of texts.
package words

import (
	"bufio"
	"context"
	"io"
)

// A Counter counts words. It is safe for concurrent use.
type Counter struct{ most int }

// New makes a Counter that refuses words of more than most bytes.
func New(most int) *Counter { return &Counter{most: most} }

// Count returns how many words a text has. Errors: those of reading, bufio.ErrTooLong, and the cause of the end of ctx.
func (c *Counter) Count(ctx context.Context, text io.Reader) (n int, err error) {
	words := bufio.NewScanner(text)
	words.Buffer(nil, c.most)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		n++
	}
	return n, words.Err()
}
