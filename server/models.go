package server

import (
	"codehand/server/config"
	"codehand/tools/agent/loop"
	"codehand/tools/agent/models"
)

// openModel makes the client of a model behind an API. The key is read at each request, so that it may change. release
// closes its idle connections.
func openModel(c config.AgentAPI, name string) (m loop.Model, release func(), err error) {
	client, err := models.New(models.Options{
		Provider: c.Provider, BaseURL: c.BaseURL, Model: name,
		Key: c.Key,
	})
	if err != nil {
		return nil, nil, err
	}
	return client, client.Close, nil
}
