// Package signin is what .ci/conformance/clients/oauth.mjs is in Go: what a client must do with sign-in. The programs
// that use it bring the client.
package signin

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Options are the command line.
type Options struct {
	URL      string
	Redirect string
	Document string // URL of a metadata document; "": the client registers itself
}

// A Client signs in with a browser.
type Client interface {
	// Tools lists tools. It calls open when a person must sign in, and fails if that does.
	Tools(ctx context.Context) ([]string, error)
	// Expire makes the access token look expired to the client, not its refresh token.
	Expire()
	// Tokens are what the client has now.
	Tokens() (access, refresh string)
}

// ErrAsked is what open returns when nobody is there to sign in.
var ErrAsked = errors.New("a person is asked")

// Main runs the checks.
func Main(start func(o Options, open func(authorize string) (url.Values, error)) Client) {
	var o Options
	flag.StringVar(&o.URL, "url", "", "endpoint")
	flag.StringVar(&o.Redirect, "redirect", "", "redirect URI")
	flag.StringVar(&o.Document, "document", "", "URL of the metadata document")
	flag.Parse()
	in, ctx, failed := bufio.NewScanner(os.Stdin), context.Background(), false
	answer := func(line string) string {
		fmt.Println(line)
		in.Scan()
		return in.Text()
	}
	asked := 0
	c := start(o, func(authorize string) (url.Values, error) {
		if asked++; asked > 1 {
			return nil, ErrAsked
		}
		if u, err := url.Parse(authorize); err != nil || u.Query().Get("code_challenge_method") != "S256" {
			return nil, fmt.Errorf("%s has no challenge", authorize)
		}
		back, err := url.Parse(answer("OPEN " + authorize))
		if err != nil {
			return nil, err
		}
		return back.Query(), nil
	})
	check := func(name string, body func() error) {
		if failed {
			return
		}
		if err := body(); err != nil {
			failed = true
			fmt.Printf("FAIL %s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", " | "))
			return
		}
		fmt.Println("ok " + name)
	}
	lists := func() error {
		names, err := c.Tools(ctx)
		if err == nil && !slices.Contains(names, "read_file") {
			err = fmt.Errorf("the tools are %q", names)
		}
		if err == nil && asked != 1 {
			err = fmt.Errorf("a person was asked %d times", asked)
		}
		return err
	}
	refreshes := func() error {
		access, refresh := c.Tokens()
		c.Expire()
		if err := lists(); err != nil {
			return err
		}
		if a, r := c.Tokens(); a == access || r == refresh || r == "" {
			return errors.New("the tokens did not rotate")
		}
		return nil
	}
	check("signs in", lists)
	check("refreshes", refreshes)
	check("survives a restart", func() error { answer("RESTART"); return lists() })
	check("refreshes after a restart", refreshes)
	check("is refused after a revocation", func() error {
		answer("REVOKE")
		_, err := c.Tools(ctx)
		if !errors.Is(err, ErrAsked) || asked < 2 { // an SDK may try both eras
			return fmt.Errorf("asked %d times: %v", asked, err)
		}
		return nil
	})
	if failed {
		os.Exit(1)
	}
}
