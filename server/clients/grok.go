package clients

var grok = Client{ID: "grok", Title: "Grok", Known: "documented"}
