package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// A Work is a job: it is read, stopped and listed like a command, and a panic in it is its failure.
func TestWork(t *testing.T) {
	s := newStage(t).Shell
	for _, c := range []struct {
		name string
		do   Work
		want State
		out  string
	}{
		{"done", func(_ context.Context, out io.Writer) error { _, err := fmt.Fprintln(out, "a\nb"); return err }, Completed, "a\nb\n"},
		{"failed", func(context.Context, io.Writer) error { return errors.New("no") }, Failed, ""},
		{"panics", func(context.Context, io.Writer) error { panic("x") }, Failed, ""},
		{"secret", func(_ context.Context, out io.Writer) error {
			_, err := fmt.Fprintln(out, "key ghp_"+strings.Repeat("a", 36))
			return err
		}, Completed, "key [masked github-token ***********...aaaa]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, err := Begin(t.Context(), s, Command{Text: c.name, Background: true}, c.do)
			if err != nil {
				t.Fatal(err)
			}
			i, err := s.Await(t.Context(), j.Info().ID, time.Time{})
			if err != nil || i.State != c.want {
				t.Fatalf("%+v, %v", i, err)
			}
			chunk, err := s.Output(t.Context(), i.ID, 0, 1000)
			if err != nil || chunk.Head != c.out {
				t.Errorf("%q, %v", chunk.Head, err)
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		j, err := Begin(t.Context(), s, Command{Text: "x", Background: true}, func(ctx context.Context, _ io.Writer) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		if i, err := s.Stop(t.Context(), j.Info().ID); err != nil || i.State != Killed {
			t.Errorf("%+v, %v", i, err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		j, err := Begin(ctx, s, Command{Text: "x"}, func(ctx context.Context, _ io.Writer) error { <-ctx.Done(); return ctx.Err() })
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if i, err := j.Wait(ctx, time.Time{}); err == nil || i.State != Killed {
			t.Errorf("%+v, %v", i, err)
		}
		j.Release()
	})
}
