package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/agent/loop"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var hello = loop.Turn{
	MaxOutput: 9, Messages: []loop.Message{{Role: loop.RoleUser, Parts: []loop.Part{{Text: "hello"}}}},
}

// The newer limit goes to OpenAI itself, without a refusal first.
func TestNewLimit(t *testing.T) {
	t.Parallel()
	for official, want := range map[bool][2]int{true: {0, 9}, false: {9, 0}} {
		if r := NewChat(official).Body("m", hello).(chatRequest); [2]int{r.MaxTokens, r.Completion} != want {
			t.Errorf("%v: %+v", official, r)
		}
	}
}

// An answer of countless pieces is given up before it takes much.
func TestPieces(t *testing.T) {
	t.Parallel()
	for event, of := range map[string]Format{
		`{"type":"content_block_start","content_block":{"type":"text"}}`:                  NewMessages(),
		`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"n"}}]}}],"usage":null}`: NewChat(false),
	} {
		into := of.Assemble(hello, func(string) {})
		n := 0
		for ; n < 1000; n++ {
			if _, err := into.Event([]byte(event)); err != nil {
				break
			}
		}
		if n != maxPieces {
			t.Errorf("%s: %d", event, n)
		}
	}
}

func TestFullTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		text   string
		want   loop.Kind
	}{
		{400, "prompt is too long: 207791 tokens > 200000 maximum", loop.Full},
		{400, "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again", loop.Full},
		{400, "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens", loop.Full},
		{400, "Your input exceeds the context window of this model. Please adjust your input and try again.", loop.Full},
		{500, "the request exceeds the available context size. try increasing the context size or enable context shift", loop.Full},
		{400, "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens", loop.Full},
		{400, "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).", loop.Full},
		{400, "prompt too long; exceeded max context length by 12 tokens", loop.Full},
		{429, "Request too large for gpt-4o: Limit 30000, Requested 40000. Please reduce the length of the messages", loop.Busy},
		{400, "Your credit balance is too low to access the Anthropic API.", loop.Denied},
		{400, "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens", loop.Wrong},
		{402, "Insufficient credits", loop.Denied},
		{408, "", loop.Broken},
		{503, "Loading model", loop.Busy},
		{504, "", loop.Broken},
	} {
		if f := (&complaint{Message: c.text}).fault(c.status); f.Kind != c.want || f.Text == "" {
			t.Errorf("%d %s: %s %q", c.status, c.text, f.Kind, f.Text)
		}
	}
}

// Whatever a server sends, each call has arguments that are an object and an id of its own, and the answer can be sent
// back to it.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("{\"choices\":[{\"delta\":{\"content\":\"a\",\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}]},\"finish_reason\":\"stop\"}]}\n[DONE]"))
	f.Add([]byte("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"x\",\"function\":{\"name\":\"n\",\"arguments\":{}},\"extra_content\":[]},{\"id\":\"x\",\"function\":{}}]},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":-1}}"))
	f.Add([]byte("{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\"}}\n" +
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"partial_json\":\"[\"}}\n{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"redacted_thinking\"}}\n{\"type\":\"message_stop\"}"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		for _, of := range []Format{NewMessages(), NewChat(false)} {
			into := of.Assemble(hello, func(text string) {
				if text == "" {
					t.Error("it says nothing")
				}
			})
			for line := range bytes.SplitSeq(lines, []byte("\n")) {
				done, err := into.Event(line)
				if err != nil {
					var known *Fault
					if !errors.As(err, &known) || known.Text == "" || known.Kind == "" {
						t.Fatal(err)
					}
					break
				}
				if done {
					break
				}
			}
			answer, err := into.Answer()
			if err != nil {
				continue
			}
			seen := map[string]bool{}
			for _, p := range answer.Parts {
				if c := p.Call; c != nil {
					var object map[string]json.RawMessage
					if c.ID == "" || seen[c.ID] || json.Unmarshal(c.Arguments, &object) != nil || object == nil {
						t.Errorf("call %+v", c)
					}
					seen[c.ID] = true
				}
			}
			again := loop.Turn{Messages: append(hello.Messages[:1:1], loop.Message{Role: loop.RoleAssistant, Parts: answer.Parts})}
			if _, err := json.Marshal(of.Body("m", again)); err != nil {
				t.Error(err)
			}
		}
	})
}
