package resources

import (
	"context"
	"strings"

	"codehand/tools/skills"
)

// Complete returns what a variable of a template can be in the caller's session: ids newest first, names and paths in
// order. known are the variables that the client has filled in.
func (l *Library) Complete(ctx context.Context, v View, template, variable string,
	known map[string]string) ([]string, error) {
	switch {
	case template == skillTemplate:
		return l.skillVariable(ctx, v, variable, known["name"])
	case strings.HasPrefix(template, changePrefix) && variable == "id":
		return l.changeIDs(ctx, v)
	}
	return v.ids(ctx, template, variable)
}

// ids are those that a template's variable can have in the caller's session.
func (v View) ids(ctx context.Context, uri, name string) ([]string, error) {
	if !v.Reads() || name != "id" {
		return nil, nil
	}
	var ids []string
	switch {
	case strings.HasPrefix(uri, resultPrefix):
		kept, err := v.State.Results.List()
		for _, k := range kept {
			ids = append(ids, k.ID)
		}
		return ids, err
	case strings.HasPrefix(uri, jobPrefix):
		jobs, err := v.jobs(ctx)
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return ids, err
	}
	return nil, nil
}

// skillVariable is what a variable of the skills' template can be: a name, or a path in the skill that was named.
func (l *Library) skillVariable(ctx context.Context, v View, variable, name string) ([]string, error) {
	set, err := l.Skills(ctx, v)
	if err != nil {
		return nil, err
	}
	switch variable {
	case "name":
		var names []string
		for _, k := range set.Skills {
			names = append(names, k.Name)
		}
		return names, nil
	case "path":
		k, ok := set.Find(name)
		if !ok {
			return nil, nil
		}
		return v.skillFiles(ctx, k)
	}
	return nil, nil
}

// skillFiles are the paths of a skill's files, as a URI has them behind the name.
func (v View) skillFiles(ctx context.Context, k skills.Skill) ([]string, error) {
	if k.Flat {
		return []string{skillFile}, nil
	}
	files, _, err := v.State.Skills.Files(ctx, v.reach(k), k, maxSkillFiles)
	prefix := skillURI(k.Name, "") + "/"
	for i, f := range files {
		files[i] = strings.TrimPrefix(skillURI(k.Name, f), prefix)
	}
	return files, err
}
