package tools

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"codehand/filestate"
	"codehand/tools/browsing"
	"codehand/tools/catalog"
	"codehand/tools/editing"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/web"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

//go:embed save_file.md
var saveFileText string

type saveFileInput struct {
	FilePath string `json:"file_path" jsonschema:"absolute or relative"`
	URI      string `json:"uri,omitempty" jsonschema:"data:, https: or codehand: link" rule:"maxlen=46000000"`
	Version  string `json:"version,omitempty" jsonschema:"shown by read_file"`
	// Link is what clients hand to models instead of a bare link: an object with it, or with the bytes themselves.
	Link json.RawMessage `json:"link,omitempty" jsonschema:"the link as an object"`

	Host string `json:"-"` // of a link to the web, in its one form; "": the link leads elsewhere
}

// saveFileMost is how large a saved file may be, in bytes, as that of write_file.
const saveFileMost = 32 << 20

// saveFile changes a file as write_file does, by the same rules, and fetches as web_fetch does, by its rules: the host
// is a target of the call unless they allow it, and without web_fetch nothing is fetched.
func saveFile(client *web.Client) tool.Tool {
	return tool.Define(tool.Def[saveFileInput]{
		Spec: tool.Spec{
			Name: "save_file", Aliases: []string{"SaveFile"}, Stands: []string{"Write", "write_file"},
			Title: "Save file", Description: saveFileText,
			Hint: "save, store, upload a file of the chat", Deferred: true,
			Scope: tool.ScopeWrite, Family: permission.FamilyEdit,
			Traits:    tool.Traits{Idempotent: true}, // the same bytes twice are the same as once
			ForAgents: tool.ChangingAgents,
			Example:   `{"file_path":"$WORK/saved","uri":"data:,x"}`,
			Finds: []string{
				"save file", "save a file from the chat", "save attachment", "upload a file", "data uri",
				"save resource link", "save an image to disk", "store uploaded file",
			},
		},
		Accept: map[string]string{"path": "file_path", "url": "uri", "data": "uri", "download_url": "uri",
			"file": "link", "resource": "link", "resource_link": "link"},
		Hidden: []string{"link"},
		Paths:  func(in *saveFileInput) []*string { return []*string{&in.FilePath} },
		Targets: func(s *session.State, in saveFileInput) []permission.Target {
			if in.Host == "" || browsing.Ruled(s.Rules, in.Host, permission.DontAsk).Verdict == permission.Allow {
				return nil
			}
			return []permission.Target{{Kind: permission.Domain, Value: in.Host}}
		},
		Verdict: func(s *session.State, in saveFileInput) permission.Verdict {
			if in.Host == "" {
				return permission.Allow
			}
			return browsing.Ruled(s.Rules, in.Host, permission.Bypass).Verdict
		},
		Check: func(in saveFileInput) error {
			_, err := saveFileSource(in)
			return err
		},
		Complete: func(_ context.Context, s *session.State, in *saveFileInput) error {
			src, err := saveFileSource(*in)
			if err != nil {
				return err
			}
			if src.web == "" {
				return editing.RefuseSecret(s, in.FilePath, "uri", string(src.data))
			}
			if client == nil || !inCatalog(s.Catalog, "web_fetch") {
				return errSavesNothing
			}
			if in.Host, err = client.Host(src.web); err != nil {
				return browsing.Refusal(err)
			}
			if d := browsing.Ruled(s.Rules, in.Host, permission.Bypass); d.Verdict == permission.Deny && d.Rule != "" {
				return tool.Refuse(tool.PermissionDenied, "Permission denied: save_file: rule %s, %s, denies %s. The "+
					"operator can remove that rule.", d.Rule, d.Origin, in.Host)
			}
			return nil
		},
		Details: func(ctx context.Context, s *session.State, in saveFileInput, room int) string {
			src, err := saveFileSource(in)
			if err != nil || src.web != "" || src.own != "" {
				return ""
			}
			env := editing.Asked(s)
			f, err := env.Open(in.FilePath, workspace.Write)
			if err != nil {
				return ""
			}
			defer f.Close()
			return editing.PreviewWrite(ctx, env, in.FilePath, saveFileEdit(env, f, in, src.data), room)
		},
		Activity: func(in saveFileInput) string { return "Saving " + filepath.Base(in.FilePath) },
		Run: func(ctx context.Context, env tool.Env, in saveFileInput) (tool.Result, error) {
			return runSaveFile(ctx, env, client, in)
		},
	})
}

