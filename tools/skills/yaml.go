package skills

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// What is read of YAML at most. goccy/go-yaml v1.19.2 needs time by the square of nesting (64 KiB of "[": 13 s), so
// that tokens, which it makes in linear time, are counted before it parses them.
const (
	maxTokens = 8000
	maxDepth  = 32   // of lists and objects in each other
	maxValues = 4096 // with every alias counted as often as it is used
	maxFront  = 64 << 10
	maxBytes  = 2 * maxFront // of keys and texts, with every alias likewise; and of Skill.Front
)

// errBomb means YAML that is made to be expensive: it is not worth a second, more forgiving look.
var errBomb = errors.New("its front matter is nested too deeply or has too many values")

// parseYAML reads one YAML document. Keys of an object keep their order. lenient lets the last of two equal keys count,
// which are an error otherwise. The error is errBomb, or says in the parser's words what is no YAML.
func parseYAML(text string, lenient bool) (v value, err error) {
	// A parser of 10,000 lines that reads what a repository brings along: if it has one more panic, the skill is
	// dropped.
	defer func() {
		if p := recover(); p != nil {
			v, err = value{}, fmt.Errorf("the YAML parser gave up: %v", p)
		}
	}()
	tokens := lexer.Tokenize(text)
	if !cheap(tokens) {
		return value{}, errBomb
	}
	var options []parser.Option
	if lenient {
		options = append(options, parser.AllowDuplicateMapKey())
	}
	file, err := parser.Parse(tokens, 0, options...)
	if err != nil {
		return value{}, yamlError(err)
	}
	switch len(file.Docs) {
	case 0:
		return value{}, nil
	case 1:
		c := converter{anchors: map[string]ast.Node{}}
		return c.value(file.Docs[0].Body, 0)
	default:
		return value{}, errors.New("more than one YAML document")
	}
}

// yamlError keeps the first line of what the parser says: the others draw the text.
func yamlError(err error) error {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(first)
}

// cheap counts what makes parsing expensive.
func cheap(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		return false
	}
	depth, line, onLine := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			if t.Position.Line != line {
				line, onLine = t.Position.Line, 0
			}
			onLine++
		}
		if depth > maxDepth || onLine > maxDepth {
			return false
		}
	}
	return true
}

// A converter makes values of YAML's nodes, and counts them.
type converter struct {
	anchors map[string]ast.Node
	values  int
	bytes   int
}

// value makes one value, and counts it.
func (c *converter) value(n ast.Node, depth int) (value, error) {
	if c.values++; c.values > maxValues || depth > maxDepth {
		return value{}, errBomb
	}
	v, err := c.convert(n, depth)
	if v.kind == words || v.kind == literal {
		c.bytes += len(v.text)
	}
	for _, key := range v.keys {
		c.bytes += len(key)
	}
	if err == nil && c.bytes > maxBytes {
		return value{}, errBomb
	}
	return v, err
}

// convert makes one value of what kind of node there is.
func (c *converter) convert(n ast.Node, depth int) (value, error) {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return value{}, nil
	case *ast.BoolNode:
		return value{kind: literal, text: fmt.Sprint(n.Value)}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return scalar(n.GetToken().Value), nil
	case *ast.StringNode:
		if n.Token.Type == token.StringType { // without quotes: the parser takes a number of 30 digits for words
			return scalar(n.Value), nil
		}
		return value{kind: words, text: n.Value}, nil
	case *ast.LiteralNode:
		return value{kind: words, text: n.Value.Value}, nil
	case *ast.TagNode:
		return c.tagged(n, depth)
	case *ast.AnchorNode:
		c.anchors[n.Name.String()] = n.Value
		return c.value(n.Value, depth+1)
	case *ast.AliasNode:
		target, ok := c.anchors[n.Value.String()]
		if !ok {
			return value{}, fmt.Errorf("no anchor %q", n.Value.String())
		}
		return c.value(target, depth+1)
	case *ast.SequenceNode:
		return c.list(n.Values, depth)
	case *ast.MappingNode:
		return c.object(n.Values, depth)
	case *ast.MappingValueNode:
		return c.object([]*ast.MappingValueNode{n}, depth)
	default:
		return value{}, fmt.Errorf("a %s", n.Type())
	}
}

// tagged reads a value with a tag. Only !!str says something that JSON can.
func (c *converter) tagged(n *ast.TagNode, depth int) (value, error) {
	if s, ok := n.Value.(ast.ScalarNode); ok && n.Start.Value == "!!str" {
		if _, text := s.(*ast.LiteralNode); !text {
			return value{kind: words, text: s.GetToken().Value}, nil
		}
	}
	return c.value(n.Value, depth+1)
}

func (c *converter) list(nodes []ast.Node, depth int) (value, error) {
	v := value{kind: list}
	for _, n := range nodes {
		item, err := c.value(n, depth+1)
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
	}
	return v, nil
}

func (c *converter) object(pairs []*ast.MappingValueNode, depth int) (value, error) {
	v := value{kind: object}
	for _, p := range pairs {
		key, err := c.key(p.Key)
		if err != nil {
			return value{}, err
		}
		item, err := c.value(p.Value, depth+1)
		if err != nil {
			return value{}, err
		}
		v.set(key, item)
	}
	return v, nil
}

// key reads the key of an object, which JSON wants to be a string.
func (c *converter) key(n ast.Node) (string, error) {
	if k, ok := n.(*ast.MappingKeyNode); ok {
		n = k.Value
	}
	switch n := n.(type) {
	case *ast.MergeKeyNode:
		return "", errors.New("a merge key")
	case *ast.StringNode:
		return n.Value, nil
	case ast.ScalarNode:
		return n.GetToken().Value, nil
	default:
		return "", errors.New("a key that is no text")
	}
}
