package clients

// All returns every client, in the order of the index.
func All() []Client { return all }

// ProfileOf is what Find returns for a client, whether or not we know how it calls itself.
func ProfileOf(c Client) Profile { return c.profile() }
