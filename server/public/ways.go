package public

import "strings"

// Usual is where serve listens by default.
const Usual = "127.0.0.1:7433"

// A Way is how a person puts the server on the open network: what to run, in order.
type Way struct {
	Name  string
	Steps []string // a line each; a command begins with "$ "
}

// Ways are what `serve --public` alone prints. local is the address that serve listens on, such as 127.0.0.1:7433.
// Facts about the programs are as of late 2026; their sources stand in docs/clients/README.md.
func Ways(local string) []Way {
	listen := ""
	if local != Usual {
		listen = " --listen " + local
	}
	serve := func(url string) string {
		return "$ codehand serve" + listen + " --public " + url + " --auth-mode owner " +
			"--http-trusted-proxies 127.0.0.1/32"
	}
	return []Way{
		{"Cloudflare Tunnel, quick: no account, a new URL at each start", []string{
			"$ cloudflared tunnel --url http://" + local,
			"it prints https://SOME-WORDS.trycloudflare.com; leave it running, and in another terminal:",
			serve("https://SOME-WORDS.trycloudflare.com"),
		}},
		{"Cloudflare Tunnel, named: a domain of yours at Cloudflare, a URL that stays", []string{
			"$ cloudflared tunnel login",
			"$ cloudflared tunnel create codehand",
			"$ cloudflared tunnel route dns codehand tools.example.com",
			"$ cloudflared tunnel run --url http://" + local + " codehand",
			serve("https://tools.example.com"),
		}},
		{"Tailscale Funnel: a URL that stays, below ts.net", []string{
			"$ tailscale funnel --bg " + port(local),
			"it prints https://MACHINE.TAILNET.ts.net; the first time it also says how to allow Funnel",
			serve("https://MACHINE.TAILNET.ts.net"),
		}},
		{"ngrok: a URL that stays, with an account", []string{
			"$ ngrok http " + port(local),
			"it prints the URL; on a free account your browser shows a warning before the first page: click through it",
			serve("https://NAME.ngrok-free.app"),
		}},
		{"a proxy of your own: Caddy (packaging/caddy/Caddyfile) or nginx (packaging/nginx/codehand.conf)", []string{
			"write your name into the file; Caddy gets its certificate by itself",
			serve("https://tools.example.com"),
		}},
	}
}

func port(local string) string { return local[strings.LastIndexByte(local, ':')+1:] }

// A Chat is a client on the web or a phone, and where a person tells it of a server.
type Chat struct {
	Name  string
	Where string // the way through its settings
}

// Chats are the clients that are told of a server by its URL alone. Each signs in by itself, in the browser. The pages
// in docs/clients say more, with sources.
func Chats() []Chat {
	return []Chat{
		{"claude.ai", "Settings > Connectors > Add custom connector; the phone has what was added on the web"},
		{"ChatGPT", "switch on developer mode in the settings of apps and connectors, then Create; sign-in: OAuth"},
		{"Grok", "grok.com/connectors > New Connector > Custom"},
		{"Le Chat", "Connectors > Add Connector > Custom MCP Connector"},
	}
}
