// Command models holds tools/agent/models and tools/agent/modelstest against the official SDKs of both formats. It is a
// module of its own, because the SDKs are large and their dependencies are not ours.
//
//	models requests PROVIDER < BODIES   each line is a request; the SDK must read all of it, and write the same
//	models stream PROVIDER URL          the SDK streams an answer of a scripted model, and prints what it understood
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "requests":
		return requests(args[1])
	case len(args) == 3 && args[0] == "stream" && args[1] == "anthropic":
		return streamAnthropic(args[2])
	case len(args) == 3 && args[0] == "stream":
		return streamOpenAI(args[2])
	}
	return errors.New("usage: models requests PROVIDER | models stream PROVIDER URL")
}

// requests reads requests as the SDK's type for them.
func requests(provider string) error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	n := 0
	for ; lines.Scan(); n++ {
		if err := same(provider, lines.Bytes()); err != nil {
			return fmt.Errorf("request %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	fmt.Printf("%d requests\n", n)
	return nil
}

// same says whether the SDK writes a request as it has read it. What it does not know it leaves out.
func same(provider string, body []byte) error {
	var again []byte
	var err error
	if provider == "anthropic" {
		var p anthropic.MessageNewParams
		if err = json.Unmarshal(body, &p); err == nil {
			p.SetExtraFields(nil)
			again, err = json.Marshal(p)
		}
	} else {
		var p openai.ChatCompletionNewParams
		if err = json.Unmarshal(body, &p); err == nil {
			p.SetExtraFields(nil)
			again, err = json.Marshal(p)
		}
	}
	if err != nil {
		return err
	}
	var want, got map[string]any
	if err := errors.Join(json.Unmarshal(body, &want), json.Unmarshal(again, &got)); err != nil {
		return err
	}
	delete(want, "stream") // a method of the SDKs, not a field
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("it is read as\n%s\nand is\n%s", again, body)
	}
	return nil
}

func show(v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		fmt.Println(string(data))
	}
	return err
}

// An answer is what an SDK understood.
type answer struct {
	Text, Stop    string
	Calls         []string // NAME ARGUMENTS
	Input, Output int64
}

func streamAnthropic(url string) error {
	client := anthropic.NewClient(anthropicoption.WithoutEnvironmentDefaults(), anthropicoption.WithAPIKey("k"), anthropicoption.WithBaseURL(url))
	stream := client.Messages.NewStreaming(context.Background(), anthropic.MessageNewParams{
		Model: "m", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
	})
	var m anthropic.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			return err
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	a := answer{Stop: string(m.StopReason), Input: m.Usage.InputTokens, Output: m.Usage.OutputTokens}
	for _, b := range m.Content {
		a.Text += b.Text
		if b.Type == "tool_use" {
			a.Calls = append(a.Calls, b.Name+" "+string(b.Input))
		}
	}
	return show(a)
}

func streamOpenAI(url string) error {
	client := openai.NewClient(option.WithAPIKey("k"), option.WithBaseURL(url+"/v1"))
	stream := client.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
	})
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			return errors.New("a chunk does not belong to the others")
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	a := answer{Input: all.Usage.PromptTokens, Output: all.Usage.CompletionTokens}
	for _, c := range all.Choices {
		a.Text, a.Stop = c.Message.Content, c.FinishReason
		for _, call := range c.Message.ToolCalls {
			a.Calls = append(a.Calls, call.Function.Name+" "+call.Function.Arguments)
		}
	}
	return show(a)
}
