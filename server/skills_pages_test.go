package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/replaytest"
	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/skills"
)

// A publishedSkill is an entry of skills/list.
type publishedSkill struct {
	URI       string
	Resources any
}

// skillPages returns what skills/list has, page by page.
func (a guest) skillPages() (pages [][]publishedSkill) {
	a.t.Helper()
	params := map[string]any{}
	for range 600 {
		r := a.ask("skills/list", params)
		var page struct {
			Skills     []publishedSkill
			NextCursor string
		}
		if err := json.Unmarshal(r.Result, &page); err != nil || r.Error != nil {
			a.t.Fatalf("skills/list %v: %v %+v", params, err, r.Error)
		}
		pages = append(pages, page.Skills)
		if page.NextCursor == "" {
			return pages
		}
		params["cursor"] = page.NextCursor
	}
	a.t.Fatal("skills/list does not end")
	return nil
}

// TestSkillPages: a repository with so many files beside its skills, or such long front matter, that one answer could not
// hold them made skills/list fail for all skills, also for the user's own, after it had read every file.
func TestSkillPages(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	const many = 90
	for i := range many {
		files[fmt.Sprintf(".claude/skills/s%02d/SKILL.md", i)] = fmt.Sprintf("---\nname: s%02d\ndescription: D.\nnote: %s\n---\nText.\n", i, strings.Repeat("y", 60_000))
	}
	for i := range 6 {
		for j := range 450 {
			files[fmt.Sprintf(".claude/skills/t%d/%d.txt", i, j)] = "x"
		}
		files[fmt.Sprintf(".claude/skills/t%d/SKILL.md", i)] = fmt.Sprintf("---\nname: t%d\ndescription: D.\n---\nText.\n", i)
	}
	for name, a := range skilledGuests(t, nil, files) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			pages := a.skillPages()
			var uris []string
			for _, page := range pages {
				parts := 0
				for _, e := range page {
					uris = append(uris, e.URI)
					parts += len(e.Resources.([]any))
				}
				if parts > 2_000 {
					t.Errorf("a page of %d files", parts)
				}
			}
			if len(uris) != many+6 || !slices.IsSorted(uris) || len(slices.Compact(uris)) != many+6 || len(pages) < 6 || len(pages) > 20 {
				t.Errorf("%d pages: %v", len(pages), uris)
			}
			for _, bad := range []any{"x", 5, "after ", "after ../x", []int{1}} {
				a.refused("skills/list", map[string]any{"cursor": bad}, "cursor")
			}
			// A skill that is gone meanwhile does not matter.
			r := a.ask("skills/list", map[string]any{"cursor": "after t4x"})
			var rest struct{ Skills []publishedSkill }
			if must(t, json.Unmarshal(r.Result, &rest)); len(rest.Skills) != 1 || rest.Skills[0].URI != "skill://t5/SKILL.md" {
				t.Errorf("%+v", rest)
			}
		})
	}
}

// TestSkillsOfManySessions: each session parsed the skills of its workspace for itself and kept them for half an hour, so
// that a client which names a new handle with every request filled the memory with copies.
func TestSkillsOfManySessions(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	replaytest.Lay(t, x.work, replaytest.Skills)
	all, sessions := map[*skills.Index]bool{}, 0
	build := x.server.sessions.Build
	x.server.sessions.Build = func(key session.Key, at *tenants.Tenant) (*session.State, func(), error) {
		st, end, err := build(key, at)
		if err == nil {
			all[st.Skills], sessions = true, sessions+1
			if st.Skills != at.Bare.Skills {
				t.Error("a session has skills that are not those of its tenant")
			}
		}
		return st, end, err
	}
	for i := range 3 {
		a := x.guest(t, "", true, map[string]any{"codehand/session": fmt.Sprintf("handle-%d", i)})
		if list := a.prompts(); len(list) != 9 {
			t.Errorf("%d prompts", len(list))
		}
	}
	if sessions != 3 || len(all) != 1 {
		t.Errorf("%d sessions, %d indexes", sessions, len(all))
	}
}

// TestDirectoryPages: of a directory with more than 2,000 files the rest was left out, and nothing said so.
func TestDirectoryPages(t *testing.T) {
	t.Parallel()
	files := maps.Clone(replaytest.Skills)
	const many = 2_100
	for i := range many {
		files[fmt.Sprintf(".claude/skills/deploy/many/%04d.txt", i)] = "x"
	}
	x := serveHTTP(t, siteSetup{})
	replaytest.Lay(t, x.work, files)
	a := x.guest(t, "", true, nil)
	params, got := map[string]any{"uri": "skill://deploy/many"}, []string{}
	for range 3 {
		var page struct {
			Resources  []mcp.Resource
			NextCursor string
		}
		must(t, json.Unmarshal(a.ask("resources/directory/read", params).Result, &page))
		for _, r := range page.Resources {
			got = append(got, r.Name)
		}
		if params["cursor"] = page.NextCursor; page.NextCursor == "" {
			break
		}
	}
	if len(got) != many || !slices.IsSorted(got) || len(slices.Compact(got)) != many || params["cursor"] != "" {
		t.Errorf("%d entries, then %v", len(got), params)
	}
}

// TestForeignCursors: a list of one page took any cursor that is base64 and gave its one page again, which a client that
// follows cursors takes for more; of any other it said `illegal base64 data`.
func TestForeignCursors(t *testing.T) {
	t.Parallel()
	for name, a := range skilledGuests(t, nil, replaytest.Skills) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "skills/list"} {
				for _, cursor := range []any{"x", "eA==", 5, "after "} {
					a.refused(method, map[string]any{"cursor": cursor}, "the cursor is none of this list")
				}
				for _, cursor := range []any{"", nil} {
					if r := a.ask(method, map[string]any{"cursor": cursor}); r.Error != nil {
						t.Errorf("%s %v: %+v", method, cursor, r.Error)
					}
				}
			}
		})
	}
}
