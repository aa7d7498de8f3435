package clients

var leChat = Client{ID: "le-chat", Title: "Le Chat", Known: "documented"}