var errSavesNothing = tool.Refuse(tool.URLBlocked, "Nothing is fetched from the web here: web_fetch is not "+
	"available. Give the bytes themselves, as a data: URI.")

func inCatalog(all []catalog.Entry, name string) bool {
	for _, e := range all {
		if e.Name == name {
			return true
		}
	}
	return false
}

// A savedSource says where the bytes are: in data, unless one of the others is set.
type savedSource struct {
	data []byte
	mime string // of data; "": it is not said
	web  string // an http or https URL
	own  string // a resource of this session
}

// saveFileSource reads the link of a call.
func saveFileSource(in saveFileInput) (savedSource, error) {
	uri := strings.TrimSpace(in.URI)
	if uri == "" && in.Link != nil {
		data, link, ok := readLink(in.Link)
		if ok && link == "" {
			return sized(savedSource{data: data})
		}
		uri = strings.TrimSpace(link)
	}
	scheme, _, _ := strings.Cut(uri, ":")
	switch strings.ToLower(scheme) {
	case "data":
		data, mime, err := readDataURI(uri)
		if err != nil {
			return savedSource{}, tool.Invalid("save_file", `"uri": `+err.Error())
		}
		return sized(savedSource{data: data, mime: mime})
	case "http", "https":
		return savedSource{web: uri}, nil
	case "codehand":
		return savedSource{own: uri}, nil
	case "file":
		return savedSource{}, tool.Invalid("save_file", `"uri": a file: link names a file of some machine, which may `+
			`not be this one. If it is here, copy it with run_shell; else give its bytes as a data: URI`)
	case "":
		return savedSource{}, tool.Invalid("save_file", `"uri" is missing: give the link of the file, or its bytes as `+
			`a data: URI`)
	}
	return savedSource{}, tool.Invalid("save_file", fmt.Sprintf(`"uri": %s is no data:, http:, https: or codehand: `+
		`link. A resource of a mounted server is read with read_mcp_resource, which says where it keeps one that `+
		`is no text`, wording.LineOf(uri, 80)))
}

func sized(src savedSource) (savedSource, error) {
	if len(src.data) > saveFileMost {
		return savedSource{}, tool.Refuse(tool.TooLarge, "The file has %s. At most %s are saved at once.",
			results.Size(int64(len(src.data))), results.Size(saveFileMost))
	}
	return src, nil
}

