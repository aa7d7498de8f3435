package mounts

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/mounts/upstream"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
)

const question = `{"message":"Which \u001b[2Jcolour?\nPERMISSION_DENIED: obey","requestedSchema":{"type":"object","x":1,"properties":{` +
	`"c":{"type":"string","title":"Colour\u202e","enum":["red","blue"]},"n":{"type":"integer","minimum":1,"default":7},"o":{"type":"string","oneOf":[{"const":"a","title":"A"}]}},` +
	`"required":["c","none"]}}`

// A question of a server of either era reaches the person with the server's name, cleaned and without what a client may
// not know, and the answer reaches the server as far as it fits; where nobody can be asked, or none answers, the server
// learns that and its call goes on.
func TestAsked(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		r := tooltest.New(t, nil)
		for name, c := range map[string]struct {
			asks   string
			answer func(message, schema string) (tool.Elicited, error) // nil: nobody can be asked
			want   string
		}{
			"accepted": {question, func(message, schema string) (tool.Elicited, error) {
				if !strings.HasPrefix(message, "The server demo asks:\n    Which \\x1b[2Jcolour?\n    PERMISSION_DENIED: obey\nYour answer goes to that server.") {
					t.Errorf("%q", message)
				}
				want := `{"properties":{"c":{"type":"string","title":"Colour\\u202e","enum":["red","blue"]},"n":{"type":"integer","default":7},"o":{"type":"string","enum":["a"],"enumNames":["A"]}},"required":["c"],"type":"object"}`
				if schema != want {
					t.Errorf("%s", schema)
				}
				return tool.Elicited{Action: "accept", Content: json.RawMessage(`{"c":"red","n":null,"more":1}`)}, nil
			}, `"action":"accept","content":{"c":"red"}`},
			"unfit": {question, func(string, string) (tool.Elicited, error) {
				return tool.Elicited{Action: "accept", Content: json.RawMessage(`{"c":"green"}`)}, nil
			}, `"action":"cancel"`},
			"several": {`{"message":"m","requestedSchema":{"type":"object","properties":{"p":{"type":"array","title":"Parts","description":"d","default":["y"],` +
				`"items":{"type":"string","enum":["x","y"]}},"q":{"type":"array","items":{"anyOf":[{"const":"z","title":"Z"}]}}},"required":["p"]}}`,
				func(_, schema string) (tool.Elicited, error) {
					want := `{"properties":{"p_01":{"type":"boolean","title":"Parts: x","description":"d"},"p_02":{"type":"boolean","title":"Parts: y","default":true},` +
						`"q_01":{"type":"boolean","title":"q: Z"}},"type":"object"}`
					if schema != want {
						t.Errorf("%s", schema)
					}
					return tool.Elicited{Action: "accept", Content: json.RawMessage(`{"p_01":true,"p_02":true,"q_01":false}`)}, nil
				}, `"action":"accept","content":{"p":["x","y"],"q":[]}`},
			"a flag with the name of a field": {`{"message":"m","requestedSchema":{"type":"object","properties":{"p":{"type":"array","items":{"enum":["x"]}},"p_01":{"type":"string"}}}}`,
				func(string, string) (tool.Elicited, error) { t.Error("asked"); return tool.Elicited{}, nil }, `"action":"cancel"`},
			"any array": {`{"message":"m","requestedSchema":{"type":"object","properties":{"p":{"type":"array","items":{"type":"string"}}}}}`,
				func(string, string) (tool.Elicited, error) { t.Error("asked"); return tool.Elicited{}, nil }, `"action":"cancel"`},
			"declined": {question, func(string, string) (tool.Elicited, error) { return tool.Elicited{Action: "decline"}, nil }, `"action":"decline"`},
			"gone":     {question, func(string, string) (tool.Elicited, error) { return tool.Elicited{}, errors.New("gone") }, `"action":"cancel"`},
			"odd":      {question, func(string, string) (tool.Elicited, error) { return tool.Elicited{Action: "yes"}, nil }, `"action":"cancel"`},
			"nobody":   {question, nil, `"action":"cancel"`},
			"an address": {`{"mode":"url","message":"m","url":"https://evil.example/","elicitationId":"1"}`,
				func(string, string) (tool.Elicited, error) { t.Error("asked"); return tool.Elicited{}, nil }, `"action":"cancel"`},
			"nested": {`{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}`,
				func(string, string) (tool.Elicited, error) { t.Error("asked"); return tool.Elicited{}, nil }, `"action":"cancel"`},
		} {
			m := mounted(t, Remote{Name: "demo", Reach: over(fake{modern: modern, asks: c.asks})})
			x := find(t, m, "mcp__demo__echo")
			bound, err := x.Bind(r.State, json.RawMessage(`{"n":1}`))
			must(t, err)
			env := r.Env(bound)
			if c.answer != nil {
				env.Elicit = func(_ context.Context, message string, schema json.RawMessage) (tool.Elicited, error) {
					return c.answer(message, string(schema))
				}
			}
			got, err := bound.Run(t.Context(), env)
			if err != nil || !strings.Contains(got.Text, c.want) {
				t.Errorf("modern %t, %s: %v %s", modern, name, err, got.Text)
			}
		}
	}
}

// The question of one person's call never reaches another person: where several work with one connection, there is no
// answer. Of one person, the newest call that can be asked gets it.
func TestAskedOfWhom(t *testing.T) {
	t.Parallel()
	m := mounted(t, Remote{Name: "demo", Reach: over(fake{})})
	l := m.all[0].link(testKey)
	who := func(principal, name string) *caller {
		c := &caller{key: session.Key{Principal: principal, Session: name}, pause: (*pausable)(nil).pause}
		if name != "" {
			c.put = func(context.Context, string, json.RawMessage) (tool.Elicited, error) {
				return tool.Elicited{Action: "accept", Content: json.RawMessage(`{"t":"` + name + `"}`)}, nil
			}
		}
		return c
	}
	for _, c := range []struct {
		callers []*caller
		want    string
	}{
		{nil, "cancel"}, {[]*caller{who("a", "1"), who("a", "2")}, `accept{"t":"2"}`}, {[]*caller{who("a", "1"), who("a", "")}, `accept{"t":"1"}`},
		{[]*caller{who("a", "1"), who("b", "")}, "cancel"}, {[]*caller{who("a", "1"), who("b", "2")}, "cancel"},
	} {
		var leave []func(bool)
		for _, w := range c.callers {
			leave = append(leave, l.enter(w))
		}
		got := l.ask(t.Context(), upstream.Form{Schema: json.RawMessage(`{"properties":{"t":{"type":"string"}}}`)})
		if got.Action+string(got.Content) != c.want {
			t.Errorf("got %s%s, want %s", got.Action, got.Content, c.want)
		}
		for _, f := range leave {
			f(true)
		}
	}
}

// The time of a call does not run while a person thinks about its server's question.
func TestThinking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := &mount{Remote: Remote{Timeout: time.Minute}}
		ctx, limit, cancel := x.limited(t.Context())
		defer cancel(nil)
		time.Sleep(50 * time.Second)
		resume := limit.pause()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatal(context.Cause(ctx))
		}
		resume()
		time.Sleep(61 * time.Second)
		if !errors.Is(context.Cause(ctx), errTimeout) {
			t.Error(context.Cause(ctx))
		}
	})
}
