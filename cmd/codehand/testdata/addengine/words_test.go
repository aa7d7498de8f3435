package words

import (
	"bufio"
	"errors"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	t.Parallel()
	if n, err := New(100).Count(t.Context(), strings.NewReader(" one\ntwo ")); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := New(100).Count(t.Context(), strings.NewReader(strings.Repeat("a", 200))); !errors.Is(err, bufio.ErrTooLong) {
		t.Error(err)
	}
}
