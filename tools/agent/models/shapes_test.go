package models_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"codehand/tools/agent/loop"
	"codehand/tools/agent/models"
	"codehand/tools/agent/modelstest"
)

// summary says all of an answer in a line.
func summary(a loop.Answer) string {
	var list []string
	for _, p := range a.Parts {
		switch {
		case p.Call != nil && p.Call.Broken != "":
			list = append(list, fmt.Sprintf("%s %s broken", p.Call.ID, p.Call.Name))
		case p.Call != nil:
			list = append(list, fmt.Sprintf("%s %s %s", p.Call.ID, p.Call.Name, p.Call.Arguments))
		case p.Opaque != nil:
			list = append(list, "opaque "+string(p.Opaque))
		default:
			list = append(list, fmt.Sprintf("%q", p.Text))
		}
	}
	n := a.Tokens
	tokens := fmt.Sprintf("%d+%d+%d/%d", n.Input, n.CacheRead, n.CacheWrite, n.Output)
	if n.Estimated {
		tokens = "estimated"
	}
	return strings.Join(append(list, a.Stop, tokens), " | ")
}

// stream makes events of lines of data.
func stream(lines ...string) string { return "data: " + strings.Join(lines, "\n\ndata: ") + "\n\n" }

const end = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// What servers are known to send, each with the place that tells of it. want is summary of the answer, or how the error
// begins.
var shapes = []struct {
	name, provider, raw, want string
}{
	{"ollama: no index, whole calls (ollama#7881)", models.OpenAI, stream(
		`{"choices":[{"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_a","type":"function","function":{"name":"read","arguments":"{\"p\":1}"}}]}}]}`,
		`{"choices":[{"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_b","type":"function","function":{"name":"read","arguments":"{\"p\":2}"}}]}}]}`,
		`{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":"tool_calls"}]}`, `[DONE]`,
	), `call_a read {"p":1} | call_b read {"p":2} | end | estimated`},
	{"index 0 for each call", models.OpenAI, stream(
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"read","arguments":"{\"p\":"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"2}"}}]},"finish_reason":"tool_calls"}]}`, `[DONE]`,
	), `a read {"p":1} | b read {"p":2} | end | estimated`},
	{"gemini: no index, and thoughts at a call that must go back (openai-python#2806)", models.OpenAI, stream(
		`{"choices":[{"delta":{"tool_calls":[{"extra_content":{"google":{"thought_signature":"s"}},"id":"function-call-1","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"stop"}]}`, `[DONE]`,
	), `function-call-1 read {} | opaque {"extra_content":{"function-call-1":{"google":{"thought_signature":"s"}}},"reasoning_content":""} | end | estimated`},
	{"no index and no id, in pieces", models.OpenAI, stream(
		`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"read","arguments":"{\"p\""}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":":1}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"list","arguments":"{}"}}]}}]}`, end, `[DONE]`,
	), `call_1_0 read {"p":1} | call_1_1 list {} | end | estimated`},
	{"vllm: a new id with each piece", models.OpenAI, stream(
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"chatcmpl-tool-1","type":"function","function":{"name":"read"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"chatcmpl-tool-2","type":"function","function":{"arguments":"{\"p\":"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"chatcmpl-tool-3","type":"function","function":{"arguments":"1}"}}]}}]}`, end, `[DONE]`,
	), `chatcmpl-tool-1 read {"p":1} | end | estimated`},
	{"id and name with each piece", models.OpenAI, stream(
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"read","arguments":"{\"p\":"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"read","arguments":"1}"}}]}}]}`, end, `[DONE]`,
	), `x read {"p":1} | end | estimated`},
	{"two calls with mixed pieces", models.OpenAI, stream(
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"read","arguments":""}},{"index":1,"id":"y","function":{"name":"list","arguments":""}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"q\":"}},{"index":0,"function":{"arguments":"{\"p\":"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"function":{"arguments":"2}"}}]}}]}`, end, `[DONE]`,
	), `x read {"p":1} | y list {"q":2} | end | estimated`},
	{"one id for two calls", models.OpenAI, stream(
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"read","function":{"name":"read","arguments":"{\"p\":1}"}},{"index":1,"id":"read","function":{"name":"read","arguments":"{\"p\":2}"}}]}}]}`, end, `[DONE]`,
	), `read read {"p":1} | call_1_1 read {"p":2} | end | estimated`},
	{"arguments that are an object", models.OpenAI, stream(
		`{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"x","function":{"name":"read","arguments":{"p":1}}}]}}]}`, end, `[DONE]`,
	), `x read {"p":1} | end | estimated`},
	{"arguments that are null", models.OpenAI, stream(
		`{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"x","function":{"name":"read","arguments":null}}]}}]}`, end, `[DONE]`,
	), `x read {} | end | estimated`},
	{"arguments that are cut", models.OpenAI, stream(
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"write","arguments":"{\"p\":\"lo"}}]},"finish_reason":"length"}]}`, `[DONE]`,
	), `x write broken | length | estimated`},
	{"openai: usage in an event without choices (litellm#25410)", models.OpenAI, stream(
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}`,
		`{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}],"usage":null}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}`,
		`{"choices":[],"usage":{"prompt_tokens":26,"completion_tokens":5,"total_tokens":31,"prompt_tokens_details":{"cached_tokens":20}}}`, `[DONE]`,
	), `"Hi" | end | 6+20+0/5`},
	{"vllm: usage with each event (vllm#7262)", models.OpenAI, stream(
		`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":16,"completion_tokens":1,"prompt_tokens_details":null}}`,
		`{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":16,"completion_tokens":2}}`, `[DONE]`,
	), `"ab" | end | 16+0+0/2`},
	{"deepseek: thoughts, and what the cache had", models.OpenAI, stream(
		`{"choices":[{"delta":{"reasoning_content":"I "}}]}`, `{"choices":[{"delta":{"reasoning_content":"think"}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":8}}`, `[DONE]`,
	), `x read {} | opaque {"extra_content":{},"reasoning_content":"I think"} | end | 2+8+0/2`},
	{"openrouter: comments, and a price", models.OpenAI, ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + stream(
		`{"provider":"x","choices":[{"delta":{"content":"Hi"},"finish_reason":"stop","native_finish_reason":"end_turn"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"cost":0.1,"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":3}}}`, `[DONE]`,
	), `"Hi" | end | 4+2+3/1`},
	{"openrouter: an error in the stream", models.OpenAI, stream(
		`{"choices":[{"delta":{"content":"Hi"}}]}`,
		`{"error":{"code":502,"message":"Provider disconnected"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`,
	), `broken: Provider disconnected (2 tries)`},
	{"lm studio: an error that is a text", models.OpenAI, stream(`{"error":"Context size has been exceeded."}`), `full: Context size has been exceeded.`},
	{"lm studio: nothing at all (lmstudio#2339)", models.OpenAI, stream(end, `[DONE]`), `broken: the model answered with nothing`},
	{"llama.cpp: an error in the stream (llama.cpp#15780)", models.OpenAI, stream(
		`{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}`,
	), `full: the request exceeds the available context size`},
	{"mistral: content in parts", models.OpenAI, stream(
		`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Hi"}]}}]}`, end, `[DONE]`,
	), `"Hi" | end | estimated`},
	{"a refusal", models.OpenAI, stream(`{"choices":[{"delta":{"refusal":"I will "}}]}`, `{"choices":[{"delta":{"refusal":"not"},"finish_reason":"stop"}]}`, `[DONE]`),
		`"I will not" | refuse | estimated`},
	{"a filter", models.OpenAI, stream(`{"choices":[{"delta":{"content":"so"},"finish_reason":"content_filter"}]}`, `[DONE]`), `"so" | refuse | estimated`},
	{"no [DONE]", models.OpenAI, stream(`{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}`), `"Hi" | end | estimated`},
	{"no blank line at the end", models.OpenAI, stream(`{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}`) + "data: [DONE]", `"Hi" | end | estimated`},
	{"no finish_reason", models.OpenAI, stream(`{"choices":[{"delta":{"content":"Hi"}}]}`, `[DONE]`),
		`broken: the answer of the model's server ended too early: it has no finish_reason (2 tries)`},
	{"CR LF, no blanks, a byte order mark", models.OpenAI, "\ufeffdata:{\"choices\":[{\"delta\":{\"content\":\"Hi\"},\r\ndata:\"finish_reason\":\"stop\"}]}\r\n\r\nid: 7\r\nretry: 9\r\n\r\ndata:[DONE]\r\n\r\n",
		`"Hi" | end | estimated`},
	{"no JSON", models.OpenAI, stream(`{"choices":[`), `broken: the answer of the model's server ended too early: an event is no JSON`},
	{"no stream at all", models.OpenAI, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi","tool_calls":[{"id":"x","type":"function","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`,
		`"Hi" | x read {} | end | 3+0+0/1`},
	{"no stream, an error with status 200 (lmstudio#2322)", models.OpenAI, `{"error":{"message":"The number of tokens to keep from the initial prompt is greater than the context length"}}`,
		`full: The number of tokens to keep`},
	{"a web page", models.OpenAI, "<html>login</html>", `broken: the answer of the model's server ended too early: it has no finish_reason`},

	{"anthropic: thoughts that must go back", models.Anthropic, stream(
		`{"type":"message_start","message":{"usage":{"input_tokens":7,"cache_creation_input_tokens":5,"cache_read_input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a "}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"<b>"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig=="}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Hi"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`,
	), `opaque {"signature":"sig==","thinking":"a \u003cb\u003e","type":"thinking"} | opaque {"data":"xyz","type":"redacted_thinking"} | "Hi" | end | 7+3+5/9`},
	{"anthropic: two calls", models.Anthropic, stream(
		`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"read","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"p\":"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"y","name":"list","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1}"}}`,
		`{"type":"something_new","index":9}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`, `[DONE]`,
	), `x read {"p":1} | y list {} | end | 1+0+0/2`},
	{"compatible: input at the start, counts at the end", models.Anthropic, stream(
		`{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"","name":"read","input":{"p":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":11,"output_tokens":2,"cache_read_input_tokens":4}}`, `{"type":"message_stop"}`,
	), `call_1_0 read {"p":1} | end | 11+4+0/2`},
	{"anthropic: one object", models.Anthropic, `{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"so"},` +
		`{"type":"tool_use","id":"x","name":"read","input":{"p":1}}],"stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":2,"cache_read_input_tokens":4}}`,
		`opaque {"signature":"s","thinking":"hm","type":"thinking"} | "so" | x read {"p":1} | end | 7+4+0/2`},
	{"anthropic: one object without counts", models.Anthropic, `{"type":"message","content":[{"type":"text","text":"so"}],"stop_reason":"max_tokens"}`, `"so" | length | estimated`},
	{"anthropic: one object that is an error", models.Anthropic, `{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}`, `wrong: bad;`},
	{"anthropic: one object of another form", models.Anthropic, `{"choices":[]}`, `broken: the answer of the model's server ended too early: it has no message_stop`},
	{"anthropic: overloaded in the stream", models.Anthropic, stream(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), `busy: Overloaded (2 tries)`},
	{"anthropic: an input error in the stream", models.Anthropic, stream(`{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}`), `wrong: bad;`},
	{"anthropic: cut arguments", models.Anthropic, stream(
		`{"type":"message_start","message":{"usage":{}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"write","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"p\":\"lo"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, `{"type":"message_stop"}`,
	), `x write broken | length | estimated`},
	{"anthropic: the context is full", models.Anthropic, stream(
		`{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`), `full | 0+0+0/2`},
	{"anthropic: a refusal", models.Anthropic, stream(`{"type":"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`), `refuse | 0+0+0/2`},
	{"anthropic: a piece of nothing", models.Anthropic, stream(`{"type":"content_block_delta","index":4,"delta":{"text":"x"}}`),
		`broken: the answer of the model's server ended too early: a piece belongs to no block`},
	{"anthropic: no message_stop", models.Anthropic, stream(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`),
		`broken: the answer of the model's server ended too early: it has no message_stop`},
	{"anthropic: a line without end", models.Anthropic, "data: " + strings.Repeat("x", 5<<20), `broken: the model's server sent a line of more than 4 MiB;`},
	{"an event of many lines", models.OpenAI, strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 5), `broken: the model's server sent an event of more than 4 MiB;`},
	{"an endless answer", models.OpenAI, strings.Repeat(": "+strings.Repeat("x", 1<<20)+"\n", 33), `broken: the model's server sent an answer of more than 32 MiB;`},
	{"an endless object", models.OpenAI, `{"choices":[` + strings.Repeat(" ", 5<<20), `broken: the model's server sent an answer of more than 4 MiB;`},
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for _, c := range shapes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			turn := modelstest.Turn{Raw: c.raw}
			if strings.HasPrefix(c.raw, `{`) {
				turn.Header = map[string]string{"Content-Type": "application/json; charset=utf-8"}
			}
			server := modelstest.Start(t, func(modelstest.Request) modelstest.Turn { return turn })
			m, _ := client(t, c.provider, server.URL+"/v1/", func(o *models.Options) { o.Tries = 2 })
			var said strings.Builder
			answer, err := m.Turn(t.Context(), loop.Turn{Messages: hello, Tools: tools}, func(text string) { said.WriteString(text) })
			var failure *loop.Error
			if errors.As(err, &failure) {
				if got := string(failure.Kind) + ": " + failure.Text; !strings.HasPrefix(got, c.want) {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				return
			}
			if got := summary(answer); got != c.want || err != nil {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
			for _, p := range answer.Parts {
				if p.Text != "" && answer.Stop != loop.StopRefuse && said.String() != p.Text {
					t.Errorf("said %q of %q", said.String(), p.Text)
				}
			}
		})
	}
}

// What a provider wants back goes back to it, and nothing of another provider's does.
func TestOpaque(t *testing.T) {
	t.Parallel()
	thought := json.RawMessage(`{"type":"thinking","thinking":"a","signature":"s"}`)
	extra := json.RawMessage(`{"reasoning_content":"I think","extra_content":{"x":{"google":1}}}`)
	history := func(opaque json.RawMessage) []loop.Message {
		return append(hello[:1:1], loop.Message{Role: loop.RoleAssistant, Parts: []loop.Part{
			{Opaque: opaque}, {Text: " "}, {Call: &loop.Call{ID: "x", Name: "read", Arguments: json.RawMessage(`{}`)}},
		}}, loop.Message{Role: loop.RoleUser, Parts: []loop.Part{{Result: &loop.Result{CallID: "x", Text: "r"}}, {Text: "one"}, {Text: "two"}}})
	}
	for _, c := range []struct {
		provider, want string
		opaque         json.RawMessage
	}{
		{models.Anthropic, `{"content":[{"type":"thinking","thinking":"a","signature":"s"},{"id":"x","input":{},"name":"read","type":"tool_use"}],"role":"assistant"},` +
			`{"content":[{"content":[{"text":"r","type":"text"}],"tool_use_id":"x","type":"tool_result"},{"text":"one","type":"text"},` +
			`{"cache_control":{"type":"ephemeral"},"text":"two","type":"text"}],"role":"user"}]}`, thought},
		{models.Anthropic, `{"content":[{"id":"x","input":{},"name":"read","type":"tool_use"}],"role":"assistant"},` +
			`{"content":[{"content":[{"text":"r","type":"text"}],"tool_use_id":"x","type":"tool_result"},{"text":"one","type":"text"},` +
			`{"cache_control":{"type":"ephemeral"},"text":"two","type":"text"}],"role":"user"}]}`, extra},
		{models.OpenAI, `{"content":" ","reasoning_content":"I think","role":"assistant","tool_calls":[{"extra_content":{"google":1},"function":{"arguments":"{}","name":"read"},` +
			`"id":"x","type":"function"}]},{"content":"r","role":"tool","tool_call_id":"x"},{"content":"one\n\ntwo","role":"user"}]}`, extra},
		{models.OpenAI, `{"content":" ","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"read"},"id":"x","type":"function"}]},` +
			`{"content":"r","role":"tool","tool_call_id":"x"},{"content":"one\n\ntwo","role":"user"}]}`, thought},
	} {
		server := modelstest.Start(t, modelstest.Script(modelstest.Turn{Text: "x"}))
		m, _ := client(t, c.provider, server.URL, nil)
		if _, err := m.Turn(t.Context(), loop.Turn{Messages: history(c.opaque)}, nil); err != nil {
			t.Fatal(err)
		}
		if got := string(server.Requests()[0].Body); !strings.HasSuffix(got, c.want+"\n") {
			t.Errorf("%s: %s", c.provider, got)
		}
	}
}