// readLink reads a resource_link, an embedded resource, or the object that a chat hands over for an upload: its link,
// or with "" its bytes. ok: it has one of them.
func readLink(raw json.RawMessage) (data []byte, link string, ok bool) {
	type object struct {
		URI         string  `json:"uri"`
		URL         string  `json:"url"`
		DownloadURL string  `json:"download_url"`
		Blob        *string `json:"blob"`
		Text        *string `json:"text"`
	}
	var o struct {
		object
		Resource object `json:"resource"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return nil, "", false
	}
	for _, x := range []object{o.object, o.Resource} {
		switch {
		case x.Blob != nil:
			data, err := fromBase64(*x.Blob)
			return data, "", err == nil
		case x.Text != nil:
			return []byte(*x.Text), "", true
		}
		for _, link := range []string{x.DownloadURL, x.URI, x.URL} {
			if link != "" {
				return nil, link, true
			}
		}
	}
	return nil, "", false
}

// readDataURI reads data:[TYPE][;NAME=VALUE][;base64],DATA (RFC 2397). The error says what is wrong.
func readDataURI(uri string) (data []byte, mime string, err error) {
	head, body, found := strings.Cut(uri[len("data:"):], ",")
	if !found {
		return nil, "", errors.New("a data: URI has a comma before its data, as in data:image/png;base64,iVBOR")
	}
	params := strings.Split(head, ";")
	coded := strings.EqualFold(strings.TrimSpace(params[len(params)-1]), "base64")
	if mime = strings.ToLower(strings.TrimSpace(params[0])); mime == "base64" && coded {
		mime = ""
	}
	if !coded {
		text, err := url.PathUnescape(body)
		if err != nil {
			return nil, "", errors.New("the data has a % that begins no escape; write %25 for it, or use base64")
		}
		return []byte(text), mime, nil
	}
	if strings.Contains(body, "%") { // %2B and %3D, as URLs have them
		if body, err = url.PathUnescape(body); err != nil {
			return nil, "", errors.New("the data is no base64")
		}
	}
	if data, err = fromBase64(body); err != nil {
		return nil, "", fmt.Errorf("the data is no base64: %w. It may have been shortened on its way", err)
	}
	return data, mime, nil
}

// fromBase64 reads base64 in either alphabet, with or without padding and line ends.
func fromBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "", " ", "", "\t", "").Replace(text)
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
}

func runSaveFile(ctx context.Context, env tool.Env, client *web.Client, in saveFileInput) (tool.Result, error) {
	src, err := saveFileSource(in)
	if err != nil {
		return tool.Result{}, err
	}
	f, err := env.Open(in.FilePath, workspace.Write)
	if err != nil {
		return tool.Result{}, wording.PathRefusal(env, in.FilePath, err)
	}
	defer f.Close()
	from := ""
	switch {
	case src.web != "":
		page, err := saveFileFetch(ctx, env, client, src.web, in.Host)
		if err != nil || page.Redirect != "" {
			return tool.Result{Text: browsing.Redirect(page, "save_file")}, err
		}
		src.data, src.mime, from = page.Body, page.Type, " from "+in.Host
	case src.own != "":
		if src.data, err = saveFileOwn(ctx, env, src.own); err != nil {
			return tool.Result{}, err
		}
	}
	if src.web != "" || src.own != "" { // what was given itself was looked at before anyone was asked
		if err := editing.RefuseSecret(env.State, in.FilePath, "the file", string(src.data)); err != nil {
			return tool.Result{}, err
		}
	}
	if err := editing.CheckNotebook(string(src.data), in.FilePath, f.Path); err != nil {
		return tool.Result{}, err
	}
	changes, err := env.Files.Update(ctx, editing.By(env, "save_file"), saveFileEdit(env, f, in, src.data))
	if err != nil {
		return tool.Result{}, editing.Guard{Name: "save_file", Unread: 2, Changed: 3}.Refusal(ctx, env, in.FilePath,
			err)
	}
	c := changes[0]
	name, kind := wording.ShownName(env, in.FilePath), "update"
	what := results.Size(int64(len(c.New)))
	if src.mime != "" && len(src.mime) <= 80 {
		what += ", " + wording.LineOf(src.mime, 80)
	}
	text := fmt.Sprintf("Replaced %s (%s; before: %s)%s", name, what, results.Size(int64(len(c.Old))), from)
	switch {
	case c.Old == nil:
		kind, text = "create", fmt.Sprintf("Saved %s (%s)%s", name, what, from)
	case bytes.Equal(c.Old, c.New):
		text = "No change: " + name + " already has this content."
	}
	return tool.Result{
		Text: text + editing.Notes(ctx, env, nil, c), Shows: []string{c.Path},
		Meta: editing.Meta(struct {
			Kind  string `json:"kind"`
			Bytes int    `json:"bytes"`
		}{kind, len(c.New)}, c),
	}, nil
}

// saveFileEdit is the change of the file: the bytes as they are, whatever encoding was there.
func saveFileEdit(env tool.Env, f filestate.File, in saveFileInput, data []byte) filestate.Edit {
	return filestate.Edit{
		File: f, Version: filestate.Version(in.Version), Whole: true,
		Change: func(old []byte) ([]byte, error) {
			return data, editing.CheckSettings(env, old, data, in.FilePath, f.Path)
		},
	}
}

func saveFileFetch(ctx context.Context, env tool.Env, client *web.Client, link, host string) (web.Page, error) {
	if client == nil {
		return web.Page{}, errSavesNothing
	}
	done := wording.TellIfSlow(env, "fetching from "+host)
	defer done()
	page, err := client.Fetch(ctx, web.Request{URL: link, Raw: true,
		Follow: func(host string) bool { return browsing.MayFollow(env.Rules, host) }})
	return page, browsing.Refusal(err)
}

// saveFileOwn reads a resource of this session.
func saveFileOwn(ctx context.Context, env tool.Env, uri string) ([]byte, error) {
	unknown := tool.Refuse(tool.ResourceUnknown, "This session has no resource %s. list_mcp_resources lists what "+
		"there is.", wording.LineOf(uri, 200))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if env.Library == nil {
		return nil, unknown
	}
	c, wrong, ok, err := env.Library.Read(ctx, uri)
	switch {
	case err != nil:
		return nil, wording.StateFault(ctx, err)
	case !ok:
		return nil, unknown
	case wrong != "":
		return nil, tool.Invalid("save_file", `"uri": `+wrong)
	case c.Data != nil:
		return c.Data, nil
	case !utf8.ValidString(c.Text):
		return nil, unknown
	}
	return []byte(c.Text), nil
}
