package relay

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

// A node that is asked says how it is, without a place and without a principal; one that is not there does not.
func TestLook(t *testing.T) {
	t.Parallel()
	inBubble(t, func(http.ResponseWriter, *http.Request) { t.Error("it was served a request") }, func(r rig) {
		s, took, err := Look(r.Context(), r.wire, "test", "b")
		if err != nil || s.Version != "v1" || s.Volume != "mark" || !s.Time.Equal(time.Now()) || took != 0 {
			r.Errorf("got %+v after %v, %v", s, took, err)
		}
		if _, _, err := Look(r.Context(), r.wire, "test", "c"); !errors.Is(err, errNobody) {
			r.Errorf("a node that is not there: %v", err)
		}
		r.wire.losing(func(Message) bool { return true })
		ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
		defer cancel()
		if _, _, err := Look(ctx, r.wire, "test", "b"); err == nil || err.Error() != "no answer within 3s" {
			r.Errorf("without a connection: %v", err)
		}
	})
}
