package server

import (
	"codehand/server/config"
	"codehand/tools/agent/loop"
	"codehand/tools/agent/models"
)

// openModel makes the client of a model behind an API. The key is read at each request, so that it may change.
func openModel(c config.AgentAPI, name string) (loop.Model, error) {
	return models.New(models.Options{
		Provider: c.Provider, BaseURL: c.BaseURL, Model: name,
		Key: c.Key,
	})
}
