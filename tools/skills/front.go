package skills

import "github.com/goccy/go-yaml"

// parseFront reads YAML into JSON.
func parseFront(text []byte) ([]byte, error) { return yaml.YAMLToJSON(text) }
